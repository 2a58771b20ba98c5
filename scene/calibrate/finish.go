package calibrate

import (
	"context"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

const (
	// leastPlaced is how many points a photo must show for its pose to be found by them.
	leastPlaced = 12
	// lostPixels is the mean distance beyond which a point is where no photo shows it: its matches are wrong.
	lostPixels = 4
)

// finish adjusts the whole network with the lens of a trial, brings the cameras back into the frame that they had, and
// finds the poses of held-out photos by the points that training photos determine. unit is the network normalised; only
// a share of the points decides where cameras are. It returns the held-out photos that keep their poses because they
// show too few of these.
func (n *network) finish(ctx context.Context, unit *network, best *trial, share float64) (done *network,
	unplaced []string, err error) {
	t := newTrial(unit, share, 0)
	t.begin(best)
	if err := t.adjustPoints(ctx, 3); err != nil { // the ladder left some out
		return nil, nil, err
	}
	if _, err := adjust.Solve(ctx, &t.Problem, adjust.Options{Loss: robust, Gain: 1e-5, Steps: 3}); err != nil {
		return nil, nil, err
	}
	if share < 1 { // the other points follow
		all := newTrial(unit, 1, 0)
		all.begin(t)
		if err := all.adjustPoints(ctx, 6); err != nil {
			return nil, nil, err
		}
		t = all
	}
	done = &network{ids: n.ids, keys: n.keys, seen: n.seen, photos: slices.Clone(n.photos),
		points: slices.Clone(n.points)}
	for _, l := range t.Lenses {
		done.lenses = append(done.lenses, l.Calibration)
	}
	for i := range done.photos {
		done.photos[i].Lens = t.lensOf[n.photos[i].Lens]
	}
	if err := t.moveBack(n, done); err != nil {
		return nil, nil, err
	}
	if err := done.losePoints(t.points); err != nil {
		return nil, nil, err
	}
	unplaced, err = done.place(ctx)
	return done, unplaced, err
}

// adjustPoints adjusts points alone.
func (t *trial) adjustPoints(ctx context.Context, steps int) error {
	p := t.Problem
	p.Poses, p.Lenses = slices.Clone(p.Poses), slices.Clone(p.Lenses)
	for i := range p.Poses {
		p.Poses[i].Fixed = true
	}
	for i := range p.Lenses {
		p.Lenses[i].Free = [scene.MaxCalibrated]bool{}
	}
	_, err := adjust.Solve(ctx, &p, adjust.Options{Loss: robust, Gain: 1e-5, Steps: steps})
	return err
}

// begin gives a trial the lenses, poses and points of another one.
func (t *trial) begin(from *trial) {
	t.Lenses, t.lensOf = slices.Clone(from.Lenses), from.lensOf
	for i, p := range from.Poses {
		p.Fixed = t.Poses[i].Fixed
		t.Poses[i] = p
	}
	for i, at := range from.points {
		if k, found := slices.BinarySearch(t.points, at); found {
			t.Points[k] = from.Points[i]
		}
	}
}

// losePoints drops the observations of points that training photos see and were not adjusted, or that are far from
// where these see them.
func (n *network) losePoints(adjusted []int) error {
	list, err := n.problem().Residuals()
	if err != nil {
		return err
	}
	count, sum := make([]int, len(n.points)), make([]float64, len(n.points))
	for i, o := range n.seen {
		if !n.photos[o.Pose].HeldOut {
			count[o.Point]++
			sum[o.Point] += min(math.Hypot(list[i][0], list[i][1]), mostCounted)
		}
	}
	n.lost = map[int]bool{}
	for i := range n.points {
		_, found := slices.BinarySearch(adjusted, i)
		if count[i] > 0 && (!found || sum[i] > lostPixels*float64(count[i])) {
			n.lost[i] = true
		}
	}
	n.seen = slices.DeleteFunc(slices.Clone(n.seen), func(o adjust.Observation) bool { return n.lost[int(o.Point)] })
	return nil
}

// moveBack gives a network the poses and points of a trial, in the frame of the network that it is of.
func (t *trial) moveBack(n, done *network) error {
	var from, to [][3]float64
	var turns [][9]float64
	for i, at := range t.photos {
		if was, p := &n.photos[at], &t.Poses[i]; !p.Fixed {
			from = append(from, geom.TranslationOf(geom.Transposed(p.R), p.T))
			to = append(to, geom.TranslationOf(geom.Transposed(was.R), was.T))
			turns = append(turns, geom.Product(geom.Transposed(was.R), p.R))
		}
	}
	move, err := fitSimilarity(from, to, turns)
	if err != nil {
		return err
	}
	for i, at := range t.photos {
		if p, own := &done.photos[at], &t.Poses[i]; !own.Fixed {
			p.R = geom.Product(own.R, geom.Transposed(move.r))
			p.T = geom.TranslationOf(p.R, move.apply(geom.TranslationOf(geom.Transposed(own.R), own.T)))
		}
	}
	for i, at := range t.points {
		done.points[at] = move.apply(t.Points[i])
	}
	return nil
}

// place finds the poses of held-out photos by points that stay, as do the lenses. It returns those that show too few
// points, which keep their poses.
func (n *network) place(ctx context.Context) (unplaced []string, err error) {
	held := n.problem()
	known := make([]bool, len(n.points)) // by training photos
	for _, o := range n.seen {
		known[o.Point] = known[o.Point] || !n.photos[o.Pose].HeldOut
	}
	held.Observations = nil
	count := make([]int, len(n.photos))
	for _, o := range n.seen {
		if n.photos[o.Pose].HeldOut && known[o.Point] {
			held.Observations = append(held.Observations, o)
			count[o.Pose]++
		}
	}
	for i := range n.photos {
		if p := &n.photos[i]; p.HeldOut {
			held.Poses[i].Fixed = count[i] < leastPlaced
			if held.Poses[i].Fixed {
				unplaced = append(unplaced, p.Name)
			}
		}
	}
	if _, err := adjust.Solve(ctx, held, adjust.Options{Loss: robust, Gain: 1e-5, Steps: 12}); err != nil {
		return nil, err
	}
	for i := range n.photos {
		n.photos[i].R, n.photos[i].T = held.Poses[i].R, held.Poses[i].T
	}
	return unplaced, nil
}
