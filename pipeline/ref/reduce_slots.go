package ref

// twin: reduce_slots

import "vksplat/shaders/layout"

// ReduceSlots adds each visible splat's slots of the band to vProjected [N], in their order; of a splat that touches
// many tiles of the image every row of tiles is summed from left to right, the rows then added from top to bottom.
// Bands taken in order give the same sums as the whole image. vProjected must be zero before the first band.
func ReduceSlots[T Real](vProjected []ProjectedGrad[T], vSlots []ProjectedGrad[T], p *Projection[T], l *Lists, g Grid) {
	for rank, i := range l.SplatFromRank {
		slot := int(l.FirstIsect[rank])
		tiles, whole := 0, g
		whole.RowFirst, whole.RowEnd = 0, g.Rows
		eachRow(p, i, whole, func(_, x0, x1 int) { tiles += x1 - x0 })
		eachRow(p, i, g, func(_, x0, x1 int) {
			var row ProjectedGrad[T]
			sum := &vProjected[i]
			if tiles > layout.ManySlots {
				sum = &row
			}
			for range x1 - x0 {
				sum.add(&vSlots[slot])
				slot++
			}
			if tiles > layout.ManySlots {
				vProjected[i].add(&row)
			}
		})
	}
}
