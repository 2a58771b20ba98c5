package ref

import "vksplat/shaders/layout"

func (a *ProjectedGrad[T]) add(b *ProjectedGrad[T]) {
	for k := range a {
		a[k] += b[k]
	}
}

// ReduceSlots adds each splat's slots of the band to vProjected [N], in their order; of a splat that touches many tiles
// of the image, of which tiles has the number by rank, every row of tiles is summed from left to right, the rows then
// added from top to bottom. Bands taken in order give the same sums as the whole image. vProjected must be zero before
// the first band.
func ReduceSlots[T Real](vProjected, vSlots []ProjectedGrad[T], l *Lists, cols int, tiles func(rank int) int) {
	for rank, splat := range l.SplatFromRank {
		slot, end := int(l.FirstIsect[rank]), len(l.TileIDs)
		if rank+1 < len(l.FirstIsect) {
			end = int(l.FirstIsect[rank+1])
		}
		many := tiles(rank) > layout.ManySlots
		for slot < end {
			var row ProjectedGrad[T]
			sum, y := &vProjected[splat], int(l.TileIDs[slot])/cols
			if many {
				sum = &row
			}
			for ; slot < end && int(l.TileIDs[slot])/cols == y; slot++ {
				sum.add(&vSlots[slot])
			}
			if many {
				vProjected[splat].add(&row)
			}
		}
	}
}
