package features

import "vksplat/internal/parallel"

// reduced returns the size of a photo whose longest side is at most side.
func reduced(width, height, side int) (w, h int) {
	longest := max(width, height)
	if longest <= side {
		return width, height
	}
	return max(1, (width*side+longest/2)/longest), max(1, (height*side+longest/2)/longest)
}

// portion is how much of a pixel another one covers, in whole numbers.
type portion struct{ at, weight int }

// shares says for each of to pixels in a row which of from pixels it covers. A pixel's shares add up to from.
func shares(from, to int) [][]portion {
	list := make([][]portion, to)
	for i := range list {
		for at := i * from / to; at*to < (i+1)*from; at++ {
			list[i] = append(list[i], portion{at, min((at+1)*to, (i+1)*from) - max(at*to, i*from)})
		}
	}
	return list
}

// reduce makes a photo smaller: each pixel is the mean of those that it covers.
func reduce(grey []byte, width, height, w, h int) []byte {
	small, across, down := make([]byte, w*h), shares(width, w), shares(height, h)
	parallel.For(h, func(y int) {
		for x, columns := range across {
			sum := 0
			for _, row := range down[y] {
				for _, column := range columns {
					sum += row.weight * column.weight * int(grey[row.at*width+column.at])
				}
			}
			small[y*w+x] = byte((sum + width*height/2) / (width * height))
		}
	})
	return small
}
