package calibrate

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

const (
	// mostSpread is by which factor focal lengths of photos of one device at one zoom are off their median at most.
	mostSpread = 1.1
	// mostShift is how far the principal point moves at most, and leastSure how well it must be determined: its
	// standard deviation. Both are shares of the photo's longer side.
	mostShift, leastSure = 0.05, 0.001
	// mostFocal is by which factor a focal length changes at most.
	mostFocal = 1.5
)

// robust is the loss of an observation: a match that is wrong hardly counts.
var robust = adjust.Cauchy(1)

// A rung is a set of distortion terms that move together, as places after focal lengths and principal point.
type rung struct {
	name  string
	terms []int
}

var (
	perspective = []rung{{"focal length", nil}, {"k1", []int{0}}, {"k1, k2", []int{0, 1}},
		{"k1, k2, p1, p2", []int{0, 1, 2, 3}}}
	fisheye = []rung{{"focal length", nil}, {"k1", []int{0}}, {"k1, k2", []int{0, 1}}, {"k1 to k4", []int{0, 1, 2, 3}}}
)

// A Rung is what one step of the ladder brought.
type Rung struct {
	Name  string
	Share float64 // by which the held-back cost fell
	Kept  bool
}

// ladder is the best trial so far, and its held-back costs.
type ladder struct {
	ctx  context.Context
	n    *network
	best *trial
	last *trial // the richest lens so far, kept or not: the next rung begins there
	cost []float64
	list []Rung
}

// climb tries richer lenses one at a time, as long as held-back observations say so. The given poses and points were
// found with what is held back, which is in their favour: what is better even so is surely better. Richer lenses are
// compared with poses and points that were found again with the given lens.
func climb(ctx context.Context, n *network, share float64) (*ladder, error) {
	l := &ladder{ctx: ctx, n: n}
	given := newTrial(n, share, adjust.HeldBack)
	if len(given.judges) < leastSeen {
		return nil, errors.New("too few observations are of points that several photos show")
	}
	cost, err := given.judge()
	if err == nil {
		err = l.try("poses", given)
	}
	if err != nil {
		return nil, err
	}
	fell, kept := adjust.Lower(l.cost, cost)
	l.list = append(l.list, Rung{"poses", fell, kept})
	if shared := given.shared(n); shared != nil {
		if err := l.try("shared", shared); err != nil {
			return nil, err
		}
	}
	for i := range l.best.Lenses {
		k := &l.best.Lenses[i]
		info, _ := k.Model.Info()
		var ok bool
		if k.Calibration, ok = k.Calibration.Raised(); ok && info.Focals == 1 {
			copy(k.Free[1:], k.Free[:]) // now that there are two focal lengths
		}
	}
	// A rung that brings nothing does not end the climb: k1 alone may, where k1 and k2 together bring much.
	l.last = l.best
	for i := range perspective {
		next := l.last.clone()
		for k := range next.Lenses {
			release(&next.Lenses[k], i)
		}
		if err := l.try(perspective[i].name, next); err != nil {
			return nil, err
		}
	}
	next := l.best.clone()
	for i := range next.Lenses {
		if k := &next.Lenses[i]; k.Model == scene.LensOpenCV || k.Model == scene.LensOpenCVFisheye {
			k.Free[0], k.Free[1], k.Free[2], k.Free[3] = true, true, true, true
		}
	}
	return l, l.try(principalPoint, next)
}

// principalPoint is the name of the last rung.
const principalPoint = "principal point"

// release lets the focal lengths and the distortion of a rung move.
func release(k *adjust.Lens, step int) {
	list := perspective
	switch k.Model {
	case scene.LensOpenCV:
	case scene.LensOpenCVFisheye:
		list = fisheye
	default:
		list = make([]rung, len(perspective))
	}
	info, _ := k.Model.Info()
	for i := range info.Focals {
		k.Free[i] = true
	}
	for _, term := range list[step].terms {
		k.Free[4+term] = true
	}
}

// try adjusts a trial and keeps it if held-back observations say so.
func (l *ladder) try(name string, next *trial) error {
	if _, err := adjust.Solve(l.ctx, &next.Problem, adjust.Options{Loss: robust, Gain: 1e-4, Steps: 8}); err != nil {
		return err
	}
	now, err := next.judge()
	if err != nil {
		return err
	}
	if l.best == nil {
		l.best, l.cost = next, now
		return nil
	}
	share, kept := adjust.Lower(now, l.cost)
	if name == "shared" { // fewer parameters: no worse is good enough
		_, worse := adjust.Lower(l.cost, now)
		kept = !worse
	}
	plausible := l.plausible(next)
	if plausible {
		l.last = next
	}
	kept = kept && plausible && (name != principalPoint || next.sure())
	l.list = append(l.list, Rung{name, share, kept})
	if kept {
		l.best, l.cost = next, now
	}
	return nil
}

