package calibrate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// random draws numbers that tests repeat.
type random struct{ at uint32 }

func (r *random) uniform() float64 {
	r.at++
	return philox.Uniform(philox.Block([4]uint32{r.at}, philox.Key(7))[0])
}

func (r *random) normal() float64 {
	radius, sin, _ := philox.NormalPair(max(r.uniform(), 1e-9), r.uniform())
	return radius * sin
}

// made is a reconstruction whose true cameras are known: photos on a ring around points in a cube.
type made struct {
	m    *colmap.Model
	true *colmap.Model
	c    *scene.Capture
}

const (
	photos     = 24
	madePoints = 1500
	noise      = 0.3 // pixels
)

// ring makes one as seen through a lens, and every eighth photo held out. Observations have noise; what is given has
// the true poses, and the lens given.
func ring(given, lens scene.Calibration) *made {
	rnd := &random{}
	o := must1(lens.Optics(lens.Width, lens.Height))
	m := &colmap.Model{Cameras: map[uint32]scene.Calibration{1: given}}
	for i := range madePoints {
		m.Points = append(m.Points, colmap.Point{ID: uint64(10 + 3*i), Point: scene.Point{
			Pos: [3]float64{2*rnd.uniform() - 1, 2*rnd.uniform() - 1, 2*rnd.uniform() - 1}}})
	}
	c := &scene.Capture{Format: scene.FormatColmap, HeldOut: map[string]bool{}}
	for i := range photos {
		angle := 2 * math.Pi * float64(i) / photos
		r := geom.Product(geom.RotationFromVector([3]float64{0.1 * math.Sin(3*angle), 0, 0}),
			geom.RotationFromVector([3]float64{0, angle, 0}))
		t := [3]float64{0.1 * math.Cos(angle), 0.2 * math.Sin(2*angle), 3.2 + 0.4*math.Sin(angle)}
		name := fmt.Sprintf("%03d.jpg", i)
		c.Cameras = append(c.Cameras, scene.Camera{Name: name})
		c.HeldOut[name] = i%8 == 0
		var seen []colmap.Seen
		for _, p := range m.Points {
			x, y, ok := o.Project(geom.Add(geom.Rotate(r, p.Pos), t))
			if ok && x > 0 && y > 0 && x < float64(lens.Width) && y < float64(lens.Height) && rnd.uniform() < 0.4 {
				seen = append(seen, colmap.Seen{X: x + noise*rnd.normal(), Y: y + noise*rnd.normal(), Point: p.ID})
			}
		}
		m.Images = append(m.Images, colmap.Image{Id: uint32(i + 1), Camera: 1, Name: name, T: t,
			Quat: geom.QuatFromRotation(r)})
		m.Seen = append(m.Seen, seen)
	}
	is := *m
	is.Images = slices.Clone(m.Images)
	is.Cameras = map[uint32]scene.Calibration{1: lens}
	return &made{m: m, true: &is, c: c}
}

