package scene

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func fingerprint(t *testing.T, c *Capture) [32]byte {
	t.Helper()
	f, err := c.StartFingerprint(0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := f.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestFingerprint(t *testing.T) {
	root := tinyCapture(t)
	load := func() *Capture { return mustLoad(t, root, anyModel()) }
	first := fingerprint(t, load())
	if again := fingerprint(t, load()); again != first {
		t.Error("the same capture has another fingerprint")
	}
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(moved, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if other := fingerprint(t, mustLoad(t, moved, anyModel())); other != first {
		t.Error("a copy has another fingerprint")
	}
	seen := map[[32]byte]string{first: "nothing"}
	for name, change := range map[string]func(c *Capture){
		"name": func(c *Capture) { c.Cameras[0].Name = "x" }, "width": func(c *Capture) { c.Cameras[0].Width++ }, "model": func(c *Capture) { c.Cameras[0].Model = Fisheye },
		"focal": func(c *Capture) { c.Cameras[4].Fx += 1e-14 }, "rotation": func(c *Capture) { c.Cameras[1].R[8] += 1e-15 }, "translation": func(c *Capture) { c.Cameras[1].T[0] *= 1 + 1e-15 },
		"lens":  func(c *Capture) { c.Cameras[2].Lens = &Lens{Calibration: Calibration{Params: []float64{1}}} },
		"lens2": func(c *Capture) { c.Cameras[2].Lens = &Lens{Calibration: Calibration{Params: []float64{1 + 1e-15}}} },
		"mask":  func(c *Capture) { c.Cameras[2].Mask = c.Cameras[3].Path }, "mask2": func(c *Capture) { c.Cameras[2].Mask, c.Cameras[2].MaskInverted = c.Cameras[3].Path, true },
		"held out": func(c *Capture) { c.HeldOut = map[string]bool{"p1.png": true} }, "none held out": func(c *Capture) { c.HeldOut = map[string]bool{} },
		"fewer": func(c *Capture) { c.Cameras = c.Cameras[:4] }, "point": func(c *Capture) { c.Points[0].Pos[0] = 1e-300 }, "colour": func(c *Capture) { c.Points[0].Color[0]++ },
		"fewer points": func(c *Capture) { c.Points = c.Points[:2] }, "synthetic": func(c *Capture) { c.Synthetic = true },
	} {
		c := load()
		change(c)
		sum := fingerprint(t, c)
		if other, twice := seen[sum]; twice {
			t.Errorf("%s and %s give the same fingerprint", name, other)
		}
		seen[sum] = name
	}
	writePhoto(t, filepath.Join(root, "images", "p2.png"), 2*tinyWidth, 2*tinyHeight)
	c := load()
	c.Cameras[2] = c.Cameras[2].Rescaled(tinyWidth, tinyHeight)
	if fingerprint(t, c) == first {
		t.Error("the photo's content does not matter")
	}
}

func TestFingerprintFails(t *testing.T) {
	c := mustLoad(t, tinyCapture(t), anyModel())
	photo := c.Cameras[1].Path
	for name, change := range map[string]func() error{
		"removed": func() error { return os.Remove(photo) },
		"folder":  func() error { return os.Mkdir(photo, 0o777) },
	} {
		if err := errors.Join(os.RemoveAll(photo), change()); err != nil && name != "removed" {
			t.Fatal(err)
		}
		if _, err := c.StartFingerprint(1); !errors.Is(err, ErrData) || Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Normalise()
	if _, err := c.StartFingerprint(1); err == nil {
		t.Error("a capture in the training frame has a fingerprint")
	}
}

// The fingerprint is that of the files at the start: what is changed before it was hashed is an error.
func TestFingerprintOfChangedPhoto(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, path string)
		want   error
	}{
		"longer": {func(t *testing.T, path string) { writePhoto(t, path, 2*tinyWidth, tinyHeight) }, errChanged},
		"newer": {func(t *testing.T, path string) {
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}, errChanged},
		"gone": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, os.ErrNotExist},
		"same": {func(*testing.T, string) {}, nil},
	} {
		c := mustLoad(t, tinyCapture(t), anyModel())
		f := &Fingerprint{}
		if err := f.note(c.Cameras); err != nil {
			t.Fatal(err)
		}
		test.change(t, c.Cameras[1].Path)
		_, err := f.hash(t.Context(), 2)
		if !errors.Is(err, test.want) || test.want != nil && (Hint(err) == "" || !strings.Contains(err.Error(), "p1.png")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// While it is read, too: the second look finds it.
	c := mustLoad(t, tinyCapture(t), anyModel())
	f := &Fingerprint{}
	if err := f.note(c.Cameras[:1]); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(f.notes[0].path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := f.notes[0].same(file); err != nil {
		t.Error(err)
	}
	writePhoto(t, f.notes[0].path, 2*tinyWidth, tinyHeight)
	if err := f.notes[0].same(file); !errors.Is(err, errChanged) {
		t.Error(err)
	}
}

// The work is in the background, does not look at the capture any more, and ends when it is closed.
func TestFingerprintInBackground(t *testing.T) {
	root := tinyCapture(t)
	want := fingerprint(t, mustLoad(t, root, anyModel()))
	c := mustLoad(t, root, anyModel())
	f, err := c.StartFingerprint(1)
	if err != nil {
		t.Fatal(err)
	}
	c.Normalise()
	c.Points = nil
	if sum, err := f.Wait(t.Context()); err != nil || sum != want || !f.Done() {
		t.Errorf("%x, %v", sum, err)
	}
	f.Close()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	waiting := &Fingerprint{done: make(chan struct{})}
	if _, err := waiting.Wait(stopped); !errors.Is(err, context.Canceled) || waiting.Done() {
		t.Error(err)
	}
	if _, err := f.hash(stopped, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
