package scene

import (
	"fmt"
	"math"
)

const MaxPixels = 1 << 28

// Plausible refuses sizes that no file of that many bytes can hold, before memory is spent on them.
func Plausible(width, height, pixelsPerByte, size int) error {
	if width <= 0 || height <= 0 || width > MaxPixels/height || width*height/pixelsPerByte > size {
		return fmt.Errorf("the header claims %d x %d pixels in a file of %d bytes", width, height, size)
	}
	return nil
}

// WideLimit is the width in pixels that automatic reduction allows.
const WideLimit = 1600

// TrainedSize gives the size that a photo of w x h is trained on: a downscale of 0
// brings widths above WideLimit to WideLimit (INRIA's rule), others divide.
func TrainedSize(w, h, downscale int) (int, int) {
	switch {
	case downscale == 0 && w > WideLimit:
		return WideLimit, max(int(float64(h)*WideLimit/float64(w)), 1)
	case downscale > 1:
		n := float64(downscale)
		return max(int(math.RoundToEven(float64(w)/n)), 1), max(int(math.RoundToEven(float64(h)/n)), 1)
	}
	return w, h
}
