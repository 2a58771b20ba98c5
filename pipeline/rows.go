package pipeline

import (
	"math"

	"vksplat/scene"
	"vksplat/shaders/layout"
)

// put fills row r < stored of a chunk with that of the splats of s from first on. Rows above the degree of s are 0.
func (m *model) put(s *scene.Splats, r, first int, to []uint32) {
	tensors := s.Tensors()
	for i := range to {
		if !m.Mixed || r < layout.RowSh {
			to[i] = math.Float32bits(parameter(tensors[:], r, first+i))
			continue
		}
		at := layout.RowSh + 2*(r-layout.RowSh)
		to[i] = uint32(layout.NearestHalf(parameter(tensors[:], at, first+i))) |
			uint32(layout.NearestHalf(parameter(tensors[:], at+1, first+i)))<<16
	}
}

// parameter returns parameter r of splat i, 0 beyond those of its degree.
func parameter(tensors []scene.SplatTensor, r, i int) float32 {
	for _, t := range tensors {
		if r < t.Width {
			return t.Data[i*t.Width+r]
		}
		r -= t.Width
	}
	return 0
}
