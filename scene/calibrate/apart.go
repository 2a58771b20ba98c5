package calibrate

import (
	"cmp"
	"slices"

	"vksplat/internal/geom"
)

const (
	// A run of photos stands apart if by name it is among others and more than farSteps median steps from both
	// neighbours, its own observations lie farApart times as far from their points as usual, and all such photos are
	// fewer than one in fewApart.
	farSteps = 10
	farApart = 2
	fewApart = 10
	// leastRow is how many photos make an order by names.
	leastRow = 20
)

// standApart returns the photos whose poses disagree with both their neighbours and their own observations, as where
// the matches that placed them were wrong. medians are of the photos' distances, in pixels.
func (n *network) standApart(medians []float64) (apart []int) {
	if len(n.photos) < leastRow {
		return nil
	}
	row := make([]int, len(n.photos))
	for i := range row {
		row[i] = i
	}
	slices.SortFunc(row, func(a, b int) int { return cmp.Compare(n.photos[a].Name, n.photos[b].Name) })
	step := make([]float64, len(row)-1) // from a photo to the next one
	for i := range step {
		a, b := &n.photos[row[i]], &n.photos[row[i+1]]
		step[i] = geom.Length(geom.Sub(geom.TranslationOf(geom.Transposed(a.R), a.T),
			geom.TranslationOf(geom.Transposed(b.R), b.T)))
	}
	far := farSteps * geom.Quantile(slices.Clone(step), 0.5)
	usual := geom.Quantile(slices.Clone(medians), 0.5)
	for from := 0; from < len(row); {
		to := from + 1
		for to < len(row) && step[to-1] <= far {
			to++
		}
		run := row[from:to]
		whole := from == 0 || to == len(row)
		from = to
		off := make([]float64, len(run))
		for i, at := range run {
			off[i] = medians[at]
		}
		if !whole && len(run)*fewApart < len(row) && slices.Min(off) > farApart*usual {
			apart = append(apart, run...)
		}
	}
	if len(apart)*fewApart >= len(row) {
		return nil
	}
	slices.Sort(apart)
	return apart
}
