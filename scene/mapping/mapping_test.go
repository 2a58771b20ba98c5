package mapping

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/twoview"
)

// errors of a model against the truth, after the similarity that brings its centres closest: the mean angle between
// rotations in degrees, and the root mean square of the centres' distances as a share of their spread.
func (s *truth) compare(m *Model) (turn, share float64) {
	var a, b [3]float64
	n := 0.0
	for i, placed := range m.Placed {
		if placed {
			n++
			a, b = geom.Add(a, centreOf(m, i)), geom.Add(b, s.cameras[i].Center())
		}
	}
	a, b = geom.Scale(a, 1/n), geom.Scale(b, 1/n)
	var product, axes [9]float64
	var own, spread float64
	for i, placed := range m.Placed {
		if !placed {
			continue
		}
		x, y := geom.Sub(centreOf(m, i), a), geom.Sub(s.cameras[i].Center(), b)
		own += geom.Dot(x, x)
		spread += geom.Dot(y, y)
		own := geom.Product(geom.Transposed(s.cameras[i].R), m.Poses[i].R)
		for k := range 9 {
			product[k] += y[k/3] * x[k%3]
			axes[k] += own[k]
		}
	}
	// centres on a line say nothing of turns about it, so that rotations are brought together by themselves
	world, turned := nearest(product), nearest(axes)
	var along, off float64
	for k := range 9 {
		along += world[k] * product[k]
	}
	for i, placed := range m.Placed {
		if !placed {
			continue
		}
		x, y := geom.Sub(centreOf(m, i), a), geom.Sub(s.cameras[i].Center(), b)
		d := geom.Sub(geom.Scale(geom.Rotate(world, x), along/own), y)
		off += geom.Dot(d, d)
		turn += geom.Length(geom.VectorFromRotation(geom.Product(geom.Product(s.cameras[i].R, turned),
			geom.Transposed(m.Poses[i].R)))) / n
	}
	return turn * 180 / math.Pi, math.Sqrt(off / spread)
}

// nearest returns the rotation closest to a matrix.
func nearest(m [9]float64) [9]float64 {
	var svd mat.SVD
	svd.Factorize(mat.NewDense(3, 3, m[:]), mat.SVDFull)
	var u, v, r mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	r.Product(&u, mat.NewDiagDense(3, []float64{1, 1, mat.Det(&u) * mat.Det(&v)}), v.T())
	return [9]float64(r.RawMatrix().Data)
}

func centreOf(m *Model, i int) [3]float64 {
	return geom.TranslationOf(geom.Transposed(m.Poses[i].R), m.Poses[i].T)
}

func TestScenes(t *testing.T) {
	panorama := arc(12, 1.2)
	at := geom.Vec(panorama.cameras[6].Center())
	for i := range 6 {
		panorama.look(at, geom.Vec{float64(i) - 2.5, 0, 0.3})
	}
	planar := aerial(4, 4, 0) // from above, nothing tells a focal length from a height
	planar.known = true
	wall := arc(12, 1.6)
	for i := range wall.points {
		wall.points[i][1] = 0
	}
	spheres := hall(10, 0)
	spheres.known = true
	few := arc(10, 1.2)
	few.points = few.points[:150]
	for _, c := range []struct {
		name        string
		scene       *truth
		turn, share float64
	}{
		{"arc", arc(10, 1.2), 0.1, 0.003},
		{"around", around(36, 2000), 0.1, 0.003},
		{"street", street(24), 0.1, 0.003},
		{"aerial", aerial(5, 6, 12), 0.1, 0.003},
		{"planar", planar, 0.1, 0.01},
		{"wall", wall, 0.1, 0.005},
		{"panorama", panorama, 0.1, 0.005},
		{"twins", twins(36, 2000), 0.15, 0.005},
		{"block", block(60), 0.2, 0.006},
		{"few", few, 0.3, 0.01},
		{"panoramas", spheres, 0.03, 0.001},
		{"panoramas and photos", hall(10, 8), 0.06, 0.002},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := c.scene.input()
			m, err := Map(context.Background(), in, Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			turn, share := c.scene.compare(m)
			f := m.Lenses[0].Params[0] / c.scene.lens.Params[0]
			t.Logf("%d pairs, %d points, lens %.5g: rotations off by %.4f degrees, centres by %.4f %%", len(in.Pairs),
				len(m.Points), m.Lenses[0].Params, turn, 100*share)
			if len(m.Missing) > 0 {
				t.Errorf("missing: %+v", m.Missing)
			}
			if !(turn <= c.turn && share <= c.share && math.Abs(f-1) < 0.01) {
				t.Errorf("rotations are off by %.4f degrees, centres by %.4f %%, the focal length by %.3f %%", turn,
					100*share, 100*(f-1))
			}
		})
	}
}

