package pipeline

import (
	"encoding/binary"
	"fmt"

	"vksplat/scene"
)

// A photo on the device is its RGBA8 pixels [P] and, where it has a mask, the mask's bits [ceil(P / 32)] after them: see shaders/shared/target.glsl.

// maskWords returns the number of words of a mask of n pixels.
func maskWords(n int) int { return (n + 31) / 32 }

// deviceWords returns how many 32-bit words m takes on the device.
func deviceWords(m *scene.Image) int {
	if m.Mask == nil {
		return len(m.Pix) / 4
	}
	return len(m.Pix)/4 + len(m.Mask)
}

// putPhoto writes m as the device reads it to dst, which has 4 deviceWords(m) bytes.
func putPhoto(dst []byte, m *scene.Image) {
	n := copy(dst, m.Pix)
	for i, w := range m.Mask {
		binary.NativeEndian.PutUint32(dst[n+4*i:], w)
	}
}

// checkPhoto requires the camera's size and a mask of as many pixels.
func checkPhoto(v *TrainView) error {
	c, m := &v.Camera, &v.Image
	if c.Width != m.Width || c.Height != m.Height || len(m.Pix) != 4*m.Width*m.Height {
		return fmt.Errorf("pipeline: start training: photo %s is %dx%d pixels, its camera %dx%d", c.Name, m.Width, m.Height, c.Width, c.Height)
	}
	if m.Mask != nil && len(m.Mask) != maskWords(m.Width*m.Height) {
		return fmt.Errorf("pipeline: start training: the mask of photo %s has %d words, %dx%d pixels take %d",
			c.Name, len(m.Mask), m.Width, m.Height, maskWords(m.Width*m.Height))
	}
	return nil
}
