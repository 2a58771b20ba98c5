package adjust

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// draws is a stream of random numbers.
type draws struct{ at, seed uint32 }

func (d *draws) uniform() float64 {
	d.at++
	return philox.Uniform(philox.Block([4]uint32{d.at}, philox.Key(uint64(d.seed)))[0])
}

func (d *draws) normal() float64 {
	r, sin, _ := philox.NormalPair(d.uniform(), d.uniform())
	return r * sin
}

var openCV = scene.Calibration{Model: 4, Width: 1000, Height: 750,
	Params: []float64{820, 824, 503, 371, -0.06, 0.04, 0.001, -0.0008}}

// ring has n poses around a ball of points, each seen by about a third of the poses, with exact observations.
func ring(t *testing.T, k scene.Calibration, n, points int) *Problem {
	t.Helper()
	d := &draws{seed: 7}
	p := &Problem{Lenses: []Lens{{Calibration: k}}}
	for i := range p.Lenses[0].Free[:k.Model.Calibrated()] {
		p.Lenses[0].Free[i] = true
	}
	for i := range n {
		angle := 2 * math.Pi * float64(i) / float64(n)
		sin, cos := math.Sincos(angle)
		var c scene.Camera
		scene.LookAt(&c, geom.Vec{4 * cos, -1 + 0.6*math.Sin(5*angle), 4 * sin}, geom.Vec{0.1 * cos, 0, 0})
		p.Poses = append(p.Poses, Pose{R: c.R, T: c.T})
	}
	optics, err := k.Optics(k.Width, k.Height)
	if err != nil {
		t.Fatal(err)
	}
	for i := range points {
		x := [3]float64{2.5 * (d.uniform() - 0.5), 1.5 * (d.uniform() - 0.5), 2.5 * (d.uniform() - 0.5)}
		p.Points = append(p.Points, x)
		for j, pose := range p.Poses {
			u, v, ok := optics.Project(geom.Add(geom.Rotate(pose.R, x), pose.T))
			if ok && u > 0 && v > 0 && u < 1000 && v < 750 && d.uniform() < 0.35 {
				p.Observations = append(p.Observations, Observation{Pose: int32(j), Point: int32(i), X: u, Y: v})
			}
		}
	}
	return p
}

// disturb moves everything that is free.
func disturb(p *Problem, size float64) {
	d := &draws{seed: 3}
	for i := range p.Poses {
		v := [3]float64{size * d.normal(), size * d.normal(), size * d.normal()}
		p.Poses[i].R = geom.Product(geom.RotationFromVector(v), p.Poses[i].R)
		for k := range 3 {
			p.Poses[i].T[k] += size * d.normal()
		}
	}
	for i := range p.Points {
		for k := range 3 {
			p.Points[i][k] += size * d.normal()
		}
	}
}

func solve(t *testing.T, p *Problem, o Options) Summary {
	t.Helper()
	s, err := Solve(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Without noise, disturbed cameras and a pinhole without distortion return to the truth.
func TestTruth(t *testing.T) {
	for _, k := range []scene.Calibration{openCV,
		{Model: 5, Width: 1000, Height: 750, Params: []float64{420, 424, 503, 371, -0.06, 0.04, -0.02, 0.003}},
		{Model: 2, Width: 1000, Height: 750, Params: []float64{820, 500, 375, -0.05}}} {
		p := ring(t, k, 24, 400)
		truth := slices.Clone(p.Lenses[0].Params)
		disturb(p, 0.01)
		focals := 2
		if k.Model == 2 {
			focals = 1
		}
		start := slices.Clone(truth)
		clear(start[focals+2:])
		start[0] *= 1.01
		p.Lenses[0].Params = start
		s := solve(t, p, Options{Gain: 1e-12, Steps: 100}) // many: rounding may lower what is nearly 0
		if !s.Converged || s.After > 1e-6 {
			t.Errorf("%v: cost %g to %g in %d steps, converged: %v", k.Model, s.Before, s.After, s.Steps, s.Converged)
		}
		for i, want := range truth {
			if got := p.Lenses[0].Params[i]; math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
				t.Errorf("%v: parameter %d is %v, want %v", k.Model, i, got, want)
			}
		}
	}
}

// A capture in national coordinates, millions of metres from the origin, is solved like any other.
func TestFar(t *testing.T) {
	p := ring(t, openCV, 24, 400)
	truth := slices.Clone(p.Lenses[0].Params)
	disturb(p, 0.01)
	p.Lenses[0].Params = slices.Clone(truth)
	p.Lenses[0].Params[0] *= 1.01
	far := [3]float64{4e6, 5.5e6, 300}
	for i := range p.Points {
		p.Points[i] = geom.Add(p.Points[i], far)
	}
	for i := range p.Poses {
		q := &p.Poses[i]
		q.T = geom.Sub(q.T, geom.Rotate(q.R, far))
	}
	s := solve(t, p, Options{})
	for i, want := range truth {
		if got := p.Lenses[0].Params[i]; math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
			t.Errorf("cost %g to %g: parameter %d is %v, want %v", s.Before, s.After, i, got, want)
		}
	}
}

