package scene

import "math"

// NormalMap is what is known of the normals of the surfaces that a camera's picture shows by something else than its
// photo, in the camera's axes: right, down, ahead. The zero value knows none.
type NormalMap struct {
	Shift   int      // a cell is 2^Shift pixels wide and high
	Columns int      // cells side by side; those at the right and lower edges may be partly outside the picture
	Cells   []uint32 // row by row, as PackNormal makes them; 0: not known
}

// NewNormalMap makes a map of a picture that knows nothing yet, of cells of 2^shift pixels.
func NewNormalMap(width, height, shift int) NormalMap {
	side := 1 << shift
	columns, rows := (width+side-1)/side, (height+side-1)/side
	return NormalMap{shift, columns, make([]uint32, columns*rows)}
}

// Covers reports whether the map has cells for all pixels of a picture.
func (m *NormalMap) Covers(width, height int) bool {
	return m.Columns<<m.Shift >= width && len(m.Cells)/m.Columns<<m.Shift >= height
}

// PackNormal makes a word of a direction of length 1, by octahedral mapping (Cigolle et al. 2014) of its opposite to
// two signed numbers of 16 bits. It is never 0. Normals of what is seen, whose z is mostly below 0, are in the middle.
func PackNormal(n [3]float64) uint32 {
	sum := -(math.Abs(n[0]) + math.Abs(n[1]) + math.Abs(n[2]))
	x, y := n[0]/sum, n[1]/sum
	if n[2] > 0 {
		x, y = math.Copysign(1-math.Abs(y), x), math.Copysign(1-math.Abs(x), y)
	}
	const most = math.MaxInt16
	word := uint32(uint16(int16(math.Round(x*most)))) | uint32(uint16(int16(math.Round(y*most))))<<16
	return max(word, 1)
}

// UnpackNormal returns the direction that a word was made of.
func UnpackNormal(word uint32) (n [3]float64) {
	const most = math.MaxInt16
	x, y := max(float64(int16(word))/most, -1), max(float64(int16(word>>16))/most, -1)
	z := 1 - math.Abs(x) - math.Abs(y)
	if z < 0 {
		x, y = math.Copysign(1-math.Abs(y), x), math.Copysign(1-math.Abs(x), y)
	}
	length := -math.Sqrt(x*x + y*y + z*z)
	return [3]float64{x / length, y / length, z / length}
}
