package record3d_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func TestFormat(t *testing.T) {
	loadtest.Format{Name: scene.FormatRecord3D, Photos: "rgb", File: "metadata.json",
		Refused: map[string]loadtest.Refusal{
			"frames": {`"poses": [`, `"poses": [[0, 0, 0, 1, 0, 0, 0], `, "4 perFrameIntrinsicCoeffs of 5 poses"},
			"pose":   {`"poses": [`, `"poses": [[0], `, ""},
			"size":   {`"w": 32`, `"w": 1e9`, "a whole number of pixels"},
			"absent": {`"w": 32`, `"v": 32`, "poses, w and h are expected"},
		},
		NotFinite: map[string]string{`-0.4128692645447193`: `@`, `2.3521597868189796`: `@`, `[28.0, 28.5`: `[@, 28.5`},
		Spellings: loadtest.NotFiniteJSON,
	}.Check(t)
}

// Without intrinsics of each frame, K is that of all, column by column.
func TestSharedIntrinsics(t *testing.T) {
	root := loadtest.Fixture(t, "EXR_RGBD/rgb")
	file := filepath.Join(root, "EXR_RGBD", "metadata.json")
	must.Do(t, os.Rename(filepath.Join(root, "metadata.json"), file))
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), false)
	data := must.Get(os.ReadFile(file))(t)
	scenetest.Put(t, file, bytes.Replace(data, []byte("perFrameIntrinsicCoeffs"), []byte("other"), 1))
	cam := loadtest.MustLoad(t, filepath.Join(root, "EXR_RGBD"), loadtest.AnyModel()).Cameras[0]
	if cam.Fx != 56 || cam.Fy != 57 || cam.Cx != 32 || cam.Cy != 24 {
		t.Errorf("%+v", cam)
	}
}