// Cameras that are fixed to each other are found better than by themselves, and all of them.
func TestRig(t *testing.T) {
	for _, cameras := range []int{2, 4} {
		s := ride(14, cameras)
		in := s.input()
		loose := *in
		loose.Photos = slices.Clone(in.Photos)
		for i := range loose.Photos {
			loose.Photos[i].Moment = 0
		}
		apart := loose // moments of cameras that are not fixed to each other
		apart.Photos = slices.Clone(loose.Photos)
		for i := range apart.Photos {
			apart.Photos[i].Moment = 1 + (i/cameras+5*(i%cameras))%14
		}
		var turn, share [3]float64
		var models [3]*Model
		for k, in := range []*Input{&loose, in, &apart} {
			before := runtime.GOMAXPROCS(1 + k)
			m, err := Map(context.Background(), in, Options{Seed: 1})
			runtime.GOMAXPROCS(before)
			if err != nil {
				t.Fatal(err)
			}
			models[k] = m
			turn[k], share[k] = s.compare(m)
			t.Logf("%d cameras, %d moments, %d points, %d missing: rotations off by %.4f degrees, centres by %.4f %%",
				cameras, m.Moments, len(m.Points), len(m.Missing), turn[k], 100*share[k])
		}
		if m := models[1]; m.Moments != 14 || len(m.Missing) > 0 || share[1] > 0.8*share[0] || turn[1] > 1.1*turn[0] {
			t.Errorf("%d moments, missing: %+v, off by %.4f degrees, centres by %.4f %%", m.Moments, m.Missing, turn[1],
				100*share[1])
		}
		if !reflect.DeepEqual(models[2], models[0]) {
			t.Errorf("photos of different moments change the model: %d moments", models[2].Moments)
		}
		if m, err := Map(context.Background(), in, Options{Seed: 1}); err != nil || !reflect.DeepEqual(m, models[1]) {
			t.Errorf("other cores give another model: %v", err)
		}
	}
}

// Of two parts the larger is the model, and the other is named.
func TestParts(t *testing.T) {
	s := arc(8, 1).with(arc(5, 0.8), [3]float64{500, 0, 0})
	in := s.input()
	m, err := Map(context.Background(), in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Missing) != 5 {
		t.Fatalf("missing: %+v", m.Missing)
	}
	for i, x := range m.Missing {
		if x.Photo != 8+i || x.Best != -1 || x.Part != 5 {
			t.Errorf("missing: %+v", x)
		}
	}
}

// Any number of cores gives the same bytes, also of a fisheye.
func TestCores(t *testing.T) {
	fish := room(10, 300)
	fish.lens = as(fish.lens, scene.LensRadialFisheye)
	fish.lens.Params[0], fish.chosen = 400, true
	for _, in := range []*Input{arc(8, 1).input(), fish.input()} {
		var first *Model
		for _, cores := range []int{1, 2, 5} {
			before := runtime.GOMAXPROCS(cores)
			m, err := Map(context.Background(), in, Options{Seed: 3})
			runtime.GOMAXPROCS(before)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = m
			} else if !reflect.DeepEqual(m, first) {
				t.Fatalf("%d cores give another model than one", cores)
			}
		}
	}
}

// ending is a context that is done once it was asked for its error left times.
type ending struct {
	context.Context
	left atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A context that is done, however late, is the error: no model lacks what was left out then.
func TestStopped(t *testing.T) {
	in := arc(5, 0.5).input()
	end := &ending{Context: context.Background()}
	const all = 1 << 40
	end.left.Store(all)
	if _, err := Map(end, in, Options{}); err != nil {
		t.Fatal(err)
	}
	asked := all - end.left.Load()
	for k := range int64(8) {
		at := asked*k/7 - k/7
		end.left.Store(at)
		if m, err := Map(end, in, Options{}); m != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("done when asked %d of %d times: %v", at, asked, err)
		}
	}
}

