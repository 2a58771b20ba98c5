package mapping

import (
	"maps"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

const (
	// A camera's place on a rig is known from leastMoments moments, in most of which it is turned by at most mostTwist
	// from there.
	leastMoments = 3
	mostTwist    = 5 * math.Pi / 180
	// rigShare of the observations that photos with poses of their own have must be left on a rig, or else it is none.
	rigShare = 0.9
	// A round that lowers the cost by less than rigGain by moving cameras on the rig is the last.
	rigRounds, rigGain = 30, 1e-4
)

// rig is cameras that are fixed to each other, and where they were. Its axes are those of one of the cameras.
type rig struct {
	*draft
	own     int            // the lens of that camera
	mounts  []adjust.Mount // of each lens
	known   []bool         // of each lens: it is on the rig
	all     [][]int        // photos of each moment
	moments [][]int        // those of placed ones whose lenses are known
	poses   []adjust.Pose  // of moments
}

// mounted places the photos that were taken at once by cameras that are fixed to each other, and adjusts all with one
// pose for each moment. Cameras that contradict this keep poses of their own.
func (d *draft) mounted() (*draft, error) {
	if !slices.ContainsFunc(d.in.Photos, func(p Photo) bool { return p.Moment > 0 }) {
		return d, nil
	}
	c := d.clone()
	r := &rig{draft: c, mounts: make([]adjust.Mount, len(d.lenses)), known: make([]bool, len(d.lenses))}
	if !r.find() {
		return d, nil
	}
	before := observations(d)
	for {
		if err := r.adjust(); err != nil {
			return d, err
		}
		if r.drop(); len(r.grow()) == 0 {
			break
		}
	}
	if float64(observations(c)) < rigShare*float64(before) {
		return d, nil
	}
	c.moments = len(r.moments)
	return c, nil
}

// adjust adjusts all in rounds, until cameras hardly move on the rig.
func (r *rig) adjust() error {
	for round := range rigRounds {
		most := max(mostOff, math.Ldexp(4*mostOff, -round)) // all were adjusted to other poses before
		r.extend(placed(r.placed), most)
		o := adjust.Options{Loss: adjust.Cauchy(most / 4), Gain: 1e-4, Steps: 15}
		if err := r.adjustMoments(o); err != nil {
			return err
		}
		gain, err := r.adjustMounts(o)
		if err != nil {
			return err
		}
		if r.filter(most); most == mostOff && gain < rigGain {
			break
		}
		report(r.draft)
	}
	return nil
}

// grow places photos that the rig's points suffice for, with all of their moments.
func (r *rig) grow() (added []int) {
	added = r.locate(leastPoints)
	for _, moment := range r.all {
		if slices.ContainsFunc(moment, func(i int) bool {
			return r.known[r.in.Photos[i].Lens] && slices.Contains(added, i)
		}) {
			r.put(moment)
		}
	}
	r.apply()
	return added
}

// drop takes moments out of the model of which every photo has too few observations or contradicts its pose.
func (r *rig) drop() {
	_, agree := r.agreement()
	for k := len(r.moments) - 1; k >= 0; k-- {
		if slices.ContainsFunc(r.moments[k], func(i int) bool {
			return r.observed(i) >= leastOwn && agree[i] >= leastAgreement
		}) {
			continue
		}
		for _, i := range r.moments[k] {
			r.dropPhoto(i)
		}
		r.moments, r.poses = slices.Delete(r.moments, k, k+1), slices.Delete(r.poses, k, k+1)
	}
}

// clone copies what growing changes.
func (d *draft) clone() *draft {
	c := *d
	c.poses, c.placed, c.lenses = slices.Clone(d.poses), slices.Clone(d.placed), slices.Clone(d.lenses)
	c.optics, c.tracks = slices.Clone(d.optics), slices.Clone(d.tracks)
	c.settled, c.dropped, c.failed = slices.Clone(d.settled), slices.Clone(d.dropped), make([]int, len(d.failed))
	for i := range c.tracks {
		c.tracks[i].sights = slices.Clone(c.tracks[i].sights)
	}
	return &c
}

// find finds the mounts from photos of the same moments that are placed, then the poses of moments, and places their
// photos. It reports whether there are any.
func (r *rig) find() bool {
	byNumber := map[int][]int{}
	together := make([]int, len(r.lenses)) // placed photos with another of their moment
	for i, p := range r.in.Photos {
		if p.Moment > 0 {
			byNumber[p.Moment] = append(byNumber[p.Moment], i)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(byNumber)) {
		r.all = append(r.all, byNumber[m])
		var there []int
		for _, i := range byNumber[m] {
			if r.placed[i] {
				there = append(there, i)
			}
		}
		for _, i := range there {
			together[r.in.Photos[i].Lens] += len(there) - 1
		}
	}
	r.own = slices.Index(together, slices.Max(together))
	mounts := 0
	for lens := range r.lenses {
		var list []adjust.Mount
		for _, moment := range r.all {
			if a, b := r.photo(moment, r.own), r.photo(moment, lens); a >= 0 && b >= 0 {
				list = append(list, relative(r.draft.poses[a], r.draft.poses[b]))
			}
		}
		if r.mounts[lens], r.known[lens] = middle(list); r.known[lens] {
			r.mounts[lens].Lens = lens
			mounts++
		}
	}
	if mounts < 2 {
		return false
	}
	for _, moment := range r.all {
		r.put(moment)
	}
	r.apply()
	return true
}

// photo returns the placed photo of a lens among those of a moment; -1 if there is none.
func (r *rig) photo(moment []int, lens int) int {
	for _, i := range moment {
		if r.placed[i] && r.in.Photos[i].Lens == lens {
			return i
		}
	}
	return -1
}

// relative returns the map from one camera's axes to those of another.
func relative(from, to adjust.Pose) (m adjust.Mount) {
	m.R = geom.Product(to.R, geom.Transposed(from.R))
	m.T = geom.Sub(to.T, geom.Rotate(m.R, from.T))
	return m
}

// middle returns the rotation that is closest to all others, and the median of the translations.
func middle(list []adjust.Mount) (m adjust.Mount, ok bool) {
	least := math.Inf(1)
	var moves [3][]float64
	for _, a := range list {
		sum, near := 0.0, 0
		for _, b := range list {
			off := geom.Length(geom.VectorFromRotation(geom.Product(a.R, geom.Transposed(b.R))))
			if sum += off; off <= mostTwist {
				near++
			}
		}
		if sum < least {
			least, m.R, ok = sum, a.R, len(list) >= leastMoments && 2*near > len(list)
		}
		for k := range moves {
			moves[k] = append(moves[k], a.T[k])
		}
	}
	for k := range moves {
		if ok {
			m.T[k] = geom.Quantile(moves[k], 0.5)
		}
	}
	return m, ok
}

// put places the photos of a moment by the one of them with most observations.
func (r *rig) put(moment []int) {
	best, most := -1, -1
	var known []int
	for _, i := range moment {
		if !r.known[r.in.Photos[i].Lens] {
			continue
		}
		known = append(known, i)
		if n := r.observed(i); n > most && r.placed[i] {
			best, most = i, n
		}
	}
	if best < 0 {
		return
	}
	m, p := &r.mounts[r.in.Photos[best].Lens], r.draft.poses[best]
	back := geom.Transposed(m.R)
	r.poses = append(r.poses, adjust.Pose{R: geom.Product(back, p.R), T: geom.Rotate(back, geom.Sub(p.T, m.T)),
		Lens: r.own})
	r.moments = append(r.moments, known)
	for _, i := range known {
		if !r.placed[i] {
			r.placed[i] = true
			r.count++
		}
	}
}

// apply computes the poses of photos.
func (r *rig) apply() {
	for k, moment := range r.moments {
		for _, i := range moment {
			m, p := &r.mounts[r.in.Photos[i].Lens], &r.draft.poses[i]
			p.R, p.T = geom.Product(m.R, r.poses[k].R), geom.Add(geom.Rotate(m.R, r.poses[k].T), m.T)
		}
	}
}

// momentOf returns for each photo 1 + the place of its moment, 0 for others.
func (r *rig) momentOf() []int {
	of := make([]int, len(r.in.Photos))
	for k, moment := range r.moments {
		for _, i := range moment {
			of[i] = k + 1
		}
	}
	return of
}

// adjustMoments adjusts points, moments and the other photos; cameras and their mounts stay.
func (r *rig) adjustMoments(o adjust.Options) error {
	p, tracks := r.problem(r.placed, true)
	photos, of := len(p.Poses), r.momentOf()
	p.Poses, p.Mounts = append(p.Poses, r.poses...), r.mounts
	for i := range p.Lenses {
		p.Lenses[i] = r.lenses[i] // nothing of it is free
	}
	for i := range p.Observations {
		x := &p.Observations[i]
		if k := of[x.Pose]; k > 0 {
			x.Mount, x.Pose = int32(1+r.in.Photos[x.Pose].Lens), int32(photos+k-1)
		}
	}
	if _, err := adjust.Solve(r.ctx, p, o); err != nil {
		return err
	}
	for i, t := range tracks {
		r.tracks[t].x = p.Points[i]
	}
	copy(r.draft.poses, p.Poses)
	copy(r.poses, p.Poses[photos:])
	r.apply()
	return nil
}

// adjustMounts adjusts the cameras and their mounts to points that stay, in the axes of moments. It returns by which
// share the cost fell.
func (r *rig) adjustMounts(o adjust.Options) (gain float64, err error) {
	p, of := &adjust.Problem{PointsFixed: true}, r.momentOf()
	photos := make([]int, len(r.lenses))
	for i := range r.tracks {
		for _, s := range r.tracks[i].sights {
			k, photo := of[s.Photo], &r.in.Photos[s.Photo]
			if !r.tracks[i].ok || !s.used || k == 0 {
				continue
			}
			at, pose := photo.Keypoints[s.Keypoint], &r.poses[k-1]
			p.Observations = append(p.Observations, adjust.Observation{Pose: int32(photo.Lens),
				Point: int32(len(p.Points)), X: float64(at[0]), Y: float64(at[1])})
			p.Points = append(p.Points, geom.Add(geom.Rotate(pose.R, r.tracks[i].x), pose.T))
		}
	}
	for _, moment := range r.moments {
		for _, i := range moment {
			photos[r.in.Photos[i].Lens]++
		}
	}
	for i, m := range r.mounts {
		l := r.lenses[i]
		if photos[i] > 0 {
			r.release(&l, i, photos[i])
		} else {
			m.R = geom.Identity
		}
		l.Params = slices.Clone(l.Params)
		p.Lenses = append(p.Lenses, l)
		p.Poses = append(p.Poses, adjust.Pose{R: m.R, T: m.T, Lens: i, Fixed: i == r.own})
	}
	sum, err := adjust.Solve(r.ctx, p, o)
	if err != nil {
		return 0, err
	}
	for i := range p.Lenses {
		r.mounts[i].R, r.mounts[i].T = p.Poses[i].R, p.Poses[i].T
		r.lenses[i].Params = p.Lenses[i].Params
	}
	r.apply()
	list := make([]scene.Calibration, len(r.lenses))
	for i := range list {
		list[i] = r.lenses[i].Calibration
	}
	r.optics, err = prepare(list)
	return 1 - sum.After/sum.Before, err
}
