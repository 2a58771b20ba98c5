// Package calibrate checks the lenses and poses of a reconstruction against its own observations, and refines them
// where observations that were held back say so.
package calibrate

import (
	"context"
	"hash/fnv"
	"math"

	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

// Photo is a photo of a network.
type Photo struct {
	Name    string
	R       [9]float64 // world to camera, as in scene.Camera
	T       [3]float64
	Lens    int // in Network.Lenses
	HeldOut bool
}

// Network is a reconstruction with its observations.
type Network struct {
	Lenses []scene.Calibration
	Photos []Photo
	Points [][3]float64
	IDs    []uint64             // of the points
	Seen   []adjust.Observation // Pose is a photo
}

const (
	// Share of the observations that judge: a tenth, drawn by photo and point, so that neither order nor other photos
	// matter.
	heldBack = 0.1
	// leastSeen is how many observations a network needs for each photo on average, below which nothing is judged.
	leastSeen = 30
	// sure is by how many standard errors a step must lower the held-back cost.
	sure = 3
	// exactPixels is the median distance below which observations are projections of the model, not of photos.
	exactPixels = 1e-6
)

// isHeldBack draws whether an observation judges.
func isHeldBack(photo string, point uint64) bool {
	h := fnv.New64a()
	h.Write([]byte(photo)) // never fails
	bits := philox.Block([4]uint32{uint32(point), uint32(point >> 32)}, philox.Key(h.Sum64()))
	return philox.Uniform(bits[0]) < heldBack
}

// trial is a network's training photos as a problem, with the observations that judge it.
type trial struct {
	adjust.Problem
	judges []adjust.Observation
	photos []int // of each pose
	points []int // of each point
}

// newTrial takes the training photos, and the points that two of them see apart from what is held back.
func newTrial(n *Network) *trial {
	t := &trial{}
	poses := make([]int32, len(n.Photos))
	for i, p := range n.Photos {
		poses[i] = -1
		if !p.HeldOut {
			poses[i] = int32(len(t.photos))
			t.photos = append(t.photos, i)
			t.Poses = append(t.Poses, adjust.Pose{R: p.R, T: p.T, Lens: p.Lens})
		}
	}
	for _, l := range n.Lenses {
		t.Lenses = append(t.Lenses, adjust.Lens{Calibration: l})
	}
	held := make([]bool, len(n.Seen))
	count := make([]int, len(n.Points))
	for i, o := range n.Seen {
		held[i] = isHeldBack(n.Photos[o.Pose].Name, n.IDs[o.Point])
		if poses[o.Pose] >= 0 && !held[i] {
			count[o.Point]++
		}
	}
	points := make([]int32, len(n.Points))
	for i, c := range count {
		points[i] = -1
		if c >= 2 {
			points[i] = int32(len(t.points))
			t.points = append(t.points, i)
			t.Points = append(t.Points, n.Points[i])
		}
	}
	for i, o := range n.Seen {
		o.Pose, o.Point = poses[o.Pose], points[o.Point]
		switch {
		case o.Pose < 0 || o.Point < 0:
		case held[i]:
			t.judges = append(t.judges, o)
		default:
			t.Observations = append(t.Observations, o)
		}
	}
	return t
}

// clone copies what Solve changes.
func (t *trial) clone() *trial {
	c := *t
	c.Lenses = append([]adjust.Lens(nil), t.Lenses...)
	c.Poses = append([]adjust.Pose(nil), t.Poses...)
	c.Points = append([][3]float64(nil), t.Points...)
	return &c
}

var robust = adjust.Cauchy(1)

// judge returns the loss of each observation that was held back.
func (t *trial) judge() ([]float64, error) {
	p := t.Problem
	p.Observations = t.judges
	list, err := p.Distances()
	if err != nil {
		return nil, err
	}
	for i, d := range list {
		list[i], _ = robust(d * d)
	}
	return list, nil
}

// lower says whether losses are surely lower than others of the same observations, and by which share.
func lower(now, before []float64) (share float64, yes bool) {
	var sum, squares, total float64
	for i := range now {
		d := before[i] - now[i]
		sum += d
		squares += d * d
		total += before[i]
	}
	n := float64(len(now))
	deviation := math.Sqrt(max(0, squares/n-sum*sum/n/n) / n)
	return sum / total, sum/n > sure*deviation
}

// A rung is a set of parameters of a lens that move together, after the focal lengths.
type rung struct {
	Name string
	free []int // places after focal lengths and principal point
}

var (
	perspective = []rung{{"focal length", nil}, {"k1", []int{0}}, {"k1, k2", []int{0, 1}},
		{"k1, k2, p1, p2", []int{0, 1, 2, 3}}}
	fisheye = []rung{{"focal length", nil}, {"k1", []int{0}}, {"k1, k2", []int{0, 1}},
		{"k1 to k4", []int{0, 1, 2, 3}}}
)

// raised returns a calibration in the model that has all rungs, with the same projection. ok is false for models that
// cannot be raised.
func raised(k scene.Calibration) (r scene.Calibration, rungs []rung, ok bool) {
	info, known := k.Model.Info()
	if !known || info.Focals == 0 {
		return k, nil, false
	}
	r = k
	r.Params = make([]float64, 8)
	r.Params[0], r.Params[1] = k.Params[0], k.Params[info.Focals-1]
	copy(r.Params[2:], k.Params[info.Focals:])
	switch k.Model {
	case scene.LensSimplePinhole, scene.LensPinhole, scene.LensSimpleRadial, scene.LensRadial, scene.LensOpenCV:
		r.Model = scene.LensOpenCV
		return r, perspective, true
	case scene.LensSimpleFisheye, scene.LensFisheye, scene.LensSimpleRadialFisheye, scene.LensRadialFisheye,
		scene.LensOpenCVFisheye:
		r.Model = scene.LensOpenCVFisheye
		return r, fisheye, true
	}
	return k, nil, false
}

// A Step is what one rung brought.
type Step struct {
	Name  string
	Share float64 // by which the held-back cost fell
	Kept  bool
	Steps int
}

// Result is what Run found.
type Result struct {
	Steps []Step
	Lens  []scene.Calibration
	Trial *trial
}

// Run climbs the rungs one at a time, as long as held-back observations say so.
func Run(ctx context.Context, n *Network) (*Result, error) {
	t := newTrial(n)
	res := &Result{}
	// The given points were found with what is held back, so they cannot be compared with. Poses and points with the
	// given lens, found again without, are the measure.
	var cost []float64
	var best *trial
	next := t.clone()
	try := func(name string) error {
		s, err := adjust.Solve(ctx, &next.Problem, adjust.Options{Loss: robust, Gain: 1e-5, Steps: 20})
		if err != nil {
			return err
		}
		now, err := next.judge()
		if err != nil {
			return err
		}
		if cost == nil {
			cost, best = now, next
			return nil
		}
		share, yes := lower(now, cost)
		res.Steps = append(res.Steps, Step{name, share, yes, s.Steps})
		if yes {
			best, cost = next, now
		}
		return nil
	}
	if err := try("poses"); err != nil {
		return nil, err
	}
	given := next
	rungs := perspective
	for i := range given.Lenses {
		if k, r, ok := raised(given.Lenses[i].Calibration); ok {
			given.Lenses[i].Calibration = k
			rungs = r
		}
	}
	for _, r := range rungs {
		from := next
		next = from.clone()
		for i := range next.Lenses {
			l := &next.Lenses[i]
			l.Free[0], l.Free[1] = true, true
			for _, at := range r.free {
				l.Free[4+at] = true
			}
		}
		if err := try(r.Name); err != nil {
			return nil, err
		}
	}
	from := next
	next = from.clone()
	for i := range next.Lenses {
		next.Lenses[i].Free[2], next.Lenses[i].Free[3] = true, true
	}
	if err := try("principal point"); err != nil {
		return nil, err
	}
	res.Trial = best
	for _, l := range best.Lenses {
		res.Lens = append(res.Lens, l.Calibration)
	}
	return res, nil
}
