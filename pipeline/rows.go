package pipeline

import (
	"math"

	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// Precisions of Config.
const (
	PrecisionFull = "full" // float32
	// spherical harmonics as halves, moments as bfloat16; the rest, and all arithmetic, in float32
	PrecisionMixed = "mixed"
)

// chunkRows says what is where in a chunk, a matrix of 32-bit words [rows][splats]: parameters, moments, statistics.
type chunkRows struct {
	degree  int
	mixed   bool
	nParams int // parameters P = ROW_SH + 3 (degree+1)^2 of a splat
	stored  int // rows that hold them
	first   int // first row of first moments
	second  int // of second moments; the same where both lie in one word
	stats   int // first row of statistics
}

// rowsOf returns the rows of a precision.
func rowsOf(degree int, precision string) chunkRows {
	p := ref.ParamRows(degree)
	if precision == PrecisionMixed {
		moments, stats := ref.MixedRows(degree)
		return chunkRows{degree: degree, mixed: true, nParams: p, stored: moments, first: moments, second: moments,
			stats: stats}
	}
	return chunkRows{degree: degree, nParams: p, stored: p, first: p, second: 2 * p, stats: 3 * p}
}

func (c chunkRows) rows() int { return c.stats + layout.StatRows }

// splatBytes returns what a splat takes in chunks.
func (c chunkRows) splatBytes() int64 { return 4 * int64(c.rows()) }

// put fills row r < stored of a chunk, which is zero, with that of the splats of s from first on. The degree of s is at
// most the model's.
func (c chunkRows) put(s *scene.Splats, r, first int, to []uint32) {
	known, p := ref.ParamRows(s.Degree), paramsOf(s)
	if !c.mixed || r < layout.RowSh {
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
