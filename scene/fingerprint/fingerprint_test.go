package fingerprint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func fingerprintOf(t *testing.T, c *scene.Capture) [32]byte {
	t.Helper()
	f := must.Get(Start(c, 0))(t)
	defer f.Close()
	sum := must.Get(f.Wait(t.Context()))(t)
	return sum
}

func TestFingerprint(t *testing.T) {
	root := loadtest.TinyCapture(t)
	load := func() *scene.Capture { return loadtest.MustLoad(t, root, loadtest.AnyModel()) }
	first := fingerprintOf(t, load())
	if again := fingerprintOf(t, load()); again != first {
		t.Error("the same capture has another fingerprint")
	}
	moved := filepath.Join(t.TempDir(), "elsewhere")
	must.Do(t, os.CopyFS(moved, os.DirFS(root)))
	if other := fingerprintOf(t, loadtest.MustLoad(t, moved, loadtest.AnyModel())); other != first {
		t.Error("a copy has another fingerprint")
	}
	seen := map[[32]byte]string{first: "nothing"}
	for name, change := range map[string]func(c *scene.Capture){
		"name":        func(c *scene.Capture) { c.Cameras[0].Name = "x" },
		"width":       func(c *scene.Capture) { c.Cameras[0].Width++ },
		"model":       func(c *scene.Capture) { c.Cameras[0].Model = scene.Fisheye },
		"focal":       func(c *scene.Capture) { c.Cameras[4].Fx += 1e-14 },
		"rotation":    func(c *scene.Capture) { c.Cameras[1].R[8] += 1e-15 },
		"translation": func(c *scene.Capture) { c.Cameras[1].T[0] *= 1 + 1e-15 },
		"lens": func(c *scene.Capture) {
			c.Cameras[2].Lens = &scene.Lens{Calibration: scene.Calibration{Params: []float64{1}}}
		},
		"lens2": func(c *scene.Capture) {
			c.Cameras[2].Lens = &scene.Lens{Calibration: scene.Calibration{Params: []float64{1 + 1e-15}}}
		},
		"mask": func(c *scene.Capture) { c.Cameras[2].Mask = c.Cameras[3].Path },
		"mask2": func(c *scene.Capture) {
			c.Cameras[2].Mask, c.Cameras[2].MaskInverted = c.Cameras[3].Path,
				true
		},
		"mask3": func(c *scene.Capture) {
			c.Cameras[2].Mask, c.Cameras[2].MaskGrow = c.Cameras[3].Path, 2
		},
		"held out":      func(c *scene.Capture) { c.HeldOut = map[string]bool{"p1.png": true} },
		"none held out": func(c *scene.Capture) { c.HeldOut = map[string]bool{} },
		"fewer":         func(c *scene.Capture) { c.Cameras = c.Cameras[:4] },
		"point":         func(c *scene.Capture) { c.Points[0].Pos[0] = 1e-300 },
		"colour":        func(c *scene.Capture) { c.Points[0].Color[0]++ },
		"fewer points":  func(c *scene.Capture) { c.Points = c.Points[:2] },
		"depths":        func(c *scene.Capture) { c.Cameras[2].Depths = [2]float64{1, 2} },
		"synthetic":     func(c *scene.Capture) { c.Synthetic = true },
	} {
		c := load()
		change(c)
		sum := fingerprintOf(t, c)
		if other, twice := seen[sum]; twice {
			t.Errorf("%s and %s give the same fingerprint", name, other)
		}
		seen[sum] = name
	}
	scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 2*scenetest.TinyWidth, 2*scenetest.TinyHeight)
	c := load()
	c.Cameras[2] = c.Cameras[2].Rescaled(scenetest.TinyWidth, scenetest.TinyHeight)
	if fingerprintOf(t, c) == first {
		t.Error("the photo's content does not matter")
	}
}

// TestParts: what changes the files changes the one part, and what else there is the other.
func TestParts(t *testing.T) {
	root := loadtest.TinyCapture(t)
	parts := func(change func(c *scene.Capture)) (list [2][32]byte) {
		c := loadtest.MustLoad(t, root, loadtest.AnyModel())
		change(c)
		f := must.Get(Start(c, 0))(t)
		defer f.Close()
		must.Get(f.Wait(t.Context()))(t)
		list[0], list[1] = f.Parts()
		return list
	}
	other := filepath.Join(t.TempDir(), "other.png")
	scenetest.WritePhoto(t, other, 3, 2)
	first := parts(func(*scene.Capture) {})
	for name, c := range map[string]struct {
		change       func(c *scene.Capture)
		shape, files bool // change
	}{
		"nothing": {func(*scene.Capture) {}, false, false},
		"point":   {func(c *scene.Capture) { c.Points[0].Pos[0] = 1e-300 }, true, false},
		"mask":    {func(c *scene.Capture) { c.Cameras[2].Mask = c.Cameras[3].Path }, false, true},
		"photo":   {func(c *scene.Capture) { c.Cameras[2].Path = other }, false, true},
	} {
		if got := parts(c.change); (got[0] != first[0]) != c.shape || (got[1] != first[1]) != c.files {
			t.Errorf("%s: the parts change: %v, %v", name, got[0] != first[0], got[1] != first[1])
		}
	}
}

