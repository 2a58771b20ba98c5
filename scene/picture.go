package scene

import (
	"errors"
)

var ErrShape = errors.New("sizes do not agree")

// ByteValues are the values of a photo's bytes: single precision, as FloatRGB and the device have them.
var ByteValues = func() (v [256]float64) {
	for i := range v {
		v[i] = float64(float32(i) / 255)
	}
	return v
}()
