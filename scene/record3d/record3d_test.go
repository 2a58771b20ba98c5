package record3d_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func TestFixture(t *testing.T) {
	root := loadtest.Fixture(t, "rgb")
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	loadtest.CheckFixture(t, c, false)
	if c.Format != scene.FormatRecord3D {
		t.Error(c.Format)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"frames": {`"poses": [`, `"poses": [[0, 0, 0, 1, 0, 0, 0], `, "4 perFrameIntrinsicCoeffs of 5 poses"},
		"pose":   {`"poses": [`, `"poses": [[0], `, ""},
		"size":   {`"w": 32`, `"w": 1e9`, "a whole number of pixels"},
		"absent": {`"w": 32`, `"v": 32`, "poses, w and h are expected"},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.CheckEdited(t, loadtest.Fixture(t, "rgb"), "metadata.json", c.from, c.to, c.want)
		})
	}
}

func TestDamage(t *testing.T) {
	loadtest.CheckDamage(t, loadtest.Fixture(t, "rgb"), "metadata.json")
}

// Without intrinsics of each frame, K is that of all, column by column.
func TestSharedIntrinsics(t *testing.T) {
	root := loadtest.Fixture(t, "EXR_RGBD/rgb")
	file := filepath.Join(root, "EXR_RGBD", "metadata.json")
	if err := os.Rename(filepath.Join(root, "metadata.json"), file); err != nil {
		t.Fatal(err)
	}
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), false)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	scenetest.Put(t, file, bytes.Replace(data, []byte("perFrameIntrinsicCoeffs"), []byte("other"), 1))
	cam := loadtest.MustLoad(t, filepath.Join(root, "EXR_RGBD"), loadtest.AnyModel()).Cameras[0]
	if cam.Fx != 56 || cam.Fy != 57 || cam.Cx != 32 || cam.Cy != 24 {
		t.Errorf("%+v", cam)
	}
}

func TestNotFinite(t *testing.T) {
	fixture := func() string { return loadtest.Fixture(t, "rgb") }
	for from, to := range map[string]string{`-0.4128692645447193`: `@`, `2.3521597868189796`: `@`, `[28.0, 28.5`: `[@, 28.5`} {
		loadtest.CheckNotFinite(t, fixture, "metadata.json", from, to, "bad-poses", loadtest.NotFiniteJSON)
	}
}
