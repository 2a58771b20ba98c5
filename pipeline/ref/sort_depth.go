package ref

import (
	"cmp"
	"slices"

	"vksplat/shaders/layout"
)

// twin: sort_depth sort_histogram sort_scan sort_scatter sort_count sort_sweep

// DepthOrder returns what a depth key is sorted by, in [0, 2^24): see layout.LeastDepth.
func DepthOrder(key uint32) uint32 {
	return min((max(key, layout.LeastDepth)-layout.LeastDepth)>>layout.DepthDropped, 1<<layout.DepthBits-1)
}

// SortDepth returns the visible splats from near to far, by DepthOrder; where it is equal they keep the order of ids.
// [V]
func SortDepth(depthKeys []uint32) (splatFromRank []uint32) {
	for i, key := range depthKeys {
		if key != Culled {
			splatFromRank = append(splatFromRank, uint32(i))
		}
	}
	slices.SortStableFunc(splatFromRank, func(a, b uint32) int {
		return cmp.Compare(DepthOrder(depthKeys[a]), DepthOrder(depthKeys[b]))
	})
	return splatFromRank
}