// plausible reports whether lenses are some that a camera could have, and project as much of the photo as given ones.
func (l *ladder) plausible(t *trial) bool {
	for i := range t.Lenses {
		k, was := &t.Lenses[i].Calibration, &l.n.lenses[i]
		o, err := k.Optics(k.Width, k.Height)
		given, wrong := was.Optics(k.Width, k.Height)
		if err != nil || wrong != nil || !within(k.Params[0]/was.Params[0], mostFocal) {
			return false
		}
		info, _ := k.Model.Info()
		before, _ := was.Model.Info()
		for axis := range 2 {
			shift := math.Abs(k.Params[info.Focals+axis] - was.Params[before.Focals+axis])
			if shift > mostShift*float64(max(k.Width, k.Height)) {
				return false
			}
		}
		for corner := range 4 {
			x, y := float64(corner%2*k.Width), float64(corner/2*k.Height)
			_, ok := o.ToPlane(x, y, [2]float64{})
			if _, shown := given.ToPlane(x, y, [2]float64{}); shown && !ok {
				return false
			}
		}
	}
	return true
}

// sure reports whether all principal points are well determined.
func (t *trial) sure() bool {
	seen := map[int]bool{}
	for _, p := range t.Poses {
		seen[p.Lens] = true
	}
	sigmasOf, err := t.Sigmas(robust)
	if err != nil {
		return false
	}
	for i, k := range t.Lenses {
		if !seen[i] || !k.Free[2] {
			continue
		}
		most := leastSure * float64(max(k.Width, k.Height))
		if sigmas, err := sigmasOf(i, 2, 3); err != nil || max(sigmas[0], sigmas[1]) > most {
			return false
		}
	}
	return true
}

func within(ratio, factor float64) bool { return ratio < factor && ratio > 1/factor }

// judge returns the loss of each observation that was held back.
func (t *trial) judge() ([]float64, error) { return t.Losses(t.judges, robust) }

// shared returns the trial with one lens for all photos of a device, size and model whose focal lengths are close; nil
// if no photos could share one.
func (t *trial) shared(n *network) *trial {
	type group struct {
		device        string
		model         scene.LensModel
		width, height int
	}
	var order []group
	lenses := map[group][]int{}
	known := map[int]bool{}
	for i, pose := range t.Poses {
		if known[pose.Lens] {
			continue
		}
		known[pose.Lens] = true
		k := &t.Lenses[pose.Lens]
		g := group{n.photos[t.photos[i]].Device, k.Model, k.Width, k.Height}
		if lenses[g] == nil {
			order = append(order, g)
		}
		lenses[g] = append(lenses[g], pose.Lens)
	}
	s := t.clone()
	s.lensOf = slices.Clone(t.lensOf)
	changed := false
	for _, g := range order {
		list := lenses[g]
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(t.Lenses[a].Params[0], t.Lenses[b].Params[0]) })
		middle := list[len(list)/2]
		list = slices.DeleteFunc(list, func(k int) bool {
			return !within(t.Lenses[k].Params[0]/t.Lenses[middle].Params[0], mostSpread)
		})
		lenses[g] = list
		if len(list) == 1 || g.model.Calibrated() == 0 {
			continue
		}
		changed = true
		for _, k := range list {
			s.lensOf[k] = middle
		}
		s.Lenses[middle] = t.median(list, middle)
	}
	if !changed {
		return nil
	}
	for _, p := range n.photos { // a held-out photo whose lens no other has
		k := &n.lenses[p.Lens]
		list := lenses[group{p.Device, k.Model, k.Width, k.Height}]
		if !known[p.Lens] && len(list) > 0 &&
			within(k.Params[0]/s.Lenses[s.lensOf[list[0]]].Params[0], mostSpread) {
			s.lensOf[p.Lens] = s.lensOf[list[0]]
		}
	}
	for i := range s.Poses {
		s.Poses[i].Lens = s.lensOf[s.Poses[i].Lens]
	}
	return s
}

// median returns a lens with the medians of several, of which focal lengths and distortion move.
func (t *trial) median(list []int, like int) adjust.Lens {
	k := t.Lenses[like]
	k.Params = slices.Clone(k.Params)
	info, _ := k.Model.Info()
	for i := range k.Model.Calibrated() {
		k.Free[i] = i < info.Focals || i >= info.Focals+2
		all := make([]float64, len(list))
		for j, other := range list {
			all[j] = t.Lenses[other].Params[i]
		}
		k.Params[i] = geom.Quantile(all, 0.5)
	}
	return k
}
