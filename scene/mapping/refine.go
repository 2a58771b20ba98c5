package mapping

import (
	"cmp"
	"math"
	"slices"

	"vksplat/scene"
	"vksplat/scene/adjust"
)

const (
	// mostNear is how many photos are adjusted with new ones: those that share most points with them.
	mostNear = 8
	// leastOwn is how many observations a photo keeps, or else it is not placed any more.
	leastOwn = 12
	// A principal point of leastPrincipal photos moves, with a prior of principalSigma, if then its standard deviation
	// is below leastSure: shares of the photo's longer side.
	leastPrincipal            = 5
	principalSigma, leastSure = 0.01, 0.001
	// leastTerms is how many photos determine more of a lens's distortion than its first term.
	leastTerms = 6
	// leastAgreement is the share of a photo's matches that the model confirms, or else its pose is wrong.
	leastAgreement = 0.35
	// A pair is open if the model confirms less than openShare of its matches, and loopShare of the photo's longer side
	// is how far both ends of a loop may be apart.
	openShare, loopShare = 0.6, 0.1
	// sameShare of the observations may come or go in a round that is the last.
	sameShare = 1e-3
)

// effort says how thoroughly all of a model is adjusted.
type effort struct {
	rounds int
	adjust.Options
	whole bool // by all tracks, not a sample
}

// loss of an observation, whose noise is about a pixel.
var loss = adjust.Cauchy(1)

var (
	growing = effort{1, adjust.Options{Loss: loss, Steps: 10, Gain: 1e-3}, false}
	nearly  = effort{1, adjust.Options{Loss: loss, Steps: 20, Gain: 1e-4}, false}
	final   = effort{3, adjust.Options{Loss: loss, Steps: 6, Gain: 1e-4}, true}
)

// adjustPhotos adjusts photos, those that share most points with them, and the points of all these.
func adjustPhotos(d *draft, photos []int) error {
	free := make([]bool, len(d.placed))
	for _, i := range photos {
		free[i] = true
	}
	shared := make([]int, len(d.placed))
	for _, i := range photos {
		for _, p := range d.places[i] {
			t := &d.tracks[p.track]
			if !t.ok || !t.sights[p.sight].used {
				continue
			}
			for _, s := range t.sights {
				if s.used && !free[s.Photo] {
					shared[s.Photo]++
				}
			}
		}
	}
	var near []int
	for i, n := range shared {
		if n > 0 {
			near = append(near, i)
		}
	}
	slices.SortStableFunc(near, func(a, b int) int { return cmp.Compare(shared[b], shared[a]) })
	if d.count > 2 {
		for _, i := range near[:max(0, min(mostNear, len(near)-1))] {
			free[i] = d.in.Photos[i].Given == nil
		}
	}
	return d.solve(free, d.sample(free), adjust.Options{Loss: loss, Gain: 1e-3, Steps: 8}, false)
}

// adjustWhole adjusts all that is placed, and extends and filters tracks, in rounds until these hardly change.
func (d *draft) adjustWhole(e effort) error {
	before := 0
	for range e.rounds {
		d.extend(placed(d.placed), mostOff)
		now := observations(d)
		if math.Abs(float64(now-before)) < sameShare*float64(now) {
			break
		}
		before = now
		var some []bool
		if !e.whole {
			some = d.sample(d.placed)
		}
		if err := d.solve(d.placed, some, e.Options, true); err != nil {
			return err
		}
		d.filter(mostOff)
		d.dropPhotos()
	}
	return nil
}

func used(d *draft, p place) bool { return d.tracks[p.track].sights[p.sight].used }

func observations(d *draft) (n int) {
	for i := range d.tracks {
		for _, s := range d.tracks[i].sights {
			if s.used {
				n++
			}
		}
	}
	return n
}

