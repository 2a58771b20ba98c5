package twoview

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene/adjust"
)

// photo is a made-up photo of points: some are seen elsewhere.
func photo(t *testing.T, seed uint32, n int, outliers float64) (pixels [][2]float32, points []vec, truth pose) {
	t.Helper()
	d := &draws{seed: seed}
	o := must.Get(openCV.Optics(openCV.Width, openCV.Height))(t)
	truth = pose{geom.RotationFromVector(d.vec(1)), d.vec(3)}
	for range n {
		x, y := d.between(0, o.Width), d.between(0, o.Height)
		ray, _ := o.Ray(x, y)
		points = append(points, transposedTimes(&truth.r, geom.Sub(geom.Scale(ray, d.between(3, 8)), truth.t)))
		if d.uniform() < outliers {
			x, y = d.between(0, o.Width), d.between(0, o.Height)
		}
		pixels = append(pixels, [2]float32{float32(x + 0.5*d.normal()), float32(y + 0.5*d.normal())})
	}
	return pixels, points, truth
}

func TestLocate(t *testing.T) {
	for _, c := range []struct {
		known bool
		focal float64 // given, relative to the right one
		share float64 // of outliers
	}{{true, 1, 0.5}, {true, 1, 0.8}, {false, 1.015, 0.5}} {
		for seed := range uint32(4) {
			pixels, points, truth := photo(t, seed, 200, c.share)
			k := openCV
			k.Params = slices.Clone(k.Params)
			k.Params[0], k.Params[1] = c.focal*k.Params[0], c.focal*k.Params[1]
			l, ok := Locate(k, c.known, pixels, points, Options{Key: uint64(seed)})
			if !ok {
				t.Errorf("%v, seed %d: not located", c, seed)
				continue
			}
			found := pose{l.Pose.R, l.Pose.T}
			turn := geom.Length(geom.VectorFromRotation(geom.Product(found.r, geom.Transposed(truth.r))))
			away := geom.Length(geom.Sub(found.centre(), truth.centre()))
			if turn > 1e-3 || away > 0.01 || math.Abs(l.Calibration.Params[0]/openCV.Params[0]-1) > 2e-3 ||
				len(l.Inliers) < int(190*(1-c.share))-10 || !slices.IsSorted(l.Inliers) {
				t.Errorf("%v, seed %d: turned by %v, moved by %v, focal length %v, %d inliers", c, seed, turn, away,
					l.Calibration.Params[0], len(l.Inliers))
			}
			again, _ := Locate(k, c.known, pixels, points, Options{Key: uint64(seed)})
			if !reflect.DeepEqual(l, again) {
				t.Errorf("%v, seed %d: another location", c, seed)
			}
		}
	}
	pixels, points, _ := photo(t, 1, 60, 1)
	if l, ok := Locate(openCV, true, pixels, points, Options{}); ok {
		t.Errorf("located by %d of 60 points at random", len(l.Inliers))
	}
}

func TestTriangulate(t *testing.T) {
	o := must.Get(openCV.Optics(openCV.Width, openCV.Height))(t)
	for _, c := range []struct {
		views, wrong int
		noise        float64
		most         float64 // error, median
	}{{2, 0, 0, 1e-11}, {2, 0, 0.5, 0.02}, {6, 0, 0.5, 0.005}, {6, 2, 0.5, 0.008}, {20, 12, 0.5, 0.006}} {
		var errs []float64
		d := &draws{seed: 4}
		for range 200 {
			x := d.vec(1)
			var poses []adjust.Pose
			var sights []Sight
			for k := range c.views {
				p := pose{geom.RotationFromVector(d.vec(0.1)), vec{d.normal(), d.normal(), 6}}
				u, v, _ := o.Project(p.apply(x))
				if k < c.wrong {
					u, v = d.between(0, o.Width), d.between(0, o.Height)
				}
				s, _ := Look(o, u+c.noise*d.normal(), v+c.noise*d.normal())
				poses, sights = append(poses, adjust.Pose{R: p.r, T: p.t}), append(sights, s)
			}
			p, ok := Triangulate(poses, sights, Options{})
			errs = append(errs, geom.Length(geom.Sub(p.X, x)))
			if n := len(p.Inliers) - c.views + c.wrong; !ok || n < -1 || n > 1 || !(p.Error <= 2*c.noise+1e-9) ||
				!(p.Angle > 0.01) {
				errs[len(errs)-1] = infinite
			}
		}
		checkErrors(t, "triangulated", errs, c.most, 20*c.most, 0.05)
	}
}

// A point behind a camera is none, nor one of which rays are parallel.
func TestNoPoint(t *testing.T) {
	o := must.Get(plain.Optics(plain.Width, plain.Height))(t)
	left, _ := Look(o, 600, 600)
	right, _ := Look(o, 900, 600)
	poses := []adjust.Pose{{R: geom.Identity}, {R: geom.Identity, T: vec{-1, 0, 0}}}
	if p, ok := Triangulate(poses, []Sight{left, right}, Options{}); ok {
		t.Errorf("rays that part meet at %v", p.X)
	}
	if p, ok := Triangulate(poses, []Sight{right, left}, Options{}); !ok || math.Abs(p.X[2]-4.37) > 0.02 {
		t.Errorf("rays meet at %v", p.X)
	}
}
