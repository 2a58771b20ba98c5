package twoview

import (
	"math"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
)

// exact returns n matches without noise, of keypoints that are not rounded.
func (k recipe) exact(t testing.TB, seed uint32, n int) (list []couple, truth pose, sample []int32) {
	t.Helper()
	d := &draws{seed: seed}
	o := must.Get(k.lens.Optics(k.lens.Width, k.lens.Height))(t)
	truth = pose{geom.RotationFromVector(d.vec(k.turn)), k.move}
	slope := d.vec(0.2)
	for len(list) < n {
		a, ok := Look(o, d.between(0, o.Width), d.between(0, o.Height))
		x := geom.Scale(a.ray, k.depth(d, a.ray, slope))
		u, v, okB := o.Project(truth.apply(x))
		b, okL := Look(o, u, v)
		if ok && okB && okL {
			sample = append(sample, int32(len(list)))
			list = append(list, couple{a, b})
		}
	}
	return list, truth, sample
}

// nearest returns the smallest distance of matrices from one.
func nearest(list []matrix, truth matrix) float64 {
	best := math.Inf(1)
	for _, m := range list {
		best = min(best, apart(m, truth))
	}
	return best
}

// errors are the worst of many samples: median, and the share above a bound.
func checkErrors(t *testing.T, name string, errs []float64, median, bound, share float64) {
	t.Helper()
	over := 0
	for _, e := range errs {
		if !(e <= bound) {
			over++
		}
	}
	if m := geom.Quantile(errs, 0.5); !(m <= median) || float64(over) > share*float64(len(errs)) {
		t.Errorf("%s: median error %.3g, want %.3g; %d of %d above %.3g", name, m, median, over, len(errs), bound)
	}
}

var motions = map[string]recipe{
	"general":     {lens: openCV, turn: 0.2, move: vec{-1, 0.3, 0.4}},
	"plane":       {lens: openCV, turn: 0.2, move: vec{-1, 0.3, 0.4}, plane: true},
	"translation": {lens: plain, move: vec{-1, 0, 0}},
	"forward":     {lens: plain, turn: 0.01, move: vec{0, 0, -1}},
	"fisheye":     {lens: fisheye, turn: 0.2, move: vec{-1, 0.3, 0.4}},
	"short":       {lens: openCV, turn: 0.2, move: vec{-0.03, 0, 0}},
}

func TestFivePoint(t *testing.T) {
	for name, k := range motions {
		var errs, residuals []float64
		for seed := range uint32(100) {
			list, truth, sample := k.exact(t, seed, 5)
			found := fivePoint(list, sample, nil)
			errs = append(errs, nearest(found, essential(truth.r, truth.t)))
			for i := range found {
				e := normalised(found[i])
				for _, c := range list {
					residuals = append(residuals, math.Abs(geom.Dot(c.b.ray, geom.Rotate(e, c.a.ray))))
				}
				residuals = append(residuals, unlikeEssential(&e), math.Abs(geom.Det3(e)))
			}
		}
		bound, share := 1e-6, 0.01
		if name == "short" { // ill-conditioned: a thousandth of the distance
			bound, share = 1e-3, 0.1
		}
		checkErrors(t, name, errs, 1e-9, bound, share)
		checkErrors(t, name+", equations", residuals, 1e-9, 1e-9, share)
	}
}

// Five points seen from one place agree with its rotation and any translation: a matrix that is found has it.
func TestFivePointOfRotation(t *testing.T) {
	missed := 0
	for seed := range uint32(100) {
		list, truth, sample := recipe{lens: openCV, turn: 0.2}.exact(t, seed, 5)
		best := math.Inf(1)
		for _, m := range fivePoint(list, sample, nil) {
			p, ok := factorised(&m, true)
			turns, _ := p.poses()
			for _, r := range turns {
				if ok {
					best = min(best, apart(r, truth.r))
				}
			}
		}
		if !(best < 1e-6) {
			missed++
		}
	}
	if missed > 5 {
		t.Errorf("%d of 100 rotations were not found", missed)
	}
}

func TestSevenPoint(t *testing.T) {
	for name, k := range motions {
		if k.plane || name == "short" {
			continue
		}
		var errs, residuals []float64
		for seed := range uint32(100) {
			list, truth, sample := k.exact(t, seed, 7)
			found := sevenPoint(list, sample, nil)
			errs = append(errs, nearest(found, essential(truth.r, truth.t)))
			for _, f := range found {
				f = normalised(f)
				residuals = append(residuals, math.Abs(geom.Det3(f)))
				for _, c := range list {
					residuals = append(residuals, math.Abs(geom.Dot(c.b.ray, geom.Rotate(f, c.a.ray))))
				}
			}
		}
		checkErrors(t, name, errs, 1e-9, 1e-5, 0.01)
		checkErrors(t, name+", equations", residuals, 1e-9, 1e-9, 0)
	}
}

func TestHomography(t *testing.T) {
	var errs, refined []float64
	for seed := range uint32(100) {
		list, _, sample := motions["plane"].exact(t, seed, 12)
		h := fourPoint(list, sample[:4], nil)[0]
		moved := h
		for i := range moved {
			moved[i] += 1e-4 * float64(i%3-1)
		}
		moved = refinedHomography(list, moved, sample, squares)
		for i := range list {
			errs = append(errs, math.Sqrt(transfer(&h, &list[i].a, &list[i].b)))
			refined = append(refined, math.Sqrt(transfer(&moved, &list[i].a, &list[i].b)))
		}
	}
	checkErrors(t, "4 points", errs, 1e-9, 1e-6, 0)
	checkErrors(t, "refined", refined, 1e-6, 1e-3, 0)
}

