package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
	"vksplat/scene/transforms"
)

// framesOf writes the tiny capture with a transforms.json whose frames have these paths.
func framesOf(t *testing.T, root string, paths [scenetest.TinyPhotos]string, more scenetest.JsonObject) {
	t.Helper()
	frames := scenetest.TinyFrames("images")
	for i, p := range paths {
		frames[i]["file_path"] = p
	}
	top := scenetest.TinyTop().With("frames", frames)
	for key, value := range more {
		top = top.With(key, value)
	}
	scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), top)
}

// namesOf lists the cameras.
func namesOf(c *scene.Capture) (names []string) {
	for _, cam := range c.Cameras {
		names = append(names, cam.Name)
	}
	return names
}

// However a capture's folder is spelled, photos with absolute names in it are called the same, and none counts twice.
func TestSpelledFolders(t *testing.T) {
	parent := t.TempDir()
	root := filepath.Join(parent, "cap")
	for i := range scenetest.TinyPhotos {
		scenetest.WritePhoto(t, filepath.Join(root, "images", fmt.Sprintf("p%d.png", i)), scenetest.TinyWidth,
			scenetest.TinyHeight)
	}
	if err := os.Symlink(root, filepath.Join(parent, "link")); err != nil {
		t.Skip(err)
	}
	paths := [...]string{filepath.Join(root, "images", "p0.png"), "images/p1.png", "./images/p2.png", "images/p3.png",
		filepath.Join(root, "images", "..", "images", "p4.png")}
	framesOf(t, root, paths, nil)
	want := []string{"p0.png", "p1.png", "p2.png", "p3.png", "p4.png"}
	for _, c := range []struct{ at, spelled, images string }{{parent, "cap", "cap/images"}, {root, ".", "images"},
		{root, "../cap", "../cap/images"}, {parent, root, root + "/images"}, {parent, "link", "link/images"},
		{parent, "cap/transforms.json", "cap/images"}} {
		t.Chdir(c.at)
		got := loadtest.MustLoad(t, c.spelled, scene.LoadOptions{Model: scene.AnyModel, Strict: true})
		if !slices.Equal(namesOf(got), want) || len(got.Warnings) > 0 || got.Images != filepath.FromSlash(c.images) {
			t.Errorf("%s in %s: %q in %s, %v", c.spelled, c.at, namesOf(got), got.Images, got.Warnings)
		}
		named := loadtest.MustLoad(t, c.spelled, scene.LoadOptions{Model: scene.AnyModel, Images: "images"})
		if !slices.Equal(namesOf(named), want) {
			t.Errorf("%s in %s, --images images: %q", c.spelled, c.at, namesOf(named))
		}
		if _, test := got.Split(8); !slices.Equal(test, []int{0}) {
			t.Errorf("%s in %s: %v are held out", c.spelled, c.at, test)
		}
	}
	// Photos in the folder and beside it are called the same too.
	scenetest.WritePhoto(t, filepath.Join(parent, "more", "x.png"), scenetest.TinyWidth, scenetest.TinyHeight)
	paths[1] = "../more/x.png"
	framesOf(t, root, paths, nil)
	want = []string{"cap/images/p0.png", "cap/images/p2.png", "cap/images/p3.png", "cap/images/p4.png", "more/x.png"}
	for _, c := range []struct{ at, spelled string }{{parent, "cap"}, {root, "."}, {parent, root}} {
		t.Chdir(c.at)
		if got := loadtest.MustLoad(t, c.spelled, loadtest.AnyModel()); !slices.Equal(namesOf(got), want) {
			t.Errorf("%s in %s: %q", c.spelled, c.at, namesOf(got))
		}
	}
}

