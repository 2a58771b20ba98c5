package ref

// twin: reduce_slots

// ReduceSlots adds each visible splat's slots of the band to vProjected [N]: every row of tiles summed from left to right, the rows then added from top
// to bottom, so that bands taken in order give the same sums as the whole image. vProjected must be zero before the first band.
func ReduceSlots[T Real](vProjected []ProjectedGrad[T], vSlots []ProjectedGrad[T], p *Projection[T], l *Lists, g Grid) {
	for rank, i := range l.SplatFromRank {
		slot := int(l.FirstIsect[rank])
		eachRow(p, i, g, func(_, x0, x1 int) {
			var row ProjectedGrad[T]
			for range x1 - x0 {
				row.add(&vSlots[slot])
				slot++
			}
			vProjected[i].add(&row)
		})
	}
}
