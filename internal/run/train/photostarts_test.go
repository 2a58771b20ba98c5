package train

import (
	"testing"

	"vksplat/scene"
)

// TestPhotoStarts has photos without EXIF: they start alike, and calibrations tell cameras apart.
func TestPhotoStarts(t *testing.T) {
	one := scene.Camera{Path: "none", Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24}
	other := one
	other.Fx = 61
	starts, numbers := photoStarts([]scene.Camera{one, other, one, other})
	for i, s := range starts {
		if s.Exposure != 0 || s.Camera != i%2 {
			t.Errorf("photo %d starts with %+v", i, s)
		}
	}
	if len(numbers) != 2 || numbers[cameraName(&other)] != 1 {
		t.Errorf("cameras %v", numbers)
	}
}
