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
	// leastRow is how many photos make an order by names. Among fewer, one photo stands apart if it is more than
	// farMiddle times as far from the middle of the cameras as usual, and its observations lie farAlone times as far
	// from their points. In real captures, and in 18 photos of each, wrong poses have at least 2.4 and 2.9; right ones
	// that exceed one of the bounds have at most 1.6 of the other.
	leastRow            = 20
	farMiddle, farAlone = 2, 2.5
)

// standApart returns the photos whose poses disagree with both their neighbours and their own observations, as where
// the matches that placed them were wrong. medians are of the photos' distances, in pixels. Training photos are judged
// by each other, held-out ones by all.
func (n *network) standApart(medians []float64) (apart []int) {
	var training, all []int
	for i := range n.photos {
		if all = append(all, i); !n.photos[i].HeldOut {
			training = append(training, i)
		}
	}
	apart = n.apartIn(training, medians)
	for _, at := range n.apartIn(all, medians) {
		if n.photos[at].HeldOut {
			apart = append(apart, at)
		}
	}
	slices.Sort(apart)
	return apart
}

// apartIn returns the photos of a row that stand apart in it.
func (n *network) apartIn(row []int, medians []float64) (apart []int) {
	if len(row) < leastRow {
		return n.aloneIn(row, medians)
	}
	slices.SortFunc(row, func(a, b int) int { return cmp.Compare(n.photos[a].Name, n.photos[b].Name) })
	step := make([]float64, len(row)-1) // from a photo to the next one
	for i := range step {
		step[i] = geom.Length(geom.Sub(n.centre(row[i]), n.centre(row[i+1])))
	}
	far := farSteps * geom.Quantile(slices.Clone(step), 0.5)
	own := make([]float64, len(row))
	for i, at := range row {
		own[i] = medians[at]
	}
	usual := geom.Quantile(own, 0.5)
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
	return apart
}

// aloneIn returns the photo, if it is one, that stands apart among those of a row which is too short for an order.
func (n *network) aloneIn(row []int, medians []float64) (apart []int) {
	if len(row) < leastPhotos {
		return nil
	}
	own, distances := make([]float64, len(row)), make([]float64, len(row))
	var middle [3]float64
	for k := range middle {
		for i, at := range row {
			distances[i] = n.centre(at)[k]
		}
		middle[k] = geom.Quantile(distances, 0.5)
	}
	for i, at := range row {
		own[i], distances[i] = medians[at], geom.Length(geom.Sub(n.centre(at), middle))
	}
	usual, far := geom.Quantile(slices.Clone(own), 0.5), geom.Quantile(slices.Clone(distances), 0.5)
	for i, at := range row {
		if distances[i] > farMiddle*far && own[i] > farAlone*usual {
			apart = append(apart, at)
		}
	}
	if len(apart) > 1 {
		return nil
	}
	return apart
}

// centre returns where a photo was taken.
func (n *network) centre(photo int) [3]float64 {
	p := &n.photos[photo]
	return geom.TranslationOf(geom.Transposed(p.R), p.T)
}
