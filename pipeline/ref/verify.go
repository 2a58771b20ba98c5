package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// twin: verify

// Verification is one check.
type Verification struct {
	Mode        uint32 // layout.Verify*
	Data, Index []uint32
	N           int // elements
	Stride      int // words of an element; of rows the splats of a chunk
	Bound       int // rows: first splat; VERIFY_DISTINCT: words are below; VERIFY_OFFSETS: total
}

// Wrong returns the elements that break the rule, in ascending order. Of words that occur more than once all do.
func (v *Verification) Wrong() (list []int) {
	times := map[uint32]int{}
	if v.Mode == layout.VerifyDistinct {
		for _, x := range v.Data[:v.N] {
			times[x]++
		}
	}
	for e := range v.N {
		if v.wrong(e) || v.Mode == layout.VerifyDistinct && times[v.Data[e]] > 1 {
			list = append(list, e)
		}
	}
	return list
}

func (v *Verification) wrong(e int) bool {
	d := v.Data
	switch v.Mode {
	case layout.VerifyFinite:
		return !finiteWords(d[e*v.Stride : (e+1)*v.Stride])
	case layout.VerifyFiniteAt:
		at := int(v.Index[e])
		return !finiteWords(d[at*v.Stride : (at+1)*v.Stride])
	case layout.VerifyFiniteRows, layout.VerifyFiniteHalves, layout.VerifyFiniteBfloats:
		column := e - v.Bound
		if column < 0 || column >= v.Stride {
			return false
		}
		for at := column; at < len(d); at += v.Stride {
			if !v.finiteWord(d[at]) {
				return true
			}
		}
		return false
	case layout.VerifySorted:
		return e+1 < v.N && d[e] > d[e+1]
	case layout.VerifySortedAt:
		x := d[v.Index[e]]
		return x == layout.Culled || e+1 < v.N && DepthOrder(x) > DepthOrder(d[v.Index[e+1]])
	case layout.VerifyDistinct:
		return int(d[e]) >= v.Bound
	case layout.VerifyOffsets:
		return d[e] > d[e+1] || e == 0 && d[0] != 0 || e+1 == v.N && int(d[v.N]) != v.Bound
	}
	// layout.VerifyGroups
	return int(v.Index[d[e]]) > e || int(v.Index[d[e]+1]) <= e
}

// finiteWord looks at a word of a row: a float, or two halves or bfloat16 where the mode says so.
func (v *Verification) finiteWord(w uint32) bool {
	if v.Mode == layout.VerifyFiniteRows {
		return finiteWords([]uint32{w})
	}
	value := layout.HalfValue
	if v.Mode == layout.VerifyFiniteBfloats {
		value = BFloatValue
	}
	a, b := value(uint16(w)), value(uint16(w>>16))
	return a-a == 0 && b-b == 0
}

func finiteWords(words []uint32) bool {
	for _, w := range words {
		if x := float64(math.Float32frombits(w)); math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
