package opf_test

import (
	"testing"

	"vksplat/scene"
	"vksplat/scene/load/loadtest"
)

func TestFixture(t *testing.T) {
	root := loadtest.Fixture(t, "my photos")
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	loadtest.CheckFixture(t, c, true)
	if c.Format != scene.FormatOPF || c.Points[1].Color == c.Points[0].Color {
		t.Errorf("%s, %v", c.Format, c.Points)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ file, from, to, want string }{
		"lens":    {"calibrated-cameras.json", `"perspective"`, `"fisheye"`, `its type is "fisheye"`},
		"focal":   {"calibrated-cameras.json", `"focal_length_px": 61.5`, `"focal_length_px": 0`, "its focal length is 0"},
		"sensor":  {"calibrated-cameras.json", `"sensor_id": 18446744073709551615`, `"sensor_id": 7`, "sensor 7"},
		"camera":  {"camera-list.json", `"id": 3`, `"id": 4`, "camera 3 is not in the list"},
		"outside": {"small.opf", `"uri": "camera-list.json"`, `"uri": "../camera-list.json"`, "leads out"},
		"remote":  {"small.opf", `"uri": "camera-list.json"`, `"uri": "http://x/y.json"`, "names no file"},
		"absent":  {"small.opf", "opf-camera-list", "opf-other", "it has no application/opf-camera-list+json"},
		"size":    {"input-cameras.json", "64", "1e9", "its size is 1e+09"},
		"cloud":   {"tracks/tracks.gltf", `"count": 8`, `"count": 9`, "goes beyond its buffer"},
		"again":   {"tracks/tracks.gltf", `"mesh": 0`, `"mesh": 0 }, { "mesh": 0`, "again and again"},
		"kind":    {"tracks/tracks.gltf", "5126", "5123", "POSITION is VEC3 of kind 5123"},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), c.file, c.from, c.to, c.want)
		})
	}
}

func TestDamage(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	for _, name := range []string{"small.opf", "calibrated-cameras.json", "camera-list.json", "tracks/tracks.gltf"} {
		loadtest.CheckDamage(t, root, name)
	}
}
