// Package runtest has what tests of the application layer and of the commands share.
package runtest

import (
	"math"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// NeedDevice skips a test on machines without a Vulkan device.
func NeedDevice(t testing.TB) {
	t.Helper()
	if list, err := pipeline.ListDevices(); err != nil || len(list) == 0 {
		t.Skip("no Vulkan device on this machine")
	}
}

// SmallScene makes a capture with so many points and returns its folder. It skips the test where no device can train
// it.
func SmallScene(t testing.TB, points int) string {
	t.Helper()
	NeedDevice(t)
	dir := filepath.Join(t.TempDir(), "scene")
	must.Do(t, synthtest.Write(dir, synth.Options{Images: 8, Width: 64, Height: 48, Points: points}))
	return dir
}

// Apart is the PSNR of two pictures, dB.
func Apart(t testing.TB, a, b scene.Image) float64 {
	t.Helper()
	if a.Width != b.Width || a.Height != b.Height {
		t.Fatalf("%dx%d and %dx%d", a.Width, a.Height, b.Width, b.Height)
	}
	var sum float64
	for i := range a.Pix {
		d := float64(a.Pix[i]) - float64(b.Pix[i])
		sum += d * d
	}
	return 10 * math.Log10(255*255*float64(len(a.Pix))*3/4/max(sum, 1))
}
