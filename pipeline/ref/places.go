package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// twin: find_places

const (
	placePixels = 16
	far         = 1000 // world units
	widestAngle = 1.5
)

// Places returns for each square of the band's tiles which places it may be said to show: more than one where rounding
// decides. Others are nil.
func Places(p *Projection[float64], l *Lists, v *View[float64], g Grid) [][]uint32 {
	list := make([][]uint32, g.Tiles()*tileSquares)
	for id := g.RowFirst * g.Cols; id < g.RowEnd*g.Cols; id++ {
		for s := range tileSquares {
			x := min(id%g.Cols*TileSize+s%rowSquares*square+square/2, v.Width-1)
			y := min(id/g.Cols*TileSize+s/rowSquares*square+square/2, v.Height-1)
			centre := [2]float64{float64(x) + 0.5, float64(y) + 0.5}
			for _, z := range surfaceDepths(p, l, l.tile(id), centre) {
				list[id*tileSquares+s] = append(list[id*tileSquares+s], v.placesAt(centre, z)...)
			}
		}
	}
	return list
}

// surfaceDepths returns the depth of the splat behind which less than half of the light is left; with rounding, of
// several.
func surfaceDepths(p *Projection[float64], l *Lists, tile []uint32, c [2]float64) (list []float64) {
	const slack = 1e-4
	light := 1.0
	for _, slot := range tile {
		id := l.SplatFromSlot[slot]
		_, _, raw, reaches := p.Splats[id].at(c)
		if !reaches {
			continue
		}
		if light *= 1 - min(MaxAlpha, raw); light < 0.5+slack {
			list = append(list, float64(math.Float32frombits(p.DepthKeys[id])))
		}
		if light < 0.5-slack {
			return list
		}
	}
	return append(list, far)
}

// ray returns the ray of a place in the picture, with camera z 1.
func (v *View[T]) ray(c [2]T) vec3[T] {
	ray := vec3[T]{(c[0] - v.Cx) / v.Fx, (c[1] - v.Cy) / v.Fy, 1}
	if v.Fisheye {
		angle := min(max(math.Hypot(float64(ray[0]), float64(ray[1])), 1e-6), widestAngle)
		ray[0], ray[1] = ray[0]*T(math.Tan(angle)/angle), ray[1]*T(math.Tan(angle)/angle)
	}
	return ray
}

// placesAt returns the places that a pixel's ray may be said to meet at depth z.
func (v *View[T]) placesAt(c [2]T, z T) (list []uint32) {
	ray := v.ray(c)
	point := v.rotation().transposed().apply(vec3[T]{z*ray[0] - v.T[0], z*ray[1] - v.T[1], z - v.T[2]})
	exact := math.Log2(placePixels * float64(z/v.Fx))
	for _, level := range both(exact+0.5, 1e-4) {
		var cube [3][]int32
		for i := range cube {
			cube[i] = both(float64(point[i])*math.Exp2(-float64(level)), 1e-3)
		}
		for _, x := range cube[0] {
			for _, y := range cube[1] {
				for _, z := range cube[2] {
					list = append(list, placeOf(level, x, y, z))
				}
			}
		}
	}
	return list
}

// both returns the whole number below x, and the other one where that is close.
func both(x, slack float64) []int32 {
	a, b := int32(math.Floor(x-slack)), int32(math.Floor(x+slack))
	if a == b {
		return []int32{a}
	}
	return []int32{a, b}
}

func placeOf(words ...int32) uint32 {
	h := uint32(0)
	for _, word := range words {
		h ^= uint32(word)
		h ^= h >> 16
		h *= 0x7FEB352D
		h ^= h >> 15
		h *= 0x846CA68B
		h ^= h >> 16
	}
	return h%(layout.HistoryWords-2) + 2
}
