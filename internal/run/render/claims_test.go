package render

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestVideoClaims wants a video to be one render's at a time, and what killed ones left of it to go.
func TestVideoClaims(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	file := filepath.Join(dir, "v.mp4")
	for _, name := range []string{".v.mp4.tmp12", ".v.mp4.tmpx", ".w.mp4.tmp12", "v.mp4"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	v, err := newVideoPipe(file)
	if err != nil {
		t.Fatal(err)
	}
	if output.IsFile(filepath.Join(dir, ".v.mp4.tmp12")) || !output.IsFile(filepath.Join(dir, ".v.mp4.tmpx")) ||
		!output.IsFile(filepath.Join(dir, ".w.mp4.tmp12")) {
		t.Error("the wrong files were removed")
	}
	if _, err := newVideoPipe(file); !errors.Is(err, output.ErrBusy) || !output.IsFile(v.temp) {
		t.Errorf("a second render: %v", err)
	}
	must.Do(t, v.abandon())
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestHalfPicture aborts in the middle of a picture: nothing of it is left, and what was there before is.
func TestHalfPicture(t *testing.T) {
	dir := t.TempDir()
	var h halfPictures
	for _, name := range []string{"a.png", "b.png"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o666))
	}
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = h.write(filepath.Join(dir, "a.png"), func(path string) error {
			return atomicfile.Write(path, func(w io.Writer) error {
				close(begun)
				<-end // of the process
				return errors.New("it goes on all the same")
			})
		})
	}()
	<-begun
	defer close(end)
	h.drop()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

// TestRenderClaims wants the pictures of a folder to be one render's at a time.
func TestRenderClaims(t *testing.T) {
	t.Parallel() // it waits
	o := &Options{Out: filepath.Join(t.TempDir(), "frames")}
	release := must.Get(o.claim())(t)
	defer release()
	if _, err := o.claim(); !errors.Is(err, output.ErrBusy) || fault.ExitCode(err) != fault.ExitTryAgain ||
		fault.Hint(err) == "" {
		t.Errorf("a second render: %v", err)
	}
}
