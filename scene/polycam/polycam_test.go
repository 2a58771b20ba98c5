package polycam_test

import (
	"path/filepath"
	"testing"

	"vksplat/scene"
	"vksplat/scene/load/loadtest"
)

func TestFormat(t *testing.T) {
	loadtest.Format{Name: scene.FormatPolycam, Photos: "keyframes/corrected_images",
		File: "keyframes/corrected_cameras/1442008525605.json",
		Refused: map[string]loadtest.Refusal{
			"field": {`"t_12"`, `"t_99"`, "there is no field t_12"},
			"focal": {`"fx": 58`, `"fx": -58`, "a focal length is not above 0"},
			"text":  {`"fx": 58`, `"fx": "58"`, "field fx is"},
			"size":  {`"width": 64`, `"width": 6.4`, "a whole number of pixels"},
		},
	}.Check(t)
}

// Without optimised cameras those of the session are taken; the folder keyframes is a capture, too.
func TestFolders(t *testing.T) {
	root := loadtest.Fixture(t, "keyframes/images")
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), false)
	loadtest.CheckFixture(t, loadtest.MustLoad(t, filepath.Join(root, "keyframes"), loadtest.AnyModel()), false)
	loadtest.Removed("keyframes/corrected_cameras")(t, root)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if filepath.Base(c.Model) != "cameras" || c.Cameras[0].Fx != 1 {
		t.Errorf("%s: %+v", c.Model, c.Cameras[0])
	}
}

func TestNotFinite(t *testing.T) {
	fixture := func() string { return loadtest.Fixture(t, "keyframes/corrected_images") }
	for from, to := range map[string]string{`"t_00": -0.38797158712473`: `"t_00": @`,
		`"t_23": 1.35`: `"t_23": @`, `"fx": 61`: `"fx": @`} {
		loadtest.CheckNotFinite(t, fixture, "keyframes/corrected_cameras/1442009276019.json", from, to, "bad-poses",
			loadtest.NotFiniteJSON)
	}
}
