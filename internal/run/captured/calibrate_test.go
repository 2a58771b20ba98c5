package captured

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// TestSlowCheck wants a note where checking cameras takes long, and none where it does not.
func TestSlowCheck(t *testing.T) {
	before := slowCheck
	defer func() { slowCheck = before }()
	said := make(chan string, 1)
	note := func(text string) { said <- text }
	read := func() {}
	c := &scene.Capture{Format: scene.FormatColmap, Cameras: make([]scene.Camera, 3),
		Calibrated: func(string) (io.ReadCloser, int64, error) {
			read()
			return nil, 0, os.ErrNotExist
		}}
	check := func(after time.Duration) {
		slowCheck = after
		if res, err := CheckCameras(context.Background(), c, pipeline.DeviceOptions{}, false, note); err != nil || res.Skipped == "" {
			t.Errorf("%+v, %v", res, err)
		}
	}
	check(time.Hour)
	if len(said) > 0 {
		t.Errorf("at once: %q", <-said)
	}
	read = func() {
		read = func() {} // once
		if text := <-said; !strings.Contains(text, "checking the cameras of 3 photos") {
			t.Errorf("note %q", text)
		}
	}
	check(time.Millisecond)
}

// TestSavedCameras are no longer in memory: captures read them where they were written.
func TestSavedCameras(t *testing.T) {
	dir, files := t.TempDir(), (&colmap.Model{}).Files()
	o := &Options{Cameras: CamerasAuto, files: &files}
	read := o.Options().Cameras
	must.Do(t, o.SaveCameras(dir, ModelFolder))
	must.Do(t, os.Remove(filepath.Join(dir, filepath.FromSlash(ModelFolder), "images.bin")))
	if _, _, err := read("cameras.bin"); err != nil {
		t.Error(err)
	}
	if _, _, err := read("images.bin"); err == nil {
		t.Error("files that were saved are still in memory")
	}
}

// TestAdjusted trusts cameras that vksplat capture found itself, as long as nobody changes them or adds to them.
func TestAdjusted(t *testing.T) {
	root := t.TempDir()
	c := &scene.Capture{Root: root, Model: filepath.Join(root, "sparse", "0")}
	must.Do(t, colmap.WriteTracks(c.Model, nil, nil, nil))
	notes := filepath.Join(root, ComponentsFolder, NotesFile)
	list := []string{notes}
	for _, name := range []string{"cameras.bin", "images.bin", "points3D.bin"} {
		list = append(list, filepath.Join(c.Model, name))
	}
	write := func(paths ...string) {
		made := output.ReadList(root, CaptureList)
		must.Do(t, made.Begin(paths...))
		for _, path := range paths {
			if _, err := os.Stat(path); err != nil {
				must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
				must.Do(t, os.WriteFile(path, nil, 0o666))
			}
		}
		must.Do(t, made.End())
	}
	want := func(want bool, what string) {
		t.Helper()
		if adjusted(c) != want {
			t.Errorf("%s: %v", what, !want)
		}
	}
	want(false, "a model of another program")
	write(list[1:]...)
	want(false, "COLMAP's, by vksplat capture")
	write(list...)
	want(true, "its own")
	must.Do(t, os.Remove(notes))
	want(false, "COLMAP's in place of its own")
	write(notes)
	images := must.Get(os.ReadFile(list[2]))(t)
	must.Do(t, os.WriteFile(list[2], append(images, 0), 0o666))
	want(false, "changed")
	must.Do(t, os.WriteFile(list[2], images, 0o666))
	want(true, "changed back")
	write(filepath.Join(root, MoreFolder, "given", "images.bin"))
	want(false, "with more photos")
}
