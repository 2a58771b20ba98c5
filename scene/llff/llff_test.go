package llff_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

const file = "poses_bounds.npy"

// edit sets numbers of the fixture, by their place in its array.
func edit(t *testing.T, root string, numbers map[int]float64) {
	t.Helper()
	name := filepath.Join(root, file)
	data := must.Get(os.ReadFile(name))(t)
	for i, v := range numbers {
		binary.LittleEndian.PutUint64(data[len(data)-8*(4*17-i):], math.Float64bits(v))
	}
	scenetest.Put(t, name, data)
}

func TestFixture(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	for _, root := range []string{root, filepath.Join(root, file)} {
		c := loadtest.MustLoad(t, root, loadtest.AnyModel())
		loadtest.CheckFixture(t, c, false)
		for i, cam := range c.Cameras {
			if want := [2]float64{1.5 + float64(i), 3.25 + float64(i)}; cam.Depths != want {
				t.Errorf("%s shows depths of %g, want %g", cam.Name, cam.Depths, want)
			}
		}
		if c.Format != scene.FormatLLFF || len(c.Warnings) > 0 {
			t.Error(c.Format, c.Warnings)
		}
	}
}

// Reduced photos are those of the rows by order, whatever they are called, unless there are more or fewer.
func TestReduced(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	o := loadtest.AnyModel()
	o.Downscale = 4
	for photos, width := range []int{16, 16, 16, 16, 15, 16} { // of the photo, scaled or as it is
		if photos > 0 {
			scenetest.WritePhoto(t, filepath.Join(root, "images_4", fmt.Sprintf("image%03d.png", photos-1)), 15, 11)
		}
		c := loadtest.MustLoad(t, root, o)
		for i, cam := range c.Cameras {
			if want := fmt.Sprintf("image%03d.png", i); cam.Width != width ||
				(filepath.Base(cam.Path) == want) != (photos == 4) {
				t.Errorf("of %d reduced photos, %s is %s with %d columns", photos, cam.Name, cam.Path, cam.Width)
			}
		}
		loadtest.CheckFixture(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), false)
	}
	// where some have the names of the photos, the names count
	root = loadtest.Fixture(t, "images")
	for _, name := range []string{"IMG_10.png", "IMG_2.png", "a.png", "z.png"} {
		scenetest.WritePhoto(t, filepath.Join(root, "images_4", name), 15, 11)
	}
	for i, cam := range loadtest.MustLoad(t, root, o).Cameras {
		if filepath.Base(cam.Path) != cam.Name || (cam.Width == 15) != (i > 0) {
			t.Errorf("%s is %s with %d columns", cam.Name, cam.Path, cam.Width)
		}
	}
}

// A file names no photos: they must be as many as its rows.
func TestPhotos(t *testing.T) {
	root := loadtest.Fixture(t, "shots")
	check := func(o scene.LoadOptions, want string) {
		t.Helper()
		_, err := load.Capture(root, o)
		scenetest.CheckRefusal(t, err, []string{want}, "images", nil)
	}
	o := loadtest.AnyModel()
	check(o, "no folder images")
	o.Images = "shots"
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, o), false)
	scenetest.Put(t, filepath.Join(root, "shots", "notes.txt"), []byte("x"))
	scenetest.Put(t, filepath.Join(root, "shots", ".hidden.png"), []byte("x"))
	loadtest.CheckFixture(t, loadtest.MustLoad(t, root, o), false)
	scenetest.WritePhoto(t, filepath.Join(root, "shots", "IMG_3.png"), 64, 48)
	check(o, "it has 4 rows, and "+filepath.Join(root, "shots")+" has 5 photos")
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		numbers map[int]float64
		want    string
	}{
		"focal":       {map[int]float64{14: 0}, "row 0 has the height 96, the width 128 and the focal length 0"},
		"height":      {map[int]float64{4: 96.5}, "the height 96.5"},
		"width":       {map[int]float64{9: 128.5}, "the width 128.5"},
		"calibration": {map[int]float64{9: 500}, "its calibration is for 500 x 96"},
		"all poses":   {map[int]float64{0: 9, 17: 9, 34: 9, 51: 9}, "off a rotation"},
	} {
		t.Run(name, func(t *testing.T) {
			root := loadtest.Fixture(t, "images")
			edit(t, root, c.numbers)
			_, err := load.Capture(root, loadtest.AnyModel())
			scenetest.CheckRefusal(t, err, []string{c.want}, "", nil)
		})
	}
	loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), file, "'<f8'", "'>f8'", ">f8 with the sizes (4, 17)")
	loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), file, "(4, 17)", "(17, 4)", "N rows of 17")
	loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), file, "(4, 17)", "(5, 17)", "the file ends early")
}

// A photo whose pose cannot be right is left out; invalid depths count as missing.
func TestBadRows(t *testing.T) {
	for name, numbers := range map[string]map[int]float64{
		"skewed":  {17: 9},
		"nan":     {20: math.NaN()},
		"far":     {20: 1e30},
		"turned":  {17: 0, 18: 0, 19: 0},
		"bounds":  {32: math.NaN()},
		"swapped": {32: 3, 33: 2},
		"zero":    {32: 0},
	} {
		root := loadtest.Fixture(t, "images")
		edit(t, root, numbers)
		c := loadtest.MustLoad(t, root, loadtest.AnyModel())
		w, left := scenetest.WarningOf(c, "bad-poses")
		if _, warned := scenetest.WarningOf(c, "bad-depths"); warned == left {
			t.Errorf("%s: warned of depths: %v", name, warned)
		}
		if _, bounds := numbers[32]; left == bounds || bounds != (len(c.Cameras) == 4) ||
			bounds && c.Cameras[1].Depths != [2]float64{} || left && w.Names[0] != "IMG_10.png" {
			t.Errorf("%s: %d photos, %v", name, len(c.Cameras), c.Warnings)
		}
	}
}

func TestDamage(t *testing.T) { loadtest.CheckDamage(t, loadtest.Fixture(t, "images"), file) }

// The scripts leave COLMAP's model beside their file. It says more and goes first.
func TestBesideColmap(t *testing.T) {
	root := loadtest.TinyCapture(t)
	scenetest.Put(t, filepath.Join(root, file), []byte("x"))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if _, told := scenetest.WarningOf(c, "other-format"); !told || c.Format != scene.FormatColmap {
		t.Error(c.Format, c.Warnings)
	}
	o := loadtest.AnyModel()
	o.Format = scene.FormatLLFF
	if _, err := load.Capture(root, o); err == nil || fault.Hint(err) == "" {
		t.Error(err)
	}
}
