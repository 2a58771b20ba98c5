package photo

// Sharpness gives the variance of the Laplacian of a grey picture of 3x3 pixels or more, [h*w]: the more detail a
// picture shows, the larger. It goes with the square of the values' unit.
func Sharpness[T uint8 | float32](grey []T, w, h int) float64 {
	var sum, squares float64
	for y := 1; y < h-1; y++ {
		for x := 1; x < w-1; x++ {
			i := y*w + x
			d := float64(grey[i-1]) + float64(grey[i+1]) + float64(grey[i-w]) + float64(grey[i+w]) - 4*float64(grey[i])
			sum += d
			squares += d * d
		}
	}
	n := float64((w - 2) * (h - 2))
	return squares/n - sum*sum/(n*n)
}