func TestThreePoint(t *testing.T) {
	o := must.Get(openCV.Optics(openCV.Width, openCV.Height))(t)
	for name, depths := range map[string][2]float64{"general": {1, 8}, "one distance": {5, 5.001}, "near": {1, 1.1}} {
		var errs, residuals []float64
		d := &draws{seed: 5}
		for range 500 {
			truth := pose{geom.RotationFromVector(d.vec(1)), d.vec(3)}
			var sights []Sight
			var points []vec
			for range 3 {
				s, _ := Look(o, d.between(0, 1600), d.between(0, 1200))
				x := geom.Scale(s.ray, d.between(depths[0], depths[1]))
				points = append(points, transposedTimes(&truth.r, geom.Sub(x, truth.t)))
				sights = append(sights, s)
			}
			best := math.Inf(1)
			for _, p := range threePoint(sights, points, []int32{0, 1, 2}, nil) {
				best = min(best, geom.Length(geom.Sub(p.centre(), truth.centre()))+apart(p.r, truth.r))
				for i := range 3 {
					residuals = append(residuals, math.Sqrt(sights[i].missed(p.apply(points[i]))))
				}
			}
			errs = append(errs, best)
		}
		checkErrors(t, name, errs, 1e-9, 1e-5, 0.01)
		checkErrors(t, name+", pixels", residuals, 1e-9, 1e-5, 0.01)
	}
}

func TestRealRoots(t *testing.T) {
	want := []float64{-40, -3, -0.7, -1e-3, 0.2, 0.9, 1.5, 8, 1e3, 2e4}
	var p polynomial
	p[0] = 1
	for n, x := range want { // p times (z - x), scaled
		for i := n + 1; i >= 0; i-- {
			p[i] *= -x
			if i > 0 {
				p[i] += p[i-1]
			}
		}
		s := max(1, math.Abs(x))
		for i := range p {
			p[i] /= s
		}
	}
	got := p.realRoots(10, nil)
	slices.Sort(got)
	if len(got) != len(want) {
		t.Fatalf("roots %v, want %v", got, want)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-7*max(1, math.Abs(want[i])) {
			t.Errorf("root %v, want %v", got[i], want[i])
		}
	}
	if roots := (&polynomial{1, 0, 1}).realRoots(2, nil); len(roots) > 0 {
		t.Errorf("roots %v of a polynomial that has none", roots)
	}
}

// checkSlopes compares derivatives with central differences of a function of steps.
func checkSlopes(t *testing.T, name string, freedoms int, slopes []float64, f func(step [maxFreedoms]float64) float64) {
	t.Helper()
	const h = 1e-5
	for i := range freedoms {
		var step [maxFreedoms]float64
		step[i] = h
		up := f(step)
		step[i] = -h
		if want := (up - f(step)) / (2 * h); math.Abs(want-slopes[i]) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("%s, freedom %d: slope %v, differences %v", name, i, slopes[i], want)
		}
	}
}

func TestSlopes(t *testing.T) {
	for name, k := range motions {
		list, truth, _ := k.exact(t, 3, 8)
		e := essential(truth.r, geom.Scale(truth.t, 1/geom.Length(truth.t)))
		p, _ := factorised(&e, true)
		p.s = 0.9
		p = p.moved([maxFreedoms]float64{0.01, -0.02, 0.01, 0.02, 0.01, -0.01})
		c := &list[2]
		r, j := p.slopes(&c.a, &c.b)
		checkSlopes(t, name, 7, j[:], func(step [maxFreedoms]float64) float64 {
			q := p.moved(step)
			r, _ := q.slopes(&c.a, &c.b)
			return r
		})
		if s := sampson(&p.e, &c.a, &c.b); math.Abs(s-r*r) > 1e-9*s {
			t.Errorf("%s: Sampson's distance %v, want %v", name, s, r*r)
		}
		x := geom.Scale(c.a.ray, 5)
		_, both, _ := truth.slopes(&c.b, x)
		for axis := range both {
			checkSlopes(t, name+", pose", 6, both[axis][:], func(step [maxFreedoms]float64) float64 {
				q := truth.moved(step)
				r, _, _ := q.slopes(&c.b, x)
				return r[axis]
			})
		}
	}
}

// A sight's ray and derivatives are those of the lens.
func TestSight(t *testing.T) {
	for _, k := range motions {
		o := must.Get(k.lens.Optics(k.lens.Width, k.lens.Height))(t)
		s, _ := Look(o, 1100, 300)
		for _, move := range [][2]float64{{0.1, 0}, {0, 0.1}} {
			x, y, _ := o.Project(geom.Add(s.ray, geom.Add(geom.Scale(s.dx, move[0]), geom.Scale(s.dy, move[1]))))
			if math.Hypot(x-1100-move[0], y-300-move[1]) > 1e-4 {
				t.Errorf("lens %v: moved to %v, %v by %v", k.lens.Model, x, y, move)
			}
			ray, _ := o.Ray(1100+move[0], 300+move[1])
			if dx, dy, _ := s.off(ray); math.Hypot(dx-move[0], dy-move[1]) > 1e-4 {
				t.Errorf("lens %v: off by %v, %v, want %v", k.lens.Model, dx, dy, move)
			}
		}
	}
}
