package vksplat_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat"
	must "vksplat/internal/musttest"
)

// TestHoldOutHint wants the errors of Evaluate about photos held out to advise what its caller can do.
func TestHoldOutHint(t *testing.T) {
	device, capture, dir := open(t)
	model := trained(t, device, capture, dir)
	_, err := vksplat.Evaluate(t.Context(), device, model, capture)
	want := "train with TrainOptions.HoldOut, and give the capture that the model was trained on"
	if !errors.Is(err, vksplat.ErrData) || vksplat.Hint(err) != want {
		t.Errorf("%v; hint %q, want %q", err, vksplat.Hint(err), want)
	}
}

// small is the smallest demo that is quick to draw.
var small = vksplat.DemoOptions{Photos: 4, Width: 16, Height: 16, Points: 10}

// TestDemoFolder wants demos to replace demos and nothing else.
func TestDemoFolder(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	for range 2 {
		must.Do(t, vksplat.WriteDemo(own, small))
	}
	if c, err := vksplat.OpenCapture(own, vksplat.CaptureOptions{}); err != nil || len(c.Cameras()) != 4 {
		t.Errorf("the demo is %v, %v", c, err)
	}
	photo := filepath.Join(dir, "mine", "images", "view_000.png")
	must.Do(t, os.MkdirAll(filepath.Dir(photo), 0o755))
	must.Do(t, os.WriteFile(photo, []byte("mine"), 0o644))
	wantUsage(t, "is not empty and was not made by demo", map[string]error{
		"photos": vksplat.WriteDemo(filepath.Join(dir, "mine"), small)})
	if text, err := os.ReadFile(photo); err != nil || string(text) != "mine" {
		t.Errorf("the photo is %q, %v", text, err)
	}
	wantUsage(t, "not a directory", map[string]error{"a file": vksplat.WriteDemo(photo, small)})
	t.Chdir(t.TempDir())
	wantUsage(t, "no folder", map[string]error{"no name": vksplat.WriteDemo("", small)})
}

// TestDemoOptions wants sizes that no demo has to be refused by name.
func TestDemoOptions(t *testing.T) {
	for part, o := range map[string]vksplat.DemoOptions{
		"Photos is 3": {Photos: 3}, "Photos is -1": {Photos: -1}, "Width is 5": {Width: 5, Height: 16},
		"Width is -5": {Width: -5}, "Height is 9999": {Height: 9999}, "Points is 1": {Points: 1},
		"Points is -1": {Points: -1},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		wantUsage(t, "DemoOptions."+part, map[string]error{part: vksplat.WriteDemo(dir, o)})
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a folder was made", part)
		}
	}
}

// TestNoRotation wants cameras whose R is none to be refused, and files without a name.
func TestNoRotation(t *testing.T) {
	device, capture, dir := open(t)
	model := trained(t, device, capture, dir)
	errs := map[string]error{}
	for name, row := range map[string][3]float64{"mirrored": {-1, -1, -1}, "scaled": {2, 2, 2}, "none": {}} {
		camera := capture.Cameras()[0]
		for i := range row {
			camera.R[i] *= row[i]
		}
		_, errs[name] = device.Render(t.Context(), model, camera)
	}
	wantUsage(t, "camera whose R is not a rotation", errs)
	wantUsage(t, "no file is named", map[string]error{"WriteFile": model.WriteFile("")})
	for _, camera := range capture.Cameras() {
		if _, err := device.Render(t.Context(), model, camera); err != nil {
			t.Error(err)
		}
	}
}