// TestMotions: how cameras moved is in a hash of its own, and in no fingerprint.
func TestMotions(t *testing.T) {
	root := loadtest.TinyCapture(t)
	load := func() *scene.Capture { return loadtest.MustLoad(t, root, loadtest.AnyModel()) }
	first := fingerprintOf(t, load())
	if Motions(load()) != [32]byte{} {
		t.Error("cameras that stand still have a hash of motions")
	}
	face := load()
	face.Cameras[2].Photo, face.Cameras[2].Motion.Turn[1] = "panorama.jpg", 1
	if Motions(face) != [32]byte{} {
		t.Error("faces of panoramas, which do not move, have a hash of motions")
	}
	seen := map[[32]byte]string{{}: "nothing"}
	for name, change := range map[string]func(c []scene.Camera){
		"turned":       func(c []scene.Camera) { c[2].Motion.Turn[1] = 1e-300 },
		"moved":        func(c []scene.Camera) { c[2].Motion.Move[1] = 1e-300 },
		"another":      func(c []scene.Camera) { c[3].Motion.Move[1] = 1e-300 },
		"both moved":   func(c []scene.Camera) { c[2].Motion.Move[1], c[3].Motion.Move[1] = 1e-300, 1e-300 },
		"moved faster": func(c []scene.Camera) { c[2].Motion.Move[1] = 2e-300 },
	} {
		c := load()
		change(c.Cameras)
		sum := Motions(c)
		if other, twice := seen[sum]; twice {
			t.Errorf("%s and %s give the same hash", name, other)
		}
		seen[sum] = name
		if fingerprintOf(t, c) != first {
			t.Errorf("%s: the capture has another fingerprint", name)
		}
	}
}

func TestFingerprintFails(t *testing.T) {
	c := loadtest.MustLoad(t, loadtest.TinyCapture(t), loadtest.AnyModel())
	photo := c.Cameras[1].Path
	for name, change := range map[string]func() error{
		"removed": func() error { return os.Remove(photo) },
		"folder":  func() error { return os.Mkdir(photo, 0o777) },
	} {
		if err := errors.Join(os.RemoveAll(photo), change()); err != nil && name != "removed" {
			t.Fatal(err)
		}
		if _, err := Start(c, 1); !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Normalise()
	if _, err := Start(c, 1); err == nil {
		t.Error("a capture in the training frame has a fingerprint")
	}
}

// The fingerprint is that of the files at the start: what is changed before it was hashed is an error.
func TestFingerprintOfChangedPhoto(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, path string)
		want   error
	}{
		"longer": {func(t *testing.T, path string) {
			scenetest.WritePhoto(t, path, 2*scenetest.TinyWidth, scenetest.TinyHeight)
		}, errChanged},
		"newer": {func(t *testing.T, path string) {
			must.Do(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
		}, errChanged},
		"gone": {func(t *testing.T, path string) {
			must.Do(t, os.Remove(path))
		}, os.ErrNotExist},
		"same": {func(*testing.T, string) {}, nil},
	} {
		c := loadtest.MustLoad(t, loadtest.TinyCapture(t), loadtest.AnyModel())
		f := &Fingerprint{}
		must.Do(t, f.note(c.Cameras))
		test.change(t, c.Cameras[1].Path)
		_, err := f.hash(t.Context(), 2)
		if !errors.Is(err, test.want) || test.want != nil &&
			(fault.Hint(err) == "" || !strings.Contains(err.Error(), "p1.png")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// While it is read, too: the second look finds it.
	c := loadtest.MustLoad(t, loadtest.TinyCapture(t), loadtest.AnyModel())
	f := &Fingerprint{}
	must.Do(t, f.note(c.Cameras[:1]))
	file := must.Get(os.Open(f.notes[0].path))(t)
	defer file.Close()
	if err := f.notes[0].same(file); err != nil {
		t.Error(err)
	}
	scenetest.WritePhoto(t, f.notes[0].path, 2*scenetest.TinyWidth, scenetest.TinyHeight)
	if err := f.notes[0].same(file); !errors.Is(err, errChanged) {
		t.Error(err)
	}
}

// The work is in the background, does not look at the capture any more, and ends when it is closed.
func TestFingerprintInBackground(t *testing.T) {
	root := loadtest.TinyCapture(t)
	want := fingerprintOf(t, loadtest.MustLoad(t, root, loadtest.AnyModel()))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	f := must.Get(Start(c, 1))(t)
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
