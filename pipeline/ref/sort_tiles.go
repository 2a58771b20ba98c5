package ref

import (
	"cmp"
	"slices"
)

// twin: sort_tiles

// SortTiles returns the slots ordered by tile; within a tile they stay in slot order, which is depth order.
func SortTiles(tileIDs []uint32) (slotFromIsect []uint32) {
	slotFromIsect = make([]uint32, len(tileIDs))
	for s := range slotFromIsect {
		slotFromIsect[s] = uint32(s)
	}
	slices.SortStableFunc(slotFromIsect, func(a, b uint32) int { return cmp.Compare(tileIDs[a], tileIDs[b]) })
	return slotFromIsect
}
