package mapping

import (
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

const (
	// A camera's mount is known from leastMoments moments, in most of which it is turned by at most mostTwist from it.
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
	own    int            // the lens of that camera
	mounts []adjust.Mount // of each lens
	known  []bool         // of each lens: it is on the rig
	poses  []adjust.Pose  // of moments
	at     []int          // of each photo: 1 + the place of its moment in poses; 0: it moves by itself
}

// mounted places all photos of moments of which one is placed, and adjusts the model with one pose for each moment.
// Cameras that contradict this keep poses of their own.
func (d *draft) mounted() (*draft, error) {
	moments := make([][]int, len(d.in.Photos)+1)
	for i, p := range d.in.Photos {
		moments[p.Moment] = append(moments[p.Moment], i)
	}
	if moments = moments[1:]; len(slices.Concat(moments...)) == 0 {
		return d, nil
	}
	r := &rig{draft: d.clone(), at: make([]int, len(d.in.Photos))}
	if !r.mount(moments) {
		return d, nil
	}
	for _, m := range moments {
		r.put(m)
	}
	r.apply()
	for round := range rigRounds {
		most := max(mostOff, math.Ldexp(4*mostOff, -round)) // all were adjusted to other poses before
		r.extend(placed(r.placed), most)
		o := adjust.Options{Loss: adjust.Cauchy(most / 4), Gain: 1e-4, Steps: 15}
		err := r.adjustMoments(o)
		gain := 0.0
		if err == nil {
			gain, err = r.adjustMounts(o)
		}
		if err != nil {
			return nil, err
		}
		if r.filter(most); most == mostOff && gain < rigGain {
			break
		}
	}
	if float64(observations(r.draft)) < rigShare*float64(observations(d)) {
		return d, nil
	}
	r.moments = len(r.poses)
	return r.draft, nil
}

// clone copies what a rig changes.
func (d *draft) clone() *draft {
	c := *d
	c.poses, c.placed, c.lenses = slices.Clone(d.poses), slices.Clone(d.placed), slices.Clone(d.lenses)
	c.tracks = slices.Clone(d.tracks)
	for i := range c.tracks {
		c.tracks[i].sights = slices.Clone(c.tracks[i].sights)
	}
	return &c
}

// mount finds the mounts of two cameras at least, relative to the one with most photos.
func (r *rig) mount(moments [][]int) bool {
	photos, mounts := make([]int, len(r.lenses)), 0
	for _, i := range slices.Concat(moments...) {
		if r.placed[i] {
			photos[r.in.Photos[i].Lens]++
		}
	}
	r.own = slices.Index(photos, slices.Max(photos))
	r.mounts, r.known = make([]adjust.Mount, len(r.lenses)), make([]bool, len(r.lenses))
	for lens := range r.lenses {
		var list []adjust.Mount
		for _, m := range moments {
			if a, b := r.photo(m, r.own), r.photo(m, lens); a >= 0 && b >= 0 {
				p, q := &r.draft.poses[a], &r.draft.poses[b]
				turn := geom.Product(q.R, geom.Transposed(p.R))
				list = append(list, adjust.Mount{R: turn, T: geom.Sub(q.T, geom.Rotate(turn, p.T)), Lens: lens})
			}
		}
		if r.mounts[lens], r.known[lens] = middle(list); r.known[lens] {
			mounts++
		} else {
			r.mounts[lens].R = geom.Identity
		}
	}
	return mounts > 1
}

// photo returns the placed photo of a lens among those of a moment; -1 if there is none.
func (r *rig) photo(moment []int, lens int) int {
	at := slices.IndexFunc(moment, func(i int) bool { return r.placed[i] && r.in.Photos[i].Lens == lens })
	if at < 0 {
		return -1
	}
	return moment[at]
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
			least, m, ok = sum, a, len(list) >= leastMoments && 2*near > len(list)
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
	for _, i := range moment {
		n := 0
		for _, p := range r.places[i] {
			if used(r.draft, p) {
				n++
			}
		}
		if n > most && r.placed[i] && r.known[r.in.Photos[i].Lens] {
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
	for _, i := range moment {
		if !r.known[r.in.Photos[i].Lens] {
			continue
		}
		if r.at[i] = len(r.poses); !r.placed[i] {
			r.placed[i] = true
			r.count++
		}
	}
}

// apply computes the poses of photos.
func (r *rig) apply() {
	for i, k := range r.at {
		if k > 0 {
			m, pose, p := &r.mounts[r.in.Photos[i].Lens], &r.poses[k-1], &r.draft.poses[i]
			p.R, p.T = geom.Product(m.R, pose.R), geom.Add(geom.Rotate(m.R, pose.T), m.T)
		}
	}
}

// adjustMoments adjusts points, moments and the other photos; cameras and their mounts stay.
func (r *rig) adjustMoments(o adjust.Options) error {
	p, tracks := r.problem(r.placed, nil, true)
	photos := len(p.Poses)
	p.Poses, p.Mounts = append(p.Poses, r.poses...), r.mounts
	copy(p.Lenses, r.lenses) // nothing of them is free
	for i := range p.Observations {
		x := &p.Observations[i]
		if k := r.at[x.Pose]; k > 0 {
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
	p := &adjust.Problem{PointsFixed: true}
	for i := range r.tracks {
		for _, s := range r.tracks[i].sights {
			k, photo := r.at[s.Photo], &r.in.Photos[s.Photo]
			if !r.tracks[i].ok || !s.used || k == 0 {
				continue
			}
			at, pose := photo.Keypoints[s.Keypoint], &r.poses[k-1]
			p.Observations = append(p.Observations, adjust.Observation{Pose: int32(photo.Lens),
				Point: int32(len(p.Points)), X: float64(at[0]), Y: float64(at[1])})
			p.Points = append(p.Points, geom.Add(geom.Rotate(pose.R, r.tracks[i].x), pose.T))
		}
	}
	for i, m := range r.mounts {
		l := r.lenses[i]
		if r.known[i] && l.Model.Calibrated() > 0 {
			r.release(&l, i, len(r.poses))
		}
		l.Params = slices.Clone(l.Params)
		p.Lenses = append(p.Lenses, l)
		p.Poses = append(p.Poses, adjust.Pose{R: m.R, T: m.T, Lens: i, Fixed: i == r.own})
	}
	sum, err := adjust.Solve(r.ctx, p, o)
	if err != nil {
		return 0, err
	}
	list := make([]scene.Calibration, len(r.lenses))
	for i := range list {
		r.mounts[i].R, r.mounts[i].T = p.Poses[i].R, p.Poses[i].T
		r.lenses[i].Params, list[i] = p.Lenses[i].Params, p.Lenses[i].Calibration
	}
	r.apply()
	r.optics, err = prepare(list)
	return 1 - sum.After/sum.Before, err
}
