package pipeline

import (
	"math"

	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// put fills row r < stored of a chunk, which is zero, with that of the splats of s from first on. The degree of s is at
// most the model's.
func (m *model) put(s *scene.Splats, r, first int, to []uint32) {
	known, p := ref.ParamRows(s.Degree), paramsOf(s)
	if !m.Mixed || r < layout.RowSh {
		if r < known {
			for i := range to {
				to[i] = math.Float32bits(*p.At(r, first+i))
			}
		}
		return
	}
	at := layout.RowSh + 2*(r-layout.RowSh)
	for i := range to {
		var w uint32
		for k := range min(2, known-at) {
			w |= uint32(ref.NearestHalf(*p.At(at+k, first+i))) << (16 * k)
		}
		to[i] = w
	}
}

// paramsOf returns the parameters of s, by rows: not a copy.
func paramsOf(s *scene.Splats) *ref.Params[float32] {
	var arrays [][]float32
	for _, t := range s.Tensors() {
		arrays = append(arrays, t.Data)
	}
	return ref.ParamsOf(s.N, s.Degree, arrays)
}
