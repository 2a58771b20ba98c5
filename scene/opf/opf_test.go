package opf_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
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
		"again":   {"tracks/tracks.gltf", `"mesh": 0`, `"mesh": 0 }, { "mesh": 0`, "repeatedly"},
		"kind":    {"tracks/tracks.gltf", "5126", "5123", "POSITION is VEC3 of kind 5123"},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), c.file, c.from, c.to, c.want)
		})
	}
}

// Primitives read what they need of their buffers, however many there are, and not without end.
func TestPrimitives(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	file := filepath.Join(root, "tracks", "tracks.gltf")
	data, err := os.ReadFile(file)
	for _, name := range []string{"positions.bin", "colors.bin"} {
		err = errors.Join(err, os.Truncate(filepath.Join(root, "tracks", name), 4<<20))
	}
	one := regexp.MustCompile(`(?s)"primitives": \[(.*?)\]`).FindSubmatch(data)
	if err != nil || one == nil {
		t.Fatal(one, err)
	}
	many := bytes.Replace(data, one[1], bytes.Join(slices.Repeat([][]byte{one[1]}, 200), []byte(",")), 1)
	many = bytes.ReplaceAll(many, []byte(`"count": 8`), []byte(`"count": 0`))
	must.Do(t, os.WriteFile(file, many, 0o666))
	allocated := filetest.Allocated()
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if used := allocated(); len(c.Points) > 0 || used > 200<<20 {
		t.Errorf("200 primitives without points take %d MB", used>>20)
	}
	loadtest.CheckEdited(t, root, "tracks/tracks.gltf", `"mesh": 0`,
		strings.Repeat(`"mesh": 0 }, { `, 400)+`"mesh": 0`, "more than 65536 primitives")
}

func TestDamage(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	for _, name := range []string{"small.opf", "calibrated-cameras.json", "camera-list.json", "tracks/tracks.gltf"} {
		loadtest.CheckDamage(t, root, name)
	}
}

func TestNotFinite(t *testing.T) {
	fixture := func() string { return loadtest.Fixture(t, "images") }
	for from, to := range map[string]string{`141.52663060209397`: `@`, `2.3521597868189796`: `@`} {
		loadtest.CheckNotFinite(t, fixture, "calibrated-cameras.json", from, to, "bad-poses", loadtest.NotFiniteJSON)
	}
}
