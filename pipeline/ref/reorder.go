package ref

import (
	"cmp"
	"math"
	"slices"
)

// twin: reorder_keys reorder_ranks reorder_out reorder_back

// Cells of reorder_keys along an axis: so many in 1 near the origin, and in 1 beyond.
const (
	reorderNear = 2
	nearCells   = 192
	farCells    = 4
	halfCells   = 512
)

// ReorderKey is a place along a Z-order curve, below 2^30: of the cells of x, y and z, 10 bits each, bit k is bit 3 k,
// 3 k + 1 and 3 k + 2 of the key.
func ReorderKey(mean [3]float32) (key uint32) {
	for axis, x := range mean {
		cell := reorderCell(x)
		for bit := range 10 {
			key |= cell >> bit & 1 << (3*bit + axis)
		}
	}
	return key
}

// reorderCell is the cell of a coordinate, 0 to 1023; what is not finite is in the last one.
func reorderCell(x float32) uint32 {
	far := float32(math.Abs(float64(x)))
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return 2*halfCells - 1
	}
	cells := uint32(min(far, reorderNear) * nearCells)
	cells += uint32(min(max((far-reorderNear)*farCells, 0), halfCells-1-reorderNear*nearCells))
	if math.Signbit(float64(x)) {
		return halfCells - 1 - cells
	}
	return halfCells + cells
}

// Reordered returns the splats in the order of their keys; equal keys keep their order. [N]
func Reordered(keys []uint32) (splatFromRank []uint32) {
	for i := range keys {
		splatFromRank = append(splatFromRank, uint32(i))
	}
	slices.SortStableFunc(splatFromRank, func(a, b uint32) int { return cmp.Compare(keys[a], keys[b]) })
	return splatFromRank
}
