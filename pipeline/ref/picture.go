package ref

// twin: pack

// Pack makes bytes of a pixel, red in the lowest and alpha in the highest: 0 to 1 in 255 steps, rounded to nearest.
// What lies outside is clamped, NaN is 0. render is colour with background and the final transmittance.
func Pack[T Real](render [4]T) uint32 {
	toByte := func(x T) uint32 {
		if x > 0 {
			return uint32(min(255*x+0.5, 255))
		}
		return 0
	}
	return toByte(render[0]) | toByte(render[1])<<8 | toByte(render[2])<<16 | toByte(1-render[3])<<24
}
