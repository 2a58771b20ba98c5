package mapping

import (
	"cmp"
	"context"
	"math"
	"slices"

	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/twoview"
)

const (
	// seedAngle is from where on a larger angle between the rays to a point makes a pair no better to begin with.
	seedAngle = 10 * math.Pi / 180
	// enoughInliers is about how many inliers give a relative pose that is good enough to begin with.
	enoughInliers = 80
	// leastSeed is how many points the first two photos have.
	leastSeed = 30
	// mostSeeds is how many pairs are tried before there is nothing to begin with, and mostModels how many models are
	// grown, each from another pair, before the largest of them is good enough.
	mostSeeds, mostModels = 30, 4
)

// mapper is what all models of a capture begin with.
type mapper struct {
	ctx     context.Context
	in      *Input
	o       Options
	lenses  []scene.Calibration
	start   []*scene.Optics // of lenses
	rays    [][][3]float64  // of each keypoint with a match; zeros where the lens shows none
	pairs   []*Pair         // that agree with the others
	motions []motion        // of pairs
	tracks  []track
	places  [][]place // of each photo
	at      [][]place // of each keypoint of each photo; {-1, -1} without a track
}

func newMapper(ctx context.Context, in *Input, o Options) (m *mapper, err error) {
	if in, err = in.withFisheyes(ctx); err != nil {
		return nil, err
	}
	m = &mapper{ctx: ctx, in: in, o: o}
	for i := range in.Lenses {
		m.lenses = append(m.lenses, in.Lenses[i].begun())
	}
	calibrateFocals(in, m.lenses)
	if m.start, err = prepare(m.lenses); err != nil {
		return nil, err
	}
	for i := range in.Pairs {
		if p := &in.Pairs[i]; len(p.Relation.Inliers) > 0 && p.Relation.Kind != twoview.Unrelated &&
			p.Relation.Kind != twoview.Watermark {
			m.pairs = append(m.pairs, p)
		}
	}
	m.findRays()
	m.findMotions()
	m.dropContradicting()
	m.tracks = buildTracks(in, m.pairs)
	m.places, m.at = make([][]place, len(in.Photos)), make([][]place, len(in.Photos))
	for i, p := range in.Photos {
		m.at[i] = slices.Repeat([]place{{-1, -1}}, len(p.Keypoints))
	}
	for i, t := range m.tracks {
		for k, s := range t.sights {
			p := place{int32(i), int32(k)}
			m.places[s.Photo], m.at[s.Photo][s.Keypoint] = append(m.places[s.Photo], p), p
		}
	}
	return m, ctx.Err()
}

// findRays computes the rays of keypoints with matches.
func (m *mapper) findRays() {
	matched := make([][]bool, len(m.in.Photos))
	m.rays = make([][][3]float64, len(m.in.Photos))
	for i, p := range m.in.Photos {
		matched[i], m.rays[i] = make([]bool, len(p.Keypoints)), make([][3]float64, len(p.Keypoints))
	}
	for _, p := range m.pairs {
		for _, at := range p.Relation.Inliers {
			matched[p.A][p.Matches[at][0]], matched[p.B][p.Matches[at][1]] = true, true
		}
	}
	parallel.For(len(m.rays), func(i int) {
		o := m.start[m.in.Photos[i].Lens]
		for k, yes := range matched[i] {
			if at := m.in.Photos[i].Keypoints[k]; yes {
				m.rays[i][k], _ = o.Ray(float64(at[0]), float64(at[1]))
			}
		}
	})
}

func prepare(lenses []scene.Calibration) (list []*scene.Optics, err error) {
	for _, k := range lenses {
		o, err := k.Optics(k.Width, k.Height)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// eachPair calls f for all pairs, on all cores, until the context is done. f may change what belongs to its pair alone.
func (m *mapper) eachPair(f func(i int)) {
	parallel.For(len(m.pairs), func(i int) {
		if m.ctx.Err() == nil {
			f(i)
		}
	})
}

// search grows models from the best pairs until one has most of the photos that hang together, and returns the largest.
// Planar pairs begin where others do not get that far.
func (m *mapper) search() (best *draft, err error) {
	if best, err = m.grown(nil); err == nil && !m.enough(best) {
		m.eachPair(func(i int) {
			p, c := m.pairs[i], &m.motions[i]
			*c = motion{}
			if p.Relation.Kind == twoview.Planar {
				*c = m.relate(p)
				c.score = m.score(p, c)
			}
		})
		best, err = m.grown(best)
	}
	m.rays, m.tracks = nil, nil // adjustment needs the memory
	if best != nil && err == nil {
		if err = best.finish(); err == nil {
			best, err = best.mounted()
		}
	}
	if err == nil && (best == nil || best.count < 2) {
		err = ErrNoPair
	}
	return best, err
}

// grownFromGiven places photos among those with given places.
func (m *mapper) grownFromGiven() (d *draft, err error) {
	d = newDraft(m)
	for i, p := range m.in.Photos {
		if g := p.Given; g != nil {
			d.poses[i].R, d.poses[i].T, d.placed[i] = g.R, g.T, true
			d.count++
		}
	}
	if d.optics, err = prepare(m.lenses); err != nil {
		return nil, err
	}
	d.extend(placed(d.placed), mostOff)
	d.filter(mostOff)
	if err = d.grow(); err == nil {
		err = d.finish()
	}
	return d, err
}

// enough reports whether a model has half of the photos of the largest part that hangs together.
func (m *mapper) enough(d *draft) bool {
	most := 0
	for _, members := range components(len(m.in.Photos), m.pairs) {
		most = max(most, len(members))
	}
	return d != nil && 2*d.count >= most
}

// grown returns the largest model that grows from one of the best pairs, or the one that there is. It is nil if no pair
// has enough points.
func (m *mapper) grown(best *draft) (*draft, error) {
	var order []int
	for i, c := range m.motions {
		if c.score > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.motions[b].score, m.motions[a].score) })
	models := 0
	for _, i := range order[:min(mostSeeds, len(order))] {
		p := m.pairs[i]
		if models >= mostModels || m.enough(best) {
			break
		}
		if best != nil && best.placed[p.A] && best.placed[p.B] {
			continue
		}
		d := newDraft(m)
		began, err := d.begin(i)
		if err == nil && began {
			err = d.grow()
			models++
		}
		if err != nil {
			return nil, err
		}
		if began && (best == nil || d.count > best.count) {
			best = d
		}
	}
	return best, nil
}

// components lists the photos that hang together by pairs, each with its members in order, by their first photo.
func components(photos int, pairs []*Pair) (list [][]int) {
	parent := make([]int, photos)
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, p := range pairs {
		a, b := find(p.A), find(p.B)
		parent[max(a, b)] = min(a, b)
	}
	at := map[int]int{}
	for i := range photos {
		root := find(i)
		if _, known := at[root]; !known {
			at[root] = len(list)
			list = append(list, nil)
		}
		list[at[root]] = append(list[at[root]], i)
	}
	return list
}