// agreement returns the shares of their matches that the model confirms, of pairs of placed photos with fewPoints at
// least, and of photos in all of their pairs with placed ones: wrong poses contradict most matches. Without any
// match a share is 1.
func (d *draft) agreement() (pairs, photos []float64) {
	common := make([]int, len(d.pairs))
	d.eachPair(func(i int) {
		for _, at := range d.pairs[i].Relation.Inliers {
			match := d.pairs[i].Matches[at]
			a, b := d.at[d.pairs[i].A][match[0]], d.at[d.pairs[i].B][match[1]]
			if a.track >= 0 && a.track == b.track && used(d, a) && used(d, b) {
				common[i]++
			}
		}
	})
	pairs, photos = make([]float64, len(d.pairs)), make([]float64, len(d.placed))
	all := make([]float64, len(d.placed))
	for i, p := range d.pairs {
		n := float64(len(p.Relation.Inliers))
		given := d.in.Photos[p.A].Given != nil && d.in.Photos[p.B].Given != nil
		if pairs[i] = 1; given || !d.placed[p.A] || !d.placed[p.B] {
			continue
		}
		if n >= fewPoints {
			pairs[i] = float64(common[i]) / n
		}
		for _, k := range [2]int{p.A, p.B} {
			photos[k] += float64(common[i])
			all[k] += n
		}
	}
	for i, n := range all {
		photos[i] = min(1, (photos[i]+1)/(n+1))
	}
	return pairs, photos
}

// closeLoops adjusts a model with open pairs by observations that are far off, then by less and less so.
func closeLoops(d *draft) error {
	if pairs, _ := d.agreement(); len(pairs) == 0 || slices.Min(pairs) >= openShare {
		return nil
	}
	for most := loopShare * float64(longestSide(d)); most > mostOff; most /= 4 {
		d.extend(placed(d.placed), most)
		o := adjust.Options{Loss: adjust.Cauchy(most / 4), Gain: 1e-3, Steps: 15}
		if err := d.solve(d.placed, d.sample(d.placed), o, true); err != nil {
			return err
		}
		d.filter(most)
	}
	return nil
}

func longestSide(d *draft) (most int) {
	for _, l := range d.lenses {
		most = max(most, l.Width, l.Height)
	}
	return most
}

// placed lists the places of what is true.
func placed(list []bool) (places []int) {
	for i, yes := range list {
		if yes {
			places = append(places, i)
		}
	}
	return places
}

// problem returns the adjustment of the photos that are free and not given, the points that they show, and lenses: all
// of them if whole, else those of which all photos are free. tracks are those of its points: all, or some.
func (d *draft) problem(free, some []bool, whole bool) (p *adjust.Problem, tracks []int) {
	free = slices.Clone(free)
	for i := range free {
		free[i] = free[i] && d.in.Photos[i].Given == nil
	}
	p = &adjust.Problem{Poses: slices.Clone(d.poses)}
	users, fixed := make([]int, len(d.lenses)), make([]bool, len(d.lenses))
	for i := range p.Poses {
		p.Poses[i].Fixed = !free[i]
		if lens := p.Poses[i].Lens; d.placed[i] {
			users[lens]++
			fixed[lens] = fixed[lens] || !free[i] && !whole
		}
	}
	for i, l := range d.lenses {
		l.Params = slices.Clone(l.Params)
		if !fixed[i] && !d.in.Lenses[i].Fixed && users[i] > 0 && d.count > 2 && l.Model.Calibrated() > 0 {
			d.release(&l, i, users[i])
		}
		p.Lenses = append(p.Lenses, l)
	}
	for i := range d.tracks {
		t := &d.tracks[i]
		if some != nil && !some[i] || !t.seen(free) {
			continue
		}
		for _, s := range t.sights {
			if at := d.in.Photos[s.Photo].Keypoints[s.Keypoint]; s.used {
				p.Observations = append(p.Observations, adjust.Observation{Pose: s.Photo, Point: int32(len(tracks)),
					X: float64(at[0]), Y: float64(at[1])})
			}
		}
		tracks, p.Points = append(tracks, i), append(p.Points, t.x)
	}
	return p, tracks
}

