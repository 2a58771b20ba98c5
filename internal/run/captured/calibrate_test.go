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
