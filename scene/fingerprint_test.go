package scene

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func fingerprint(t *testing.T, c *Capture) [32]byte {
	t.Helper()
	sum, err := c.Fingerprint(context.Background())
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
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Fingerprint(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := os.Remove(c.Cameras[1].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fingerprint(context.Background()); !errors.Is(err, ErrData) || Hint(err) == "" {
		t.Error(err)
	}
	c.Normalise()
	if _, err := c.Fingerprint(context.Background()); err == nil {
		t.Error("a capture in the training frame has a fingerprint")
	}
}
