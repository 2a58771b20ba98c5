// Package calibrate checks the lenses and poses of a reconstruction against its own observations, and refines them
// where observations that were held back say so.
package calibrate

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vksplat/internal/geom"
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
	Device  string // what took it, as EXIF names device, lens and zoom; "" where unknown
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
	lensOf []int // which lens a photo's now has; nil: its own
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
	// nil if nothing changed
	Photos []Photo
	Points [][3]float64
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
		if name == "shared" {
			_, worse := lower(cost, now)
			yes = !worse
		}
		res.Steps = append(res.Steps, Step{name, share, yes, s.Steps})
		if yes {
			best, cost = next, now
		}
		return nil
	}
	if err := try("poses"); err != nil {
		return nil, err
	}
	if shared := next.shared(n); shared != nil {
		given := next
		next = shared
		if err := try("shared"); err != nil {
			return nil, err
		}
		if best != next {
			next = given
		}
	}
	given := best
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
	if len(res.Steps) > 0 && slices.ContainsFunc(res.Steps, func(s Step) bool { return s.Kept }) {
		if err := res.finish(ctx, n, best); err != nil {
			return nil, err
		}
	}
	for _, l := range best.Lenses {
		res.Lens = append(res.Lens, l.Calibration)
	}
	return res, nil
}

// mostSpread is by how much the focal lengths of photos of one device at one zoom differ at most.
const mostSpread = 0.1

// shared returns the trial with one lens for all photos of a device, size and model whose focal lengths are close. nil
// if no photos could share one.
func (t *trial) shared(n *Network) *trial {
	type group struct {
		device        string
		model         scene.LensModel
		width, height int
	}
	groups := map[group][]int{} // lenses
	known := map[int]bool{}
	var order []group
	for i, pose := range t.Poses {
		l := t.Lenses[pose.Lens]
		k := group{n.Photos[t.photos[i]].Device, l.Model, l.Width, l.Height}
		if len(groups[k]) == 0 {
			order = append(order, k)
		}
		if !known[pose.Lens] {
			known[pose.Lens] = true
			groups[k] = append(groups[k], pose.Lens)
		}
	}
	to := make([]int, len(t.Lenses))
	for i := range to {
		to[i] = i
	}
	s := t.clone()
	changed := false
	for _, k := range order {
		list := groups[k]
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(t.Lenses[a].Params[0], t.Lenses[b].Params[0]) })
		low, high := t.Lenses[list[0]].Params[0], t.Lenses[list[len(list)-1]].Params[0]
		if len(list) == 1 || high > low*(1+mostSpread) {
			continue
		}
		changed = true
		middle := list[len(list)/2]
		for _, l := range list {
			to[l] = middle
		}
		l := &s.Lenses[middle]
		l.Params = slices.Clone(l.Params)
		info, _ := l.Model.Info()
		for i := range l.Model.Calibrated() {
			l.Free[i] = i < info.Focals || i >= info.Focals+2
			all := make([]float64, len(list))
			for j, other := range list {
				all[j] = t.Lenses[other].Params[i]
			}
			l.Params[i] = geom.Quantile(all, 0.5)
		}
	}
	if !changed {
		return nil
	}
	for i := range s.Poses {
		s.Poses[i].Lens = to[s.Poses[i].Lens]
	}
	s.lensOf = to
	return s
}

// finish adjusts once more with what was held back, brings the cameras back into the capture's frame, and finds the
// poses of held-out photos by the points that training photos determine.
func (res *Result) finish(ctx context.Context, n *Network, t *trial) error {
	t.Observations = append(t.Observations, t.judges...)
	o := adjust.Options{Loss: robust, Gain: 1e-6}
	if _, err := adjust.Solve(ctx, &t.Problem, o); err != nil {
		return err
	}
	from, to := make([][3]float64, len(t.photos)), make([][3]float64, len(t.photos))
	for i, photo := range t.photos {
		from[i] = geom.TranslationOf(geom.Transposed(t.Poses[i].R), t.Poses[i].T)
		to[i] = geom.TranslationOf(geom.Transposed(n.Photos[photo].R), n.Photos[photo].T)
	}
	move, err := fitSimilarity(from, to)
	if err != nil {
		return err
	}
	res.Photos, res.Points = slices.Clone(n.Photos), slices.Clone(n.Points)
	if t.lensOf != nil {
		for i := range res.Photos {
			res.Photos[i].Lens = t.lensOf[res.Photos[i].Lens]
		}
	}
	held := adjust.Problem{Lenses: slices.Clone(t.Lenses), PointsFixed: true}
	for i := range held.Lenses {
		held.Lenses[i].Free = [scene.MaxCalibrated]bool{}
	}
	for i, photo := range t.photos {
		p := &res.Photos[photo]
		p.R = geom.Product(t.Poses[i].R, geom.Transposed(move.r))
		p.T = geom.TranslationOf(p.R, move.apply(from[i]))
	}
	places := make([]int32, len(n.Points))
	for i := range places {
		places[i] = -1
	}
	for i, point := range t.points {
		res.Points[point] = move.apply(t.Points[i])
		places[point] = int32(i)
		held.Points = append(held.Points, res.Points[point])
	}
	poses := make([]int32, len(n.Photos))
	var photos []int
	for i, p := range n.Photos {
		if p.HeldOut {
			poses[i] = int32(len(photos))
			photos = append(photos, i)
			held.Poses = append(held.Poses, adjust.Pose{R: p.R, T: p.T, Lens: res.Photos[i].Lens})
		}
	}
	for _, s := range n.Seen {
		if n.Photos[s.Pose].HeldOut && places[s.Point] >= 0 {
			s.Pose, s.Point = poses[s.Pose], places[s.Point]
			held.Observations = append(held.Observations, s)
		}
	}
	if _, err := adjust.Solve(ctx, &held, o); err != nil {
		return err
	}
	for i, photo := range photos {
		res.Photos[photo].R, res.Photos[photo].T = held.Poses[i].R, held.Poses[i].T
	}
	return nil
}

// similarity maps x to scale r x + t.
type similarity struct {
	scale float64
	r     [9]float64
	t     [3]float64
}

func (s *similarity) apply(x [3]float64) [3]float64 {
	return geom.Add(geom.Scale(geom.Rotate(s.r, x), s.scale), s.t)
}

// fitSimilarity finds the similarity that brings points closest to others (Umeyama 1991).
func fitSimilarity(from, to [][3]float64) (*similarity, error) {
	a, b := mean(from), mean(to)
	var m [9]float64
	var spread float64
	for i := range from {
		x, y := geom.Sub(from[i], a), geom.Sub(to[i], b)
		spread += geom.Dot(x, x)
		for j := range 9 {
			m[j] += y[j/3] * x[j%3]
		}
	}
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(3, 3, m[:]), mat.SVDFull) {
		return nil, errors.New("align cameras: no similarity")
	}
	var u, v, product mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	sign := 1.0
	if mat.Det(&u)*mat.Det(&v) < 0 {
		sign = -1
	}
	product.Product(&u, mat.NewDiagDense(3, []float64{1, 1, sign}), v.T())
	r := [9]float64(product.RawMatrix().Data)
	var along float64 // trace of r' m
	for j := range 9 {
		along += r[j] * m[j]
	}
	s := &similarity{scale: along / spread, r: r}
	s.t = geom.Sub(b, geom.Scale(geom.Rotate(r, a), s.scale))
	return s, nil
}

func mean(list [][3]float64) (m [3]float64) {
	for _, x := range list {
		m = geom.Add(m, x)
	}
	return geom.Scale(m, 1/float64(len(list)))
}