// A copied capture uses its own files where its names are those of the original, and tells of those that are not its
// own.
func TestOutside(t *testing.T) {
	original, root := t.TempDir(), t.TempDir()
	write := func(dir, name string) {
		scenetest.WritePhoto(t, filepath.Join(dir, filepath.FromSlash(name)), scenetest.TinyWidth, scenetest.TinyHeight)
	}
	const cloud = "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\n" +
		"end_header\n"
	var paths [scenetest.TinyPhotos]string
	for i := range paths {
		name := fmt.Sprintf("images/p%d.png", i)
		paths[i] = filepath.Join(original, name)
		write(original, name)
		write(root, name)
	}
	scenetest.Put(t, filepath.Join(original, "points.ply"), []byte(cloud))
	scenetest.Put(t, filepath.Join(root, "points.ply"), []byte(cloud))
	framesOf(t, root, paths, scenetest.JsonObject{"ply_file_path": filepath.Join(original, "points.ply")})
	c := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Strict: true})
	for _, cam := range c.Cameras {
		if filepath.Dir(cam.Path) != filepath.Join(root, "images") {
			t.Errorf("%s is %s", cam.Name, cam.Path)
		}
	}
	// What is not below the folder is taken from outside, with a warning.
	loadtest.Removed("images/p1.png", "images/p3.png", "points.ply")(t, root)
	c = loadtest.MustLoad(t, root, loadtest.AnyModel())
	var texts []string
	for _, w := range c.Warnings {
		if w.Code == transforms.OutsideFiles {
			texts = append(texts, w.String())
		}
	}
	want := []string{"took 1 point cloud from outside the capture's folder: " + filepath.Join(original, "points.ply"),
		"took 2 photos from outside the capture's folder: " + paths[1] + ", " + paths[3]}
	if !slices.Equal(texts, want) || len(c.Cameras) != scenetest.TinyPhotos {
		t.Errorf("%q of %d cameras, want %q", texts, len(c.Cameras), want)
	}
	scenetest.Put(t, filepath.Join(root, "points.ply"), []byte(cloud))
	_, err := load.Capture(root, scene.LoadOptions{Model: scene.AnyModel, Strict: true})
	scenetest.CheckRefusal(t, err, []string{"2 photos outside the capture's folder, as in " + paths[1]}, "copy them",
		nil)
	// An end that two names have is neither's.
	loadtest.Removed("images")(t, root)
	write(root, "images/p0.png")
	write(original, "b/images/p0.png")
	paths[4] = filepath.Join(original, "b", "images", "p0.png")
	framesOf(t, root, paths, nil)
	c = loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, _ := scenetest.WarningOf(c, transforms.OutsideFiles); w.Count != 5 {
		t.Error(w)
	}
}

// A mask that all photos share is found below the folder first.
func TestOutsideMasks(t *testing.T) {
	original := t.TempDir()
	frames := scenetest.TinyFrames("images/")
	for i := range frames {
		frames[i]["mask_path"] = filepath.Join(original, "masks", "all.png")
	}
	root := tinyTransforms(t, scenetest.TinyTop().With("frames", frames))
	for _, dir := range []string{original, root} {
		at := filepath.Join(dir, "masks", "all.png")
		scenetest.WritePhoto(t, at, scenetest.TinyWidth, scenetest.TinyHeight)
		c := loadtest.MustLoad(t, root, loadtest.AnyModel())
		w, warned := scenetest.WarningOf(c, transforms.OutsideFiles)
		if c.Cameras[0].Mask != at || c.Cameras[4].Mask != at || warned != (dir == original) {
			t.Errorf("%s: %s, %v", at, c.Cameras[0].Mask, w)
		}
	}
}

// What stands in place of a photo is named, with what to do about it.
func TestNoPhoto(t *testing.T) {
	root := loadtest.TinyCapture(t)
	for content, want := range map[string][2]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 34\n": {"a pointer of Git LFS", "git lfs pull"},
		"<!DOCTYPE html>": {"a web page", "download it again"},
	} {
		scenetest.Put(t, filepath.Join(root, "images", "p1.png"), []byte(content))
		w, _ := scenetest.WarningOf(loadtest.MustLoad(t, root, loadtest.AnyModel()), "broken-photos")
		if !strings.Contains(w.Text, want[0]) || !strings.Contains(w.Remedy, want[1]) {
			t.Errorf("%q, %q", w.Text, w.Remedy)
		}
	}
}
