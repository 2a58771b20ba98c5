package opensfm_test

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
	loadtest.Format{Name: scene.FormatOpenSfM, Photos: "images", File: "reconstruction.json", Points: true,
		Refused: map[string]loadtest.Refusal{
			"lens":   {`"brown"`, `"fisheye624"`, `its projection_type is "fisheye624"`},
			"camera": {`"camera": "v2 brown"`, `"camera": "other"`, `camera "other", which does not exist`},
			"focal":  {`"focal_x": 0.94`, `"focal_x": 0`, "its focal length is 0"},
			"size":   {`"width": 64`, `"width": 1e9`, "its size is 1e+09"},
			"type":   {`"width": 64`, `"width": "64"`, "a number is expected"},
			"shot":   {`"rotation": [`, `"rotation": [1.0, `, "a rotation of 4"},
			"point":  {`"coordinates": [`, `"coordinates": [1.0, `, "has 4 coordinates"},
		},
	}.Check(t)
}

func TestFixture(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "other-components"); !ok || w.Count != 1 {
		t.Errorf("%v", w)
	}
	// where OpenDroneMap has it
	must.Do(t, os.Mkdir(filepath.Join(root, "opensfm"), 0o777))
	must.Do(t, os.Rename(filepath.Join(root, "reconstruction.json"), filepath.Join(root, "opensfm",
		"reconstruction.json")))
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), true)
	loadtest.CheckFixture(t, loadtest.MustLoad(t, filepath.Join(root, "opensfm", "reconstruction.json"),
		loadtest.AnyModel()), true)
}

func TestNotFinite(t *testing.T) {
	const name = "reconstruction.json"
	larger := func() string { // alone, without the component before it
		root := loadtest.Fixture(t, "images")
		data, err := os.ReadFile(filepath.Join(root, name))
		_, rest, found := bytes.Cut(data, []byte("\n },"))
		if err != nil || !found {
			t.Fatal(err)
		}
		scenetest.Put(t, filepath.Join(root, name), append([]byte("["), rest...))
		return root
	}
	for from, to := range map[string]string{`"DJI_0.png": {
    "rotation": [`: `"DJI_0.png": {
    "rotation": [@, 0, 1], "was": [`, `"focal": 0.9`: `"focal": @`, `"k2": 0.02`: `"k2": @`, `"c_x": -0.01`: `"c_x": @`} {
		loadtest.CheckNotFinite(t, larger, name, from, to, "bad-poses", loadtest.NotFiniteJSON)
	}
}
