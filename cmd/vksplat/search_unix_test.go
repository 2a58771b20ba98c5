//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/view/playtest"
)

// TestPlaySearch has a browser draw what is found, and then the training, which the page turns into by itself.
func TestPlaySearch(t *testing.T) {
	photos := drawnPhotos(t)
	v := startViewed(t, photos, "-m", filepath.Join(t.TempDir(), "out"), "--viewer", "--iterations", "1000000")
	var log struct {
		Console, Errors, Violations []string
		Stages                      string
		Cameras, Points, Drawn      int
		Frames                      int
	}
	must.Do(t, v.cmd.Process.Signal(syscall.SIGSTOP)) // until the browser has started, or it would come too late
	playtest.Run(t, "testdata/search.py", map[string]any{"url": v.address, "pid": v.cmd.Process.Pid}, &log)
	must.Do(t, v.cmd.Process.Signal(os.Interrupt))
	if len(log.Console)+len(log.Errors)+len(log.Violations) > 0 {
		t.Errorf("the page complains: %q %q %q", log.Console, log.Errors, log.Violations)
	}
	if !strings.Contains(log.Stages, "mapping") || log.Cameras < 2 || log.Points < 50 || log.Drawn < 100 {
		t.Errorf("the page shows %q, %d cameras, %d points, %d pixels", log.Stages, log.Cameras, log.Points, log.Drawn)
	}
	if log.Frames == 0 {
		t.Error("the page shows no frame of the training")
	}
	<-v.rest
	_ = v.cmd.Wait() // it was stopped
}
