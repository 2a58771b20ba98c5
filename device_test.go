package vksplat_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// wantUsage wants each error to be of kind ErrUsage, with a hint, and to say text.
func wantUsage(t *testing.T, text string, errs map[string]error) {
	t.Helper()
	for name, err := range errs {
		if !errors.Is(err, vksplat.ErrUsage) || !strings.Contains(err.Error(), text) || vksplat.Hint(err) == "" {
			t.Errorf("%s: %v; hint %q; want one of kind ErrUsage about %q", name, err, vksplat.Hint(err), text)
		}
	}
}

// deviceCalls makes every call that uses a device and returns their errors by name.
func deviceCalls(ctx context.Context, d *vksplat.Device, m *vksplat.Model, c *vksplat.Capture,
	out string) map[string]error {
	_, render := d.Render(ctx, m, c.Cameras()[0])
	_, train := vksplat.Train(ctx, d, c, out, vksplat.TrainOptions{Iterations: 2})
	_, resume := vksplat.Resume(ctx, d, c, out, vksplat.TrainOptions{Iterations: 2})
	_, evaluate := vksplat.Evaluate(ctx, d, m, c)
	return map[string]error{"Render": render, "Train": train, "Resume": resume, "Evaluate": evaluate}
}

// trained trains a model in a few steps.
func trained(t *testing.T, d *vksplat.Device, c *vksplat.Capture, dir string) *vksplat.Model {
	t.Helper()
	model, err := vksplat.Train(t.Context(), d, c, filepath.Join(dir, "out"), vksplat.TrainOptions{Iterations: 2})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// TestClosedDevice wants calls on a device that is closed, or was never opened, to be errors.
func TestClosedDevice(t *testing.T) {
	device, capture, dir := open(t)
	model, name := trained(t, device, capture, dir), device.Name()
	must.Get(device.Render(t.Context(), model, capture.Cameras()[0]))(t)
	for range 2 {
		if err := device.Close(); err != nil {
			t.Error(err)
		}
		wantUsage(t, "the device is closed",
			deviceCalls(t.Context(), device, model, capture, filepath.Join(dir, "closed")))
	}
	if device.Name() != name {
		t.Errorf("the closed device is called %q", device.Name())
	}
	for _, d := range []*vksplat.Device{nil, {}} {
		errs := deviceCalls(t.Context(), d, model, capture, filepath.Join(dir, "none"))
		errs["Close"] = d.Close()
		wantUsage(t, "there is no device", errs)
	}
}

// TestNoModel wants models and captures that were not read to be errors.
func TestNoModel(t *testing.T) {
	device, capture, dir := open(t)
	for _, m := range []*vksplat.Model{nil, {}} {
		_, render := device.Render(t.Context(), m, capture.Cameras()[0])
		_, evaluate := vksplat.Evaluate(t.Context(), device, m, capture)
		wantUsage(t, "there is no model", map[string]error{"Render": render, "Evaluate": evaluate,
			"WriteFile": m.WriteFile(filepath.Join(dir, "a.ply"))})
	}
	model := trained(t, device, capture, dir)
	for _, c := range []*vksplat.Capture{nil, {}} {
		_, train := vksplat.Train(t.Context(), device, c, filepath.Join(dir, "none"), vksplat.TrainOptions{})
		_, evaluate := vksplat.Evaluate(t.Context(), device, model, c)
		wantUsage(t, "there is no capture", map[string]error{"Train": train, "Evaluate": evaluate})
	}
}

// TestCallWhileTraining wants calls on the device that trains to wait no longer than their contexts allow.
func TestCallWhileTraining(t *testing.T) {
	device, capture, dir := open(t)
	model := trained(t, device, capture, dir)
	must.Get(vksplat.Train(t.Context(), device, capture, filepath.Join(dir, "calls"), vksplat.TrainOptions{
		Iterations: 2,
		Progress: func(p vksplat.Progress) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := device.Render(ctx, model, capture.Cameras()[0]); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Render ends with %v", err)
			}
		},
	}))(t)
	if _, err := device.Render(t.Context(), model, capture.Cameras()[0]); err != nil {
		t.Errorf("after the training: %v", err)
	}
}

// TestDeviceOptions wants amounts of memory that are none to be refused by name.
func TestDeviceOptions(t *testing.T) {
	for _, amount := range []string{"foo", "5X", "200%", "-1G"} {
		for name, o := range map[string]vksplat.DeviceOptions{
			"--max-vram": {MaxVRAM: amount}, "--max-ram": {MaxRAM: amount}} {
			o.Select = os.Getenv("VKSPLAT_DEVICE")
			_, err := vksplat.OpenDevice(o)
			wantUsage(t, fmt.Sprintf("%s: %q is not an amount of memory", name, amount), map[string]error{name: err})
		}
	}
}

// TestCancelledAtTheEnd cancels trainings whose last steps are on the device. Those that do them all end as any other,
// also where what belongs to the last step is not on the device yet.
func TestCancelledAtTheEnd(t *testing.T) {
	device, capture, dir := open(t)
	whole := filepath.Join(dir, "whole")
	for _, last := range []int{0, 6, 7, 8, 9, 10} { // 0: not cancelled
		ctx, cancel := context.WithCancel(t.Context())
		out := filepath.Join(dir, fmt.Sprint("cancelled", last))
		if last == 0 {
			out = whole
		}
		model, err := vksplat.Train(ctx, device, capture, out, vksplat.TrainOptions{Iterations: 10,
			Progress: func(p vksplat.Progress) {
				if p.Step == last {
					cancel()
				}
			}})
		cancel()
		if last > 0 && last < 9 && errors.Is(err, context.Canceled) &&
			!strings.Contains(err.Error(), "at step 10 of 10") {
			continue // the device had not been given the last step
		}
		if err != nil {
			t.Errorf("cancelled at step %d: %v", last, err)
			continue
		}
		rest := must.Get(filepath.Rel(out, model.Path()))(t)
		filetest.Same(t, filepath.Join(whole, rest), model.Path())
	}
}