// A match that would give a track two keypoints of one photo is left out, whatever else the track has; pairs with more
// inliers come first.
func TestTracks(t *testing.T) {
	in := &Input{Photos: make([]Photo, 4)}
	for i := range in.Photos {
		in.Photos[i].Keypoints = make([][2]float32, 3)
	}
	pair := func(a, b int, matches ...[2]int32) *Pair {
		p := &Pair{A: a, B: b, Matches: matches}
		for i := range matches {
			p.Relation.Inliers = append(p.Relation.Inliers, int32(i))
		}
		return p
	}
	got := buildTracks(in, []*Pair{pair(2, 3, [2]int32{0, 0}), pair(0, 2, [2]int32{1, 0}),
		pair(0, 1, [2]int32{0, 0}, [2]int32{1, 1}), pair(1, 2, [2]int32{0, 0}, [2]int32{2, 2})})
	want := [][]Sight{{{0, 0}, {1, 0}, {2, 0}, {3, 0}}, {{0, 1}, {1, 1}}, {{1, 2}, {2, 2}}}
	if len(got) != len(want) {
		t.Fatalf("%d tracks, want %d", len(got), len(want))
	}
	for i, list := range want {
		var sights []Sight
		for _, s := range got[i].sights {
			sights = append(sights, s.Sight)
		}
		if !slices.Equal(sights, list) {
			t.Errorf("track %d: %v, want %v", i, sights, list)
		}
	}
}

// Fundamental matrices alone give the focal length, within what they and their noise leave open.
func TestFocals(t *testing.T) {
	for _, s := range []*truth{arc(10, 1.2), street(16)} {
		s.lens.Params[3] = 0
		in := s.input()
		lenses := []scene.Calibration{in.Lenses[0].begun()}
		calibrateFocals(in, lenses)
		if f := lenses[0].Params[0] / s.lens.Params[0]; math.Abs(f-1) > 0.04 {
			t.Errorf("the focal length is off by %.1f %%", 100*(f-1))
		}
	}
}

// Pairs that are all wrong end, whatever with.
func TestGarbage(t *testing.T) {
	for seed := range uint32(6) {
		d := &draws{seed: seed}
		in := &Input{Lenses: []Lens{{Calibration: newTruth().lens}, {Calibration: newTruth().lens}}}
		for i := range 8 {
			p := Photo{Lens: i % 2}
			for range 200 {
				p.Keypoints = append(p.Keypoints, [2]float32{float32(1000 * d.uniform()), float32(750 * d.uniform())})
			}
			in.Photos = append(in.Photos, p)
		}
		for b := range in.Photos {
			for a := range b {
				p := Pair{A: a, B: b}
				for i := range int32(150) {
					p.Matches = append(p.Matches, [2]int32{i, int32(200 * d.uniform())})
					p.Relation.Inliers = append(p.Relation.Inliers, i)
				}
				p.Relation.Kind = twoview.Uncalibrated + twoview.Kind((a+b)%3)
				for i := range 9 {
					p.Relation.F[i], p.Relation.H[i] = d.normal()*1e-3, d.normal()
				}
				in.Pairs = append(in.Pairs, p)
			}
		}
		m, err := Map(context.Background(), in, Options{})
		if err == nil && len(m.Missing) == 0 {
			t.Error("all photos are placed by nothing")
		}
		done, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Map(done, in, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error of a canceled context: %v", err)
		}
	}
}

