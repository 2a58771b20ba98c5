package photo

import (
	"math"
	"testing"
)

// TestSharpness finds a pattern sharper than the same one blurred, and a plane not sharp at all, of bytes and of
// floats.
func TestSharpness(t *testing.T) {
	const w, h = 32, 24
	plane, sharp, blurred := make([]byte, w*h), make([]byte, w*h), make([]byte, w*h)
	for i := range plane {
		plane[i] = byte(2 * (i % w))
		sharp[i] = byte(200 * (i / 4 % 2))
	}
	for i := range blurred {
		blurred[i] = byte((int(sharp[max(i-1, 0)]) + 2*int(sharp[i]) + int(sharp[min(i+1, w*h-1)])) / 4)
	}
	a, b, c := Sharpness(plane, w, h), Sharpness(blurred, w, h), Sharpness(sharp, w, h)
	floats := make([]float32, w*h)
	for i, x := range sharp {
		floats[i] = float32(x) / 255
	}
	if d := 255 * 255 * Sharpness(floats, w, h); math.Abs(d-c) > 1e-4*c {
		t.Errorf("as floats %g, as bytes %g", d, c)
	}
	if !(a == 0 && b > a && c > 2*b) {
		t.Errorf("a plane %g, blurred %g, sharp %g", a, b, c)
	}
}
