package scene

import (
	"fmt"
	"math"
)

const MaxPixels = 1 << 28

// TooLarge is the error of a picture of more than MaxPixels.
type TooLarge struct{ Width, Height int }

func (e TooLarge) Error() string {
	return fmt.Sprintf("%d x %d pixels are %.0f megapixels, more than the %d that are read", e.Width, e.Height,
		float64(e.Width)*float64(e.Height)/1e6, MaxPixels/1_000_000)
}

// Scale is the percentage of its sides at which the picture is not too large.
func (e TooLarge) Scale() int {
	return int(100 * math.Sqrt(MaxPixels/(float64(e.Width)*float64(e.Height))))
}

// Plausible refuses sizes that no file of that many bytes can hold, before memory is spent on them.
func Plausible(width, height, pixelsPerByte, size int) error {
	if width > 0 && height > 0 && width > MaxPixels/height {
		return TooLarge{width, height}
	}
	if width <= 0 || height <= 0 || width*height/pixelsPerByte > size {
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