// A lens becomes a richer one where the photos were taken with that, and only there; the one that is asked for is found
// in any case.
func TestLenses(t *testing.T) {
	angles := []float64{420, 500, 375, 0.03, -0.01, 0.004, -0.001}
	for _, c := range []struct {
		name   string
		model  scene.LensModel // of the photos
		params []float64
		begun  scene.LensModel
		chosen bool
		found  scene.LensModel
		off    float64 // factor of the guessed focal length
	}{
		{"square", scene.LensRadial, []float64{850, 500, 375, -0.05, 0.01}, scene.LensSimplePinhole, false,
			scene.LensRadial, 1.2},
		{"not square", scene.LensOpenCV, []float64{850, 842, 500, 375, -0.05, 0.01, 0, 0}, scene.LensSimplePinhole,
			false, scene.LensOpenCV, 1.2},
		{"decentred", scene.LensOpenCV, []float64{850, 850, 500, 375, -0.05, 0.01, 0.003, -0.002},
			scene.LensSimplePinhole, false, scene.LensOpenCV, 1.2},
		{"simple", scene.LensSimplePinhole, []float64{850, 500, 375}, scene.LensSimplePinhole, true,
			scene.LensSimplePinhole, 1.2},
		{"pinhole", scene.LensPinhole, []float64{850, 842, 500, 375}, scene.LensPinhole, true, scene.LensPinhole, 1.2},
		{"radial", scene.LensSimpleRadial, []float64{850, 500, 375, -0.05}, scene.LensSimpleRadial, true,
			scene.LensSimpleRadial, 1.2},
		{"needless", scene.LensRadial, []float64{850, 500, 375, -0.05, 0.01}, scene.LensOpenCV, true,
			scene.LensOpenCV, 1},
		{"fisheye", scene.LensOpenCVFisheye, append([]float64{420}, angles...), scene.LensOpenCVFisheye, true,
			scene.LensOpenCVFisheye, 1.9},
		{"long fisheye", scene.LensRadialFisheye, angles[:5], scene.LensRadialFisheye, true, scene.LensRadialFisheye,
			0.55},
		{"backwards", scene.LensRadialFisheye, []float64{260, 500, 375, 0.02, -0.003}, scene.LensRadialFisheye, true,
			scene.LensRadialFisheye, 0.75}, // corners are 140 degrees off the axis
	} {
		t.Run(c.name, func(t *testing.T) {
			points := 1500
			if info, _ := c.model.Info(); info.Fish { // it sees nearly all of them
				points = 400
			}
			s := room(24, points)
			s.lens.Model, s.lens.Params, s.chosen, s.off = c.model, c.params, c.chosen, c.off
			m, err := Map(context.Background(), s.inputAs(c.begun), Options{})
			if err != nil {
				t.Fatal(err)
			}
			turn, share := s.compare(m)
			k := m.Lenses[0]
			t.Logf("%s %.5g: rotations off by %.4f degrees, centres by %.4f %%", k.Model, k.Params, turn, 100*share)
			if k.Model != c.found || len(m.Missing) > 0 || !(turn < 0.08 && share < 0.003) {
				t.Errorf("%s %.5g, missing: %d", k.Model, k.Params, len(m.Missing))
			}
			for i, want := range as(s.lens, c.found).Params {
				most := 0.01 // of distortion, of which some terms together do as others
				if info, _ := k.Model.Info(); i < info.Focals+2 {
					most = 3
				}
				if math.Abs(k.Params[i]-want) > most {
					t.Errorf("parameter %d is %.5g, want %.5g", i, k.Params[i], want)
				}
			}
		})
	}
}

// Photos of as many cameras find focal lengths each, which nothing tells, or EXIF tells wrong of cut photos.
func TestManyLenses(t *testing.T) {
	for _, cut := range []bool{false, true} {
		s := room(24, 1500)
		for range s.cameras {
			s.zooms = append(s.zooms, 0.7+0.9*s.draws.uniform())
		}
		in := s.input()
		for i := range in.Lenses {
			if k := &in.Lenses[i]; cut && i%3 > 0 {
				k.FocalKnown, k.Params = true, slices.Clone(k.Params)
				k.Params[0] = s.lens.Params[0] * s.zooms[i] * []float64{0, 1, 1.4}[i%3]
			}
		}
		for i := range in.Pairs {
			p := &in.Pairs[i]
			p.Relation = twoview.Relate(in.view(p.A), in.view(p.B), p.Matches, twoview.Options{})
		}
		m, err := Map(context.Background(), in, Options{})
		if err != nil {
			t.Fatal(err)
		}
		turn, share := s.compare(m)
		worst := 0.0
		for i, k := range m.Lenses {
			worst = max(worst, math.Abs(math.Log(k.Params[0]/s.lens.Params[0]/s.zooms[i])))
		}
		t.Logf("rotations off by %.4f degrees, centres by %.4f %%, focal lengths by %.2f %%", turn, 100*share,
			100*worst)
		if len(m.Missing) > 0 || !(turn < 0.1 && share < 0.015 && worst < 0.02) {
			t.Errorf("cut: %v, missing: %d", cut, len(m.Missing))
		}
	}
}
