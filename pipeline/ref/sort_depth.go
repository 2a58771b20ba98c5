package ref

import (
	"cmp"
	"slices"
)

// twin: sort_depth sort_histogram sort_scan sort_scatter sort_count sort_sweep

// SortDepth returns the visible splats from near to far; equal depths keep the order of ids. [V]
func SortDepth(depthKeys []uint32) (splatFromRank []uint32) {
	for i, key := range depthKeys {
		if key != Culled {
			splatFromRank = append(splatFromRank, uint32(i))
		}
	}
	slices.SortStableFunc(splatFromRank, func(a, b uint32) int { return cmp.Compare(depthKeys[a], depthKeys[b]) })
	return splatFromRank
}
