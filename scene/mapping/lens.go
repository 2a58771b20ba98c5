package mapping

import (
	"slices"

	"vksplat/scene"
	"vksplat/scene/adjust"
)

const (
	// leastRich is how many photos a lens needs for a richer model that was not asked for.
	leastRich = 8
	// mostJudged is about how many observations take part where some are held back.
	mostJudged = 30_000
	// leastJudges of a lens say whether a richer model is better: leastGain is the share of their loss that must go.
	leastJudges, leastGain = 200, 0.01
)

// plainer are models with one focal length and no more than two terms of distortion. A model is grown with them: few
// photos do not determine more.
var plainer = map[scene.LensModel]scene.LensModel{scene.LensPinhole: scene.LensSimplePinhole,
	scene.LensOpenCV: scene.LensRadial, scene.LensFisheye: scene.LensSimpleFisheye,
	scene.LensOpenCVFisheye: scene.LensRadialFisheye}

// goal is the model that a lens may get in the end: the one that is chosen or stays, or the richest one that can be
// adjusted.
func (l *Lens) goal() scene.LensModel {
	if l.Chosen || l.Fixed {
		return l.Model
	}
	k, _ := l.Raised()
	return k.Model
}

// begun returns the lens that a model is grown with, as plain as the given parameters allow.
func (l *Lens) begun() scene.Calibration {
	k := as(l.Calibration, l.goal())
	if l.Fixed {
		return k
	}
	if model, ok := plainer[k.Model]; ok {
		if less := as(k, model); slices.Equal(as(less, k.Model).Params, k.Params) {
			return less
		}
	}
	return k
}

// as returns a lens in another model. Terms that this lacks are lost, those that it has besides are 0.
func as(k scene.Calibration, model scene.LensModel) scene.Calibration {
	from, _ := k.Model.Info()
	to, _ := model.Info()
	params := make([]float64, to.Params)
	for i := range to.Focals {
		params[i] = k.Params[min(i, from.Focals-1)]
	}
	copy(params[to.Focals:], k.Params[from.Focals:])
	k.Model, k.Params = model, params
	return k
}

// chooseLenses gives lenses the model that is asked for, or, where none is, a richer one if with it the photos show
// observations that were held back surely better. changed reports whether a lens has another model now.
func chooseLenses(d *draft) (changed bool, err error) {
	users := make([]int, len(d.lenses))
	for i, p := range d.poses {
		if d.placed[i] {
			users[p.Lens]++
		}
	}
	plain, open := slices.Clone(d.lenses), 0
	for i := range d.lenses {
		l := &d.in.Lenses[i]
		if goal := l.goal(); goal != d.lenses[i].Model && (l.Chosen || users[i] >= leastRich) {
			d.lenses[i].Calibration = as(d.lenses[i].Calibration, goal)
			if !l.Chosen {
				open++
			}
		}
	}
	if open > 0 {
		if err := keepBetter(d, plain); err != nil {
			return false, err
		}
	}
	for i := range plain {
		changed = changed || d.lenses[i].Model != plain[i].Model
	}
	if !changed {
		return false, nil
	}
	releasePrincipal(d)
	for i := range d.lenses { // with more terms a principal point may not be determined that seemed to be
		l := &d.lenses[i]
		if info, _ := l.Model.Info(); l.Model != plain[i].Model && !d.principal[i] {
			was, _ := plain[i].Model.Info()
			copy(l.Params[info.Focals:info.Focals+2], d.mapper.lenses[i].Params[was.Focals:])
		}
	}
	return true, nil
}

// keepBetter reverts lenses whose richer model was not asked for and is not surely better.
func keepBetter(d *draft, plain []adjust.Lens) error {
	after, judges, err := judged(d)
	if err != nil {
		return err
	}
	rich := d.lenses
	d.lenses = slices.Clone(plain)
	for i := range rich {
		if d.in.Lenses[i].Chosen {
			d.lenses[i] = rich[i]
		}
	}
	before, _, err := judged(d)
	if err != nil {
		return err
	}
	for i := range d.lenses {
		var now, was []float64
		for k, o := range judges {
			if d.poses[o.Pose].Lens == i {
				now, was = append(now, after[k]), append(was, before[k])
			}
		}
		if share, sure := adjust.Lower(now, was); sure && share >= leastGain && len(now) >= leastJudges {
			d.lenses[i] = rich[i]
		}
	}
	return nil
}

// judged adjusts a part of the model to most of its observations and returns the losses of the others.
func judged(d *draft) (losses []float64, judges []adjust.Observation, err error) {
	p, tracks := d.problem(d.placed, nil, true)
	share := mostJudged / float64(max(mostJudged, len(p.Observations)))
	left := make([]int, len(p.Points)) // observations that are not held back
	held := make([]bool, len(p.Observations))
	for i, o := range p.Observations {
		id := uint64(tracks[o.Point])
		held[i] = adjust.Drawn(id, d.in.Photos[o.Pose].Name, adjust.HeldBack)
		if !held[i] && adjust.Drawn(id, "", share) {
			left[o.Point]++
		}
	}
	all := p.Observations
	p.Observations = nil
	for i, o := range all {
		switch {
		case left[o.Point] < 2:
		case held[i]:
			judges = append(judges, o)
		default:
			p.Observations = append(p.Observations, o)
		}
	}
	if _, err := adjust.Solve(d.ctx, p, adjust.Options{Loss: loss, Gain: 1e-4, Steps: 8}); err != nil {
		return nil, nil, err
	}
	losses, err = p.Losses(judges, loss)
	return losses, judges, err
}