// The gradient is that of the cost, and the reduced system solves the whole one.
func TestGradient(t *testing.T) {
	p := ring(t, openCV, 6, 40)
	disturb(p, 0.02)
	p.Lenses[0].Sigma[0] = 5
	for _, loss := range []Loss{squares, Cauchy(2)} {
		y, s := newSystem(p), p.state()
		y.linearise(s, loss)
		y.reduce(s, 1e-3)
		m := &minimiser{system: y, at: s}
		for i := range y.grad {
			delta, still := make([]float64, len(y.grad)), make([][3]float64, len(p.Points))
			h := 1e-6
			delta[i] = h
			high := p.cost(m.moved(delta, still), loss)
			delta[i] = -h
			low := p.cost(m.moved(delta, still), loss)
			if got, want := y.grad[i], (high-low)/(4*h); math.Abs(got-want) > 1e-3+1e-4*math.Abs(want) {
				t.Errorf("variable %d: gradient %v, want %v", i, got, want)
			}
		}
	}
}

// Conjugate gradients find what Cholesky's factors give.
func TestSolvers(t *testing.T) {
	p := ring(t, openCV, 40, 500)
	p.Lenses = append(p.Lenses, p.Lenses[0])
	p.Lenses[1].Params = slices.Clone(p.Lenses[0].Params)
	for i := range p.Poses {
		p.Poses[i].Lens = i % 2
	}
	p.Poses[3].Fixed = true
	disturb(p, 0.003)
	y, s := newSystem(p), p.state()
	y.linearise(s, Cauchy(1))
	y.reduce(s, 1e-2)
	want, ok := y.solve()
	got, fine := y.gradients(y.rhs)
	if !ok || !fine || len(got) != 6*39+16 {
		t.Fatalf("no solution of %d variables", len(got))
	}
	y.times(want, y.grad)
	for i, v := range y.grad {
		if math.Abs(v-y.rhs[i]) > 1e-6*(1+math.Abs(y.rhs[i])) {
			t.Fatalf("variable %d: S x is %v, want %v", i, v, y.rhs[i])
		}
	}
	var off, size float64
	for i := range want {
		off += geom.Square(got[i] - want[i])
		size += geom.Square(want[i])
	}
	if off > 3e-3*size {
		t.Errorf("conjugate gradients are off by %g of the step", math.Sqrt(off/size))
	}
}

// Gross errors do not pull a robust solution away.
func TestRobust(t *testing.T) {
	p := ring(t, openCV, 24, 400)
	truth := slices.Clone(p.Lenses[0].Params)
	d := &draws{seed: 11}
	for i := range p.Observations {
		o := &p.Observations[i]
		o.X, o.Y = o.X+0.2*d.normal(), o.Y+0.2*d.normal()
		if i%20 == 0 {
			o.X += 60
		}
	}
	disturb(p, 0.003)
	solve(t, p, Options{Loss: Cauchy(1)})
	for i, want := range truth[:4] {
		if got := p.Lenses[0].Params[i]; math.Abs(got-want) > 0.5 {
			t.Errorf("parameter %d is %v, want %v", i, got, want)
		}
	}
}

// Any number of cores gives the same bytes.
func TestCores(t *testing.T) {
	var first *Problem
	for _, cores := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(cores)
		p := ring(t, openCV, 30, 2000)
		disturb(p, 0.01)
		solve(t, p, Options{Loss: Cauchy(1), Steps: 4})
		runtime.GOMAXPROCS(before)
		if first == nil {
			first = p
		} else if !slices.Equal(p.Points, first.Points) || !slices.Equal(p.Poses, first.Poses) ||
			!slices.Equal(p.Lenses[0].Params, first.Lenses[0].Params) {
			t.Fatalf("%d cores give other cameras than one", cores)
		}
	}
}

// What is fixed stays, and what is not finite is refused.
func TestFixed(t *testing.T) {
	p := ring(t, openCV, 8, 100)
	disturb(p, 0.01)
	p.PointsFixed = true
	p.Lenses[0].Free = [scene.MaxCalibrated]bool{}
	for i := range p.Poses {
		p.Poses[i].Fixed = i > 0
	}
	before := *p
	before.Points, before.Poses = slices.Clone(p.Points), slices.Clone(p.Poses)
	solve(t, p, Options{})
	if !slices.Equal(p.Points, before.Points) || !slices.Equal(p.Poses[1:], before.Poses[1:]) {
		t.Error("fixed points or poses have moved")
	}
	if p.Poses[0] == before.Poses[0] {
		t.Error("the free pose has not moved")
	}
	p.Poses[0].Fixed = true
	if s := solve(t, p, Options{}); !s.Converged || s.Steps > 0 {
		t.Errorf("nothing is free: %+v", s)
	}
	p.PointsFixed = false
	if s := solve(t, p, Options{}); s.After >= s.Before {
		t.Errorf("points alone are free: %+v", s)
	}
	p.Points[0][1] = math.NaN()
	if _, err := Solve(context.Background(), p, Options{}); err == nil {
		t.Error("a point that is not finite is accepted")
	}
}

