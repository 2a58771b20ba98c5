package captured

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"vksplat/scene"
	"vksplat/scene/calibrate"
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
		if res, err := CheckCameras(context.Background(), c, calibrate.Options{}, note); err != nil || res.Skipped == "" {
			t.Errorf("%+v, %v", res, err)
		}
	}
	check(time.Hour)
	if len(said) > 0 {
		t.Errorf("at once: %q", <-said)
	}
	read = func() {
		if text := <-said; !strings.Contains(text, "checking the cameras of 3 photos") {
			t.Errorf("note %q", text)
		}
	}
	check(time.Millisecond)
}
