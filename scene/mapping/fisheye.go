package mapping

import (
	"cmp"
	"context"
	"math"
	"slices"

	"vksplat/internal/parallel"
	"vksplat/scene/twoview"
)

const (
	// The guess of a fisheye's focal length is off by up to fishFactor, in fishSteps either way.
	fishFactor, fishSteps = 2, 4
	// fishPairs is how many pairs decide.
	fishPairs = 8
)

// withFisheyes returns the input with focal lengths of the fisheyes whose own are guesses, all wrong by one factor: the
// one with which the best pairs have most inliers. Pairs are related by them then, as if they were known: fundamental
// matrices, which tell focal lengths of pinholes, are none of fisheyes.
func (in *Input) withFisheyes(ctx context.Context) (*Input, error) {
	guessed := make([]bool, len(in.Lenses))
	for i := range in.Lenses {
		l := &in.Lenses[i]
		info, _ := l.Model.Info()
		guessed[i] = info.Fish && !l.FocalKnown
	}
	if !slices.Contains(guessed, true) {
		return in, nil
	}
	out := *in
	out.Pairs = slices.Clone(in.Pairs)
	var list []*Pair
	for i := range out.Pairs {
		if p := &out.Pairs[i]; guessed[in.Photos[p.A].Lens] || guessed[in.Photos[p.B].Lens] {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b *Pair) int {
		return cmp.Compare(len(b.Relation.Inliers), len(a.Relation.Inliers))
	})
	most, best := -1, 0
	for step := -fishSteps; step <= fishSteps; step++ {
		sum := 0
		relations, err := out.relate(ctx, guessed, in.Lenses, step, list[:min(fishPairs, len(list))])
		if err != nil {
			return nil, err
		}
		for _, r := range relations {
			sum += len(r.Inliers)
		}
		if sum > most {
			most, best = sum, step
		}
	}
	relations, err := out.relate(ctx, guessed, in.Lenses, best, list)
	for i := range relations {
		list[i].Relation = relations[i]
	}
	return &out, err
}

// relate gives lenses whose focal lengths are guessed other ones, and relates pairs by them.
func (in *Input) relate(ctx context.Context, guessed []bool, guesses []Lens, step int, list []*Pair) (
	[]twoview.Relation, error) {
	in.Lenses = slices.Clone(guesses)
	views := make([]twoview.View, len(in.Photos))
	for i := range in.Lenses {
		l := &in.Lenses[i]
		if guessed[i] {
			l.Params, l.FocalKnown = slices.Clone(l.Params), true
			setFocal(&l.Calibration, l.Params[0]*math.Pow(fishFactor, float64(step)/fishSteps))
		}
		optics, err := l.Optics(l.Width, l.Height)
		if err != nil {
			return nil, err
		}
		for k, p := range in.Photos {
			if p.Lens == i {
				views[k] = twoview.View{Optics: optics, FocalKnown: l.FocalKnown, Points: p.Keypoints}
			}
		}
	}
	found := make([]twoview.Relation, len(list))
	parallel.For(len(list), func(i int) {
		if ctx.Err() != nil {
			return
		}
		p := list[i]
		found[i] = twoview.Relate(views[p.A], views[p.B], p.Matches,
			twoview.Options{Key: uint64(p.A)<<32 | uint64(p.B)})
	})
	return found, ctx.Err()
}