// A point alone goes where Solve moves it if cameras are fixed.
func TestPoint(t *testing.T) {
	p := ring(t, openCV, 12, 60)
	d := &draws{seed: 5}
	for i := range p.Observations {
		o := &p.Observations[i]
		o.X, o.Y = o.X+0.5*d.normal(), o.Y+0.5*d.normal()
		if i%20 == 0 {
			o.X += 30
		}
	}
	for i := range p.Poses {
		p.Poses[i].Fixed = true
	}
	p.Lenses[0].Free = [scene.MaxCalibrated]bool{}
	for i := range p.Points {
		p.Points[i][i%3] += 0.02
	}
	optics, err := openCV.Optics(openCV.Width, openCV.Height)
	if err != nil {
		t.Fatal(err)
	}
	sights := make([][]Sight, len(p.Points))
	for _, o := range p.Observations {
		sights[o.Point] = append(sights[o.Point], Sight{&p.Poses[o.Pose], optics, o.X, o.Y})
	}
	start := slices.Clone(p.Points)
	o := Options{Loss: Cauchy(1), Steps: 200, Gain: 1e-15}
	solve(t, p, o)
	for i, want := range p.Points {
		if len(sights[i]) < 4 {
			continue
		}
		if off := geom.Length(geom.Sub(Point(start[i], sights[i], o), want)); off > 1e-5 {
			t.Errorf("point %d of %d sights is off by %g", i, len(sights[i]), off)
		}
	}
	far := [3]float64{math.Inf(1), 0, 0}
	if got := Point(far, sights[0], o); got != far {
		t.Errorf("a point that no camera shows moves to %v", got)
	}
}

// Standard deviations are those of estimates from observations with noise, also of what is badly determined.
func TestSigmas(t *testing.T) {
	const runs = 12
	var off [4]float64
	for run := range runs {
		p := ring(t, openCV, 16, 150)
		truth := slices.Clone(p.Lenses[0].Params)
		d := &draws{seed: uint32(100 + run)}
		for i := range p.Observations {
			o := &p.Observations[i]
			o.X, o.Y = o.X+0.5*d.normal(), o.Y+0.5*d.normal()
		}
		solve(t, p, Options{Gain: 1e-10})
		of, err := p.Sigmas(squares)
		if err != nil {
			t.Fatal(err)
		}
		sigmas, err := of(0, 0, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, sigma := range sigmas {
			off[i] += geom.Square((p.Lenses[0].Params[i]-truth[i])/sigma) / runs
		}
	}
	for i, s := range off {
		if s < 0.25 || s > 3 {
			t.Errorf("parameter %d is off by %.2f standard deviations", i, math.Sqrt(s))
		}
	}
	p := ring(t, openCV, 16, 150)
	p.Lenses[0].Free[0] = false
	of, err := p.Sigmas(squares)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := of(0, 0); err == nil {
		t.Error("a parameter that is fixed has a standard deviation")
	}
}

// Poses that several cameras share move to where all of these see what they see.
func TestMounts(t *testing.T) {
	p := ring(t, openCV, 12, 300)
	p.Lenses[0].Free = [scene.MaxCalibrated]bool{}
	p.Lenses = append(p.Lenses, p.Lenses[0])
	p.Lenses[1].Calibration = scene.Calibration{Model: scene.LensEquirectangular, Width: 2000, Height: 1000,
		Params: []float64{2000, 1000}}
	p.Mounts = []Mount{{R: geom.Identity}, {R: geom.RotationFromVector([3]float64{0.3, 2, -0.4}),
		T: [3]float64{0.2, -0.1, 0.5}, Lens: 1}}
	optics, _ := p.Lenses[1].Optics(2000, 1000)
	for i := range p.Observations {
		o := &p.Observations[i]
		if o.Mount = 1; i%3 == 0 {
			m, pose := &p.Mounts[1], &p.Poses[o.Pose]
			body := geom.Add(geom.Rotate(pose.R, p.Points[o.Point]), pose.T)
			o.X, o.Y, _ = optics.Project(geom.Add(geom.Rotate(m.R, body), m.T))
			o.Mount = 2
		}
	}
	truth := slices.Clone(p.Poses)
	d := &draws{seed: 3}
	for i := range p.Poses {
		if p.Poses[i].Fixed = i < 2; i >= 2 {
			p.Poses[i].T[i%3] += 0.05 * d.normal()
			p.Poses[i].R = geom.Product(geom.RotationFromVector([3]float64{0.01 * d.normal(), 0.01, 0.02}), truth[i].R)
		}
	}
	sum, err := Solve(context.Background(), p, Options{Steps: 8})
	if err != nil || sum.After > 1e-12 {
		t.Errorf("cost %g after %d steps, %v", sum.After, sum.Steps, err)
	}
	for i := range truth {
		if d := geom.Length(geom.Sub(p.Poses[i].T, truth[i].T)); d > 1e-6 {
			t.Errorf("pose %d is off by %g", i, d)
		}
	}
	p.Lenses[0].Free[0] = true
	if _, err := Solve(context.Background(), p, Options{}); err == nil {
		t.Error("a lens moves")
	}
}
