package load_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

// named is a capture whose model calls its photos so, and whose folder has them under other names.
func named(t *testing.T, model, files [scenetest.TinyPhotos]string) (root string) {
	t.Helper()
	root = t.TempDir()
	cams := scenetest.TinyCameras()
	for i := range cams {
		cams[i].Name = model[i]
		if files[i] != "" {
			scenetest.WritePhoto(t, filepath.Join(root, "images", files[i]), scenetest.TinyWidth, scenetest.TinyHeight)
		}
	}
	loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
	return root
}

// checkNames demands the names of cameras, and of their photos' files below the folder of photos.
func checkNames(t *testing.T, c *scene.Capture, names, files []string) {
	t.Helper()
	if len(c.Cameras) != len(names) {
		t.Fatalf("%d cameras, want %q", len(c.Cameras), names)
	}
	for i, cam := range c.Cameras {
		if want := filepath.Join(c.Images, files[i]); cam.Name != names[i] || cam.Path != want {
			t.Errorf("%q of %q, want %q of %q", cam.Name, cam.Path, names[i], want)
		}
	}
}

// Names with accents are the same in both of their spellings: those of photos and folders, of masks and of lists.
func TestAccents(t *testing.T) {
	names := [scenetest.TinyPhotos]string{"0.png", "1\u00e9t\u00e9/b\u00fc.png", "2\u00f1.png", "3\uac00/d.png",
		"4z\u0301.png"}
	var apart [scenetest.TinyPhotos]string
	for i := range names {
		apart[i] = norm.NFD.String(names[i])
	}
	for _, form := range []struct{ model, files [scenetest.TinyPhotos]string }{{names, apart}, {apart, names}} {
		root := named(t, form.model, form.files)
		for _, name := range form.files[:4] {
			scenetest.WritePhoto(t, filepath.Join(root, "masks", name), scenetest.TinyWidth, scenetest.TinyHeight)
		}
		c := loadtest.MustLoad(t, root, loadtest.AnyModel())
		checkNames(t, c, form.model[:], form.files[:])
		if w, ok := scenetest.WarningOf(c, "masks"); !ok || w.Count != 1 {
			t.Errorf("masks: %v", w)
		}
		if err := c.HoldOut("list", []string{form.files[1], form.model[2]}); err != nil || !c.HeldOut[form.model[1]] ||
			!c.HeldOut[form.model[2]] || len(c.HeldOut) != 2 {
			t.Errorf("%v: %v", err, c.HeldOut)
		}
		must.Do(t, os.Rename(filepath.Join(root, "images"), filepath.Join(root, "photos")))
		checkNames(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), form.model[:], form.files[:])
	}
	// The same goes for a file of cameras that names its photos by their paths.
	root := t.TempDir()
	frames := scenetest.TinyFrames("images")
	for i, name := range apart {
		scenetest.WritePhoto(t, filepath.Join(root, "images", name), scenetest.TinyWidth, scenetest.TinyHeight)
		frames[i]["file_path"] = "images/" + names[i]
	}
	scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), scenetest.TinyTop().With("frames", frames))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if len(c.Cameras) != len(apart) {
		t.Errorf("%d of %d photos: %v", len(c.Cameras), len(apart), c.Warnings)
	}
}

// Absolute names in COLMAP's files mean the photo that the longest end of theirs names, if there is one such name.
func TestAbsoluteNames(t *testing.T) {
	for _, top := range []string{"/home/me/site 4/photos/", `D:\jobs\site 4\photos\`, "D:/jobs/", "../"} {
		files := [scenetest.TinyPhotos]string{"1/a.png", "2/a.png", "b.png", "c.png", "d.png"}
		model := [...]string{top + "1/a.png", top + `2\a.png`, top + "B.jpg", top + "deep/c.png", "d.png"}
		c := loadtest.MustLoad(t, named(t, model, files), loadtest.AnyModel())
		checkNames(t, c, files[:], files[:])
		// What two names end in is neither's.
		files = [scenetest.TinyPhotos]string{"a.png", "", "b.png", "c.png", "d.png"}
		c = loadtest.MustLoad(t, named(t, model, files), loadtest.AnyModel())
		checkNames(t, c, []string{"b.png", "c.png", "d.png"}, []string{"b.png", "c.png", "d.png"})
	}
}

// Points are of the photos that their tracks name, whatever the photos are called.
func TestAbsoluteTracks(t *testing.T) {
	root := loadtest.TinyCapture(t)
	cams := scenetest.TinyCameras()
	for i := range cams {
		cams[i].Name = "/elsewhere/" + cams[i].Name
	}
	scenetest.TextModelOf(t, root, "\n", cams, scenetest.TinyPoints())
	c := must.Get(load.Capture(root, loadtest.AnyModel()))(t)
	seen := 0
	if err := colmap.EachTrack(c, func(_ int, cams []int) { seen += len(cams) }); err != nil || seen == 0 {
		t.Errorf("%v: %d cameras", err, seen)
	}
}

// Files of kinds that are not read are named where they stand in place of photos, and converting them is enough.
func TestInPlace(t *testing.T) {
	for ext, kind := range map[string]string{".exr": "EXR", ".gif": "GIF", ".bmp": "BMP", ".tif": "TIFF", ".avif": "AVIF",
		".dng": "a raw photo", ".HEIC": "HEIC", ".jxl": "JPEG XL"} {
		root := loadtest.TinyCapture(t)
		names := scenetest.TinyCameras()
		move := func(i int) {
			file := filepath.Join(root, "images", names[i].Name)
			must.Do(t, os.Rename(file, filepath.Join(root, "images", "P"+names[i].Name[1:2]+ext)))
		}
		want := filepath.Join("images", "P1"+ext) + " is there, but " + kind + " is not read"
		const hint = "convert the photos, their poses stay"
		move(1)
		w, ok := scenetest.WarningOf(loadtest.MustLoad(t, root, loadtest.AnyModel()), "missing-photos")
		if !ok || !strings.Contains(w.Text, want) || !strings.Contains(w.Remedy, hint) {
			t.Errorf("%s: %q, %q", ext, w.Text, w.Remedy)
		}
		move(2)
		move(3)
		_, err := load.Capture(root, loadtest.AnyModel())
		scenetest.CheckRefusal(t, err, []string{want}, hint, nil)
	}
}

// A photo that cannot be read moves no other from one side of the split to the other, and a list that names it says so.
func TestUnreadableSplit(t *testing.T) {
	root := loadtest.TinyCapture(t)
	scenetest.Put(t, filepath.Join(root, "images", "p1.png"), []byte("no picture"))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	c.HoldOutEvery(2)
	if len(c.Cameras) != 4 || len(c.HeldOut) != 3 || !c.HeldOut["p0.png"] || !c.HeldOut["p2.png"] || !c.HeldOut["p4.png"] {
		t.Errorf("%d cameras, held out %v", len(c.Cameras), c.HeldOut)
	}
	scenetest.CheckRefusal(t, c.HoldOut("list", []string{"p1.png"}), []string{"no file that can be read", "p1.png"},
		"from the list", nil)
}