// solve solves the problem of the photos that are free. If it is that of some tracks, the others' points follow.
func (d *draft) solve(free, some []bool, o adjust.Options, whole bool) error {
	p, tracks := d.problem(free, some, whole)
	if len(tracks) == 0 {
		return d.ctx.Err()
	}
	if _, err := adjust.Solve(d.ctx, p, o); err != nil {
		return err
	}
	for i, t := range tracks {
		d.tracks[t].x = p.Points[i]
	}
	copy(d.poses, p.Poses)
	list := make([]scene.Calibration, len(p.Lenses))
	for i := range p.Lenses {
		l := &p.Lenses[i]
		d.lenses[i].Params, list[i] = l.Params, l.Calibration
		d.settled[i] = d.settled[i] || l.Free[0]
	}
	var err error
	if d.optics, err = prepare(list); err == nil && some != nil {
		d.refinePoints(free, some, o.Loss, 5, 1e-2)
	}
	return err
}

// release lets those parameters of a lens move that its photos can determine: the focal length, then k1, then all.
func (d *draft) release(l *adjust.Lens, lens, photos int) {
	info, _ := l.Model.Info()
	for i := range info.Focals {
		l.Free[i] = true
		l.Sigma[i] = 0.2 * d.mapper.lenses[lens].Params[0]
	}
	if d.principal[lens] && photos >= leastPrincipal {
		for i := range 2 {
			l.Free[info.Focals+i], l.Sigma[info.Focals+i] = true, principalSigma*float64(max(l.Width, l.Height))
		}
	}
	first := info.Focals + 2
	for k := first; k < l.Model.Calibrated() && (k == first || photos >= leastTerms); k++ {
		l.Free[k], l.Sigma[k] = true, 0.1
	}
}

// dropPhotos takes photos with too few observations, or whose matches contradict their poses, out of the model.
func (d *draft) dropPhotos() {
	_, agree := d.agreement()
	for i, placed := range d.placed {
		n := 0
		for _, p := range d.places[i] {
			if used(d, p) {
				n++
			}
		}
		if !placed || d.in.Photos[i].Given != nil || n >= leastOwn && agree[i] >= leastAgreement {
			continue
		}
		d.placed[i] = false
		d.count--
		d.dropped[i]++
		for _, p := range d.places[i] {
			d.tracks[p.track].sights[p.sight].used = false
		}
	}
}

// finish adjusts all to the end, with those principal points that are well determined, places photos again that turn
// out to be wrong, and chooses the models of lenses.
func (d *draft) finish() error {
	before := d.count
	releasePrincipal(d)
	err := d.adjustAll()
	if err == nil && d.count < before {
		if err = d.grow(); err == nil {
			err = d.adjustAll()
		}
	}
	if err != nil {
		return err
	}
	changed, err := chooseLenses(d)
	if err == nil && changed {
		err = d.adjustWhole(final)
	}
	return err
}

// adjustAll adjusts by a sample, then by all tracks, and at last points alone: those with wrong observations converge
// last, and hardly move cameras.
func (d *draft) adjustAll() error {
	for _, e := range []effort{nearly, final} {
		if err := d.adjustWhole(e); err != nil {
			return err
		}
	}
	d.extend(placed(d.placed), mostOff)
	d.refinePoints(d.placed, nil, loss, 2, 1e-4)
	d.filter(mostOff)
	d.dropPhotos()
	return nil
}

// releasePrincipal lets principal points move from now on that the observations would determine well.
func releasePrincipal(d *draft) {
	for i := range d.principal {
		d.principal[i] = true
	}
	p, _ := d.problem(d.placed, nil, true)
	clear(d.principal)
	sigmasOf, err := p.Sigmas(loss) // an error, here and below: nothing is determined
	for i := range p.Lenses {
		l := &p.Lenses[i]
		info, _ := l.Model.Info()
		if err != nil || !l.Free[info.Focals] {
			continue
		}
		sigmas, err := sigmasOf(i, info.Focals, info.Focals+1)
		d.principal[i] = err == nil && max(sigmas[0], sigmas[1]) < leastSure*float64(max(l.Width, l.Height))
	}
}
