package scene

type Image struct {
	Width, Height int
	Pix           []uint8 // [Height][Width] RGBA, straight alpha
	// Which pixels count in the loss and in metrics: bit i%32 of word i/32 for pixel i = y Width + x. nil: all. Bits
	// beyond the last pixel are 0.
	Mask []uint32
}

// ToByte rounds to the nearest integer of 0..255; NaN gives 0.
func ToByte(v float64) uint8 {
	switch {
	case !(v > 0):
		return 0
	case v >= 254.5:
		return 255
	}
	return uint8(v + 0.5)
}
