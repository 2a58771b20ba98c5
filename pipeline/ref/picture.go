package ref

// twin: pack color_depth

// Pack makes bytes of a pixel, red in the lowest and alpha in the highest: 0 to 1 in 255 steps, rounded to nearest. What lies outside is clamped, NaN is 0.
// render is colour with background and the final transmittance.
func Pack[T Real](render [4]T) uint32 {
	toByte := func(x T) uint32 {
		if x > 0 {
			return uint32(min(255*x+0.5, 255))
		}
		return 0
	}
	return toByte(render[0]) | toByte(render[1])<<8 | toByte(render[2])<<16 | toByte(1-render[3])<<24
}

// ColorDepth makes depths of the colours of the splats that the view sees. depths are camera z, seen says which splats the view sees.
func ColorDepth[T Real](splats []Projected[T], depths []T, seen []bool) {
	for i := range splats {
		if seen[i] {
			splats[i].Color = [3]T{depths[i], depths[i], depths[i]}
		}
	}
}