func must1[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// calibrate returns the result, and the model that it left.
func (s *made) calibrate(t *testing.T) (*Result, *colmap.Model) {
	t.Helper()
	s.c.Calibrated = s.m.Files()
	res := must.Get(Capture(context.Background(), s.c, Options{}))(t)
	if res.Cameras == nil {
		return res, s.m
	}
	better := *s.c
	better.Calibrated = res.Cameras
	m, ok, err := colmap.ReadModel(&better)
	must.Do(t, err)
	if !ok {
		t.Fatal("the result has no points")
	}
	return res, m
}

// off returns the mean distance of training, or held-out, cameras from the true ones.
func (s *made) off(m *colmap.Model, held bool) (mean float64) {
	center := func(img *colmap.Image) [3]float64 {
		r, _ := geom.RotationFromQuat(img.Quat)
		return geom.TranslationOf(geom.Transposed(r), img.T)
	}
	n := 0.0
	for i := range m.Images {
		if s.c.HeldOut[m.Images[i].Name] == held {
			mean += geom.Length(geom.Sub(center(&m.Images[i]), center(&s.true.Images[i])))
			n++
		}
	}
	return mean / n
}

func pinhole(f float64) scene.Calibration {
	return scene.Calibration{Model: scene.LensPinhole, Width: 800, Height: 600, Params: []float64{f, f, 400, 300}}
}

func opencv(f, k1, k2 float64) scene.Calibration {
	return scene.Calibration{Model: scene.LensOpenCV, Width: 800, Height: 600,
		Params: []float64{f, f, 400, 300, k1, k2, 0, 0}}
}

// moved gives poses, and the focal length of each photo's own lens, errors.
func (s *made) moved(by, focal float64) *made {
	rnd := &random{at: 1 << 20}
	lens := s.m.Cameras[1]
	for i := range s.m.Images {
		img := &s.m.Images[i]
		for k := range 3 {
			img.T[k] += by * rnd.normal()
			img.Quat[1+k] += by / 4 * rnd.normal()
		}
		if focal > 0 {
			own := lens
			own.Params = slices.Clone(lens.Params)
			f := 1 + focal*rnd.normal()
			own.Params[0], own.Params[1] = f*own.Params[0], f*own.Params[1]
			img.Camera = uint32(i + 1)
			s.m.Cameras[img.Camera] = own
		}
	}
	return s
}

// TestLens finds the distortion that the given lens lacks, keeps the frame, and says what it did.
func TestLens(t *testing.T) {
	s := ring(pinhole(700), opencv(690, -0.15, 0.2))
	res, m := s.calibrate(t)
	k := m.Cameras[1]
	want := s.true.Cameras[1].Params
	if k.Model != scene.LensOpenCV || math.Abs(k.Params[0]-want[0]) > 1.5 || math.Abs(k.Params[4]-want[4]) > 0.004 ||
		math.Abs(k.Params[5]-want[5]) > 0.02 || res.After == nil || res.After.Median > 1.3*noise {
		t.Errorf("%v %v, want %v; %+v", k.Model, k.Params, want, res.Rungs)
	}
	if off := s.off(m, false); off > 0.004 {
		t.Errorf("cameras are %g from the true ones", off)
	}
	if off := s.off(m, true); off > 0.006 {
		t.Errorf("held-out cameras are %g from the true ones", off)
	}
	s.checkErrors(t, m)
	if text := res.Text(); !strings.Contains(text, "k1 0 to -0.1") || !strings.Contains(text, "f 700 to 6") {
		t.Error(text)
	}
}

// TestSquare finds pixels that are not square where the given model takes them for square, keeps those that are given,
// and makes square ones no others.
func TestSquare(t *testing.T) {
	square := scene.Calibration{Model: scene.LensSimpleRadial, Width: 800, Height: 600,
		Params: []float64{700, 400, 300, -0.1}}
	like, wide := opencv(700, -0.1, 0), opencv(700, -0.1, 0)
	wide.Params[0] = 707
	for i, c := range []struct{ given, lens scene.Calibration }{{square, wide}, {wide, wide}, {square, like}} {
		res, m := ring(c.given, c.lens).calibrate(t)
		k, _ := m.Cameras[1].Raised()
		got := k.Params[0] / k.Params[1]
		if math.Abs(got-c.lens.Params[0]/700) > 0.001 || (i > 0) == (res.After != nil) {
			t.Errorf("case %d: %v; %+v", i, k, res.Rungs)
		}
	}
}

// checkErrors demands that a model says by how much the training photos that show a point are off.
func (s *made) checkErrors(t *testing.T, m *colmap.Model) {
	t.Helper()
	p := m.Points[20]
	sum, n := 0.0, 0.0
	for i, img := range m.Images {
		r, _ := geom.RotationFromQuat(img.Quat)
		k := m.Cameras[img.Camera]
		o := must1(k.Optics(k.Width, k.Height))
		for _, at := range m.Seen[i] {
			if at.Point == p.ID && !s.c.HeldOut[img.Name] {
				x, y, _ := o.Project(geom.Add(geom.Rotate(r, p.Pos), img.T))
				sum, n = sum+math.Hypot(x-at.X, y-at.Y), n+1
			}
		}
	}
	if n == 0 || math.Abs(p.Error-sum/n) > 1e-6 {
		t.Errorf("point %d: error %g of %g photos, want %g", p.ID, p.Error, n, sum/n)
	}
}

// TestTrue leaves true cameras alone.
func TestTrue(t *testing.T) {
	for _, lens := range []scene.Calibration{pinhole(700), opencv(700, -0.1, 0.02)} {
		s := ring(lens, lens)
		if res, _ := s.calibrate(t); res.Cameras != nil || res.Text() != "" || res.Skipped != "" {
			t.Errorf("%v: %s %+v", lens.Model, res.Text(), res.Rungs)
		}
	}
}

// TestErrors mends poses, and lenses of their own that should be one.
func TestErrors(t *testing.T) {
	for _, focal := range []float64{0, 0.02} {
		s := ring(pinhole(700), pinhole(700)).moved(0.02, focal)
		before := s.off(s.m, false)
		res, m := s.calibrate(t)
		// the frame is that of the cameras that were given, with the mean of their errors
		if after := s.off(m, false); after > before/2 || s.off(m, true) > before/2 {
			t.Errorf("focal lengths off by %g: cameras are %g from the true ones, held-out ones %g; before, %g; %+v",
				focal, after, s.off(m, true), before, res.Rungs)
		}
		if len(m.Cameras) != 1 || math.Abs(m.Cameras[m.Images[1].Camera].Params[0]-700) > 3 {
			t.Errorf("lenses %v", m.Cameras)
		}
	}
}

// TestHeldOut wants nothing that a held-out photo shows in cameras that are trained on, nor in points.
func TestHeldOut(t *testing.T) {
	s := ring(pinhole(700), opencv(690, -0.15, 0.2))
	s.c.HeldOut["010.jpg"] = true
	for k := range s.m.Seen[9] { // a photo that stands apart if its neighbours do not count
		s.m.Seen[9][k].X += 20 * float64(k%3-1)
	}
	_, clean := s.calibrate(t)
	for i, img := range s.m.Images {
		if s.c.HeldOut[img.Name] {
			for k := range s.m.Seen[i] {
				s.m.Seen[i][k].X += 3
			}
		}
	}
	s.m.Images[8].T[1], s.m.Images[10].T[1], s.m.Seen[8], s.m.Seen[10] = 500, -500, nil, nil
	for k := range 200 { // and points that only held-out photos and one other show
		id := uint64(100_000 + k)
		s.m.Points = append(s.m.Points, colmap.Point{ID: id, Point: s.m.Points[k].Point})
		for _, i := range []int{0, 5, 8} {
			s.m.Seen[i] = append(s.m.Seen[i], colmap.Seen{X: 400, Y: 300, Point: id})
		}
	}
	_, other := s.calibrate(t)
	if len(clean.Images) != len(other.Images) {
		t.Fatal("held-out photos decide which training photos are left out")
	}
	for i := range clean.Images {
		if held := s.c.HeldOut[clean.Images[i].Name]; held == (clean.Images[i].T == other.Images[i].T) {
			t.Errorf("photo %d, held out: %v: pose %v and %v", i, held, clean.Images[i].T, other.Images[i].T)
		}
	}
	if !slices.Equal(clean.Points, other.Points[:len(clean.Points)]) ||
		!slices.Equal(clean.Cameras[1].Params, other.Cameras[1].Params) {
		t.Error("points or lens follow what held-out photos show")
	}
}

// TestCores wants the same bytes on any number of cores.
func TestCores(t *testing.T) {
	s := ring(pinhole(700), opencv(690, -0.15, 0.2))
	var first []byte
	for _, cores := range []int{1, 3} {
		before := runtime.GOMAXPROCS(cores)
		res, _ := s.calibrate(t)
		runtime.GOMAXPROCS(before)
		var all []byte
		for _, name := range colmap.ModelFiles {
			r, _, err := res.Cameras(name + ".bin")
			must.Do(t, err)
			all = append(all, must.Get(io.ReadAll(r))(t)...)
		}
		if first == nil {
			first = all
		} else if !bytes.Equal(first, all) {
			t.Error("the bytes depend on the number of cores")
		}
	}
}

// TestOwnRadial shares lenses of a model with one focal length, and leaves their principal points where they are.
func TestOwnRadial(t *testing.T) {
	lens := scene.Calibration{Model: scene.LensSimpleRadial, Width: 800, Height: 600,
		Params: []float64{700, 400, 300, -0.1}}
	s := ring(lens, lens).moved(0.02, 0)
	s.m.Cameras[99] = pinhole(0) // of no photo, and no lens
	for i := range s.m.Images {
		k := lens
		k.Params = []float64{700 + float64(i%5-2), 400, 300, -0.1}
		s.m.Images[i].Camera = uint32(i + 1)
		s.m.Cameras[uint32(i+1)] = k
	}
	res, m := s.calibrate(t)
	k := m.Cameras[m.Images[0].Camera]
	moves := res.Rungs != nil && res.Rungs[len(res.Rungs)-1].Kept
	if len(m.Cameras) != 1 || moves || k.Params[2] != 400 || k.Params[3] != 300 {
		t.Errorf("%d lenses, %v; %s %+v", len(m.Cameras), k, res.Skipped, res.Rungs)
	}
}

// TestLittle: photos that show too few points keep their poses, and points of one photo each change nothing.
func TestLittle(t *testing.T) {
	s := ring(pinhole(700), opencv(690, -0.15, 0.2))
	s.m.Seen[5] = s.m.Seen[5][:4]
	for k := range s.m.Seen[5] {
		s.m.Seen[5][k].X += 80
	}
	_, m := s.calibrate(t)
	r, _ := geom.RotationFromQuat(m.Images[5].Quat)
	was, _ := geom.RotationFromQuat(s.m.Images[5].Quat)
	if turn := geom.VectorFromRotation(geom.Product(r, geom.Transposed(was))); geom.Length(turn) > 0.01 {
		t.Errorf("a photo with four points turned by %g", geom.Length(turn))
	}
	s = ring(pinhole(700), opencv(690, -0.15, 0.2))
	for i, list := range s.m.Seen {
		list = slices.DeleteFunc(list, func(p colmap.Seen) bool { return p.Point/3%photos != uint64(i) })
		s.m.Seen[i] = slices.Repeat(list, 3)
	}
	if res, _ := s.calibrate(t); res.Cameras != nil || !strings.Contains(res.Skipped, "two training photos") {
		t.Errorf("points that one photo shows: %q", res.Skipped)
	}
}

// TestLine aligns cameras on a line, whose centres say nothing of turns about it.
func TestLine(t *testing.T) {
	rnd := &random{}
	turn := geom.RotationFromVector([3]float64{0.3, -0.2, 0.5})
	var from, to [][3]float64
	var turns [][9]float64
	for i := range 30 {
		x := [3]float64{float64(i), 1e-5 * rnd.normal(), 1e-5 * rnd.normal()}
		from, turns = append(from, x), append(turns, turn)
		to = append(to, geom.Add(geom.Rotate(turn, x), [3]float64{1e-5 * rnd.normal(), 1e-5 * rnd.normal(), 2}))
	}
	s := must.Get(fitSimilarity(from, to, turns))(t)
	if off := geom.VectorFromRotation(geom.Product(s.r, geom.Transposed(turn))); geom.Length(off) > 1e-3 {
		t.Errorf("turned by %g too much", geom.Length(off))
	}
	for i := range to {
		to[i] = [3]float64{}
	}
	if s, err := fitSimilarity(from, to, turns); err == nil {
		t.Errorf("to one place: scale %g", s.scale)
	}
}

// TestSkipped changes nothing where observations say nothing, and says why.
func TestSkipped(t *testing.T) {
	exact := ring(pinhole(700), pinhole(700))
	for i := range exact.m.Images {
		r, _ := geom.RotationFromQuat(exact.m.Images[i].Quat)
		o := must1(pinhole(700).Optics(800, 600))
		for k, p := range exact.m.Seen[i] {
			at := slices.IndexFunc(exact.m.Points, func(q colmap.Point) bool { return q.ID == p.Point })
			x, y, _ := o.Project(geom.Add(geom.Rotate(r, exact.m.Points[at].Pos), exact.m.Images[i].T))
			exact.m.Seen[i][k].X, exact.m.Seen[i][k].Y = x, y
		}
	}
	few := ring(pinhole(700), opencv(690, -0.15, 0.2))
	none := ring(pinhole(700), opencv(690, -0.15, 0.2))
	for i := range few.m.Seen {
		few.m.Seen[i], none.m.Seen[i] = few.m.Seen[i][:5], nil
	}
	lost := ring(pinhole(700), opencv(690, -0.15, 0.2))
	lost.m.Points = nil
	for want, s := range map[string]*made{"where the cameras project": exact, "are too few": few,
		"no observations": none, "has no observations": lost} {
		if res, _ := s.calibrate(t); res.Cameras != nil || !strings.Contains(res.Skipped, want) {
			t.Errorf("%s: %q", want, res.Skipped)
		}
	}
	s := ring(pinhole(700), opencv(690, -0.15, 0.2))
	for bytes, want := range map[int64]string{1 << 20: "to adjust them takes", 4 << 20: "to adjust 1"} {
		files := s.m.Files()
		s.c.Calibrated = func(name string) (io.ReadCloser, int64, error) {
			if name == "images.bin" && bytes == 1<<20 {
				t.Error("images are read of a model that is too large")
			}
			return files(name)
		}
		if res := must.Get(Capture(context.Background(), s.c, Options{Bytes: bytes}))(t); res.Cameras != nil ||
			!strings.Contains(res.Skipped, want) || !strings.Contains(res.Skipped, " MiB are there") {
			t.Errorf("with %d bytes of memory: %q", bytes, res.Skipped)
		}
	}
	s.c.Calibrated = func(name string) (io.ReadCloser, int64, error) {
		r, n, err := s.m.Files()(name)
		return r, n - 1, err
	}
	if res := must.Get(Capture(context.Background(), s.c, Options{}))(t); res.Cameras != nil ||
		!strings.Contains(res.Skipped, "cannot be read") {
		t.Errorf("a file that is cut: %q", res.Skipped)
	}
	s.c.Calibrated = s.m.Files()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Capture(ctx, s.c, Options{}); err != context.Canceled {
		t.Errorf("interrupted: %v", err)
	}
}
