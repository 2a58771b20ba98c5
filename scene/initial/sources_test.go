package initial

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/scene/scenetest"
)

func initOptions(kind string) Options {
	return Options{Kind: kind, Opacity: 0.1, Scale: 1, Seed: 42, Degree: 1}
}

func mustInit(t *testing.T, c *scene.Capture, o Options) *scene.Splats {
	t.Helper()
	s, err := Splats(context.Background(), c, o)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	must.Do(t, s.Validate())
	return s
}

func TestInitFromCapture(t *testing.T) {
	c := scenetest.Ring(10, 1000)
	c.Normalise()
	want := Initialise(t.Context(), c.Points, 42, 1, 0.1, 1)
	for _, kind := range []string{InitAuto, InitPoints} {
		if got := mustInit(t, c, initOptions(kind)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q differs", kind)
		}
	}
	o := initOptions(InitAuto)
	o.Opacity, o.Scale = 0.5, 0.1
	got := mustInit(t, c, o)
	for i := range got.LogScales {
		if math.Abs(float64(got.LogScales[i]-want.LogScales[i])-math.Log(0.1)) > 1e-6 || got.LogitOpacities[i/3] != 0 {
			t.Fatalf("log scale %v of %v, logit opacity %v", got.LogScales[i], want.LogScales[i],
				got.LogitOpacities[i/3])
		}
	}
}

func TestInitWithoutPoints(t *testing.T) {
	c := scenetest.Ring(10, 0)
	c.Normalise()
	for _, kind := range []string{InitAuto, InitPoints} {
		_, err := Splats(context.Background(), c, initOptions(kind))
		scenetest.CheckRefusal(t, err, []string{"no usable points"}, "init random", nil)
	}
	c.Synthetic = true
	s := mustInit(t, c, initOptions(InitAuto))
	if s.N != DefaultRandomPoints {
		t.Errorf("%d splats", s.N)
	}
	// Uniform in the cube, in the capture's own frame.
	back := s.ToCapture(c.Frame, [3]float64{})
	low, high, mean := 9.0, -9.0, 0.0
	for _, x := range back.Means {
		low, high, mean = min(low, float64(x)), max(high, float64(x)), mean+float64(x)/float64(len(back.Means))
	}
	if low < -1.3001 || low > -1.299 || high > 1.3001 || high < 1.299 || math.Abs(mean) > 0.01 {
		t.Errorf("from %v to %v, mean %v", low, high, mean)
	}
	_, err := Splats(context.Background(), c, initOptions(InitPoints))
	scenetest.CheckRefusal(t, err, []string{"no usable points"}, "init random", nil)
}

func TestInitRandom(t *testing.T) {
	c := scenetest.Ring(10, 0)
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		cam.T = geom.Sub(cam.T, geom.Rotate(cam.R, [3]float64{100, 200, 300}))
	}
	c.Normalise()
	o := initOptions(InitRandom)
	o.Points = 5000
	s := mustInit(t, c, o)
	if s.N != 5000 {
		t.Fatalf("%d splats", s.N)
	}
	var mean [3]float64
	for i := range s.N {
		p := [3]float64{float64(s.Means[3*i]), float64(s.Means[3*i+1]), float64(s.Means[3*i+2])}
		mean = geom.Add(mean, geom.Scale(p, 1/float64(s.N)))
		n := 0
		for k := range c.Cameras {
			if _, in := c.Cameras[k].SeesBetween(p, 0, math.Inf(1)); in {
				n++
			}
		}
		if n < 5 {
			t.Fatalf("point %v is seen by %d of 10 cameras", p, n)
		}
	}
	if geom.Length(mean) > 0.05 {
		t.Errorf("mean %v", mean)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if again := mustInit(t, c, o); !reflect.DeepEqual(again, s) {
		t.Error("another number of cores gives other splats")
	}
	o.Seed++
	if other := mustInit(t, c, o); slices.Equal(other.Means, s.Means) {
		t.Error("the seed does not matter")
	}
}

// Where the capture says how deep its photos are, points are there, as many in front of each camera, also of cameras
// that look in one direction from places side by side.
func TestInitBetweenDepths(t *testing.T) {
	c := scenetest.Ring(10, 0)
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		cam.R, cam.T = c.Cameras[0].R, [3]float64{float64(i), 0, 0}
		if i > 0 {
			cam.Depths = [2]float64{20, 80}
		}
	}
	_, err := Splats(context.Background(), c, initOptions(InitPoints))
	scenetest.CheckRefusal(t, err, []string{"no usable points"}, "init random", nil)
	c.Normalise()
	for _, kind := range []string{InitAuto, InitRandom} {
		o := initOptions(kind)
		o.Points = 9000
		s := mustInit(t, c, o)
		back := s.ToCapture(c.Frame, [3]float64{})
		near := make([]int, 10)
		for i := range s.N {
			cam := c.Frame.ToCapture(c.Cameras[1+i%9], [3]float64{})
			p := [3]float64{float64(back.Means[3*i]), float64(back.Means[3*i+1]), float64(back.Means[3*i+2])}
			depth, in := cam.SeesBetween(p, 19.999, 80.001)
			if !in || cam.Depths[1] < 79.999 || cam.Depths[1] > 80.001 {
				t.Fatalf("%q: point %d has the depth %g, camera %v", kind, i, depth, cam.Depths)
			}
			if depth < 32 { // where 1 / depth is half way
				near[1+i%9]++
			}
		}
		for i, n := range near[1:] {
			if n < 430 || n > 570 {
				t.Errorf("%q: %d of 1000 points of camera %d are near", kind, n, i+1)
			}
		}
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		if again := mustInit(t, c, o); !reflect.DeepEqual(again, s) {
			t.Errorf("%q: another number of cores gives other splats", kind)
		}
	}
}

func TestBoxInView(t *testing.T) {
	c := scenetest.Ring(10, 0)
	if box := boxInView(c.Cameras, 1); geom.Length(box.center) > 1e-12 || !scenetest.Near(box.half, 4, 1e-12) {
		t.Errorf("%+v", box)
	}
	// Outwards, and all in the same direction: no place is common.
	out, side := scenetest.Ring(10, 0), scenetest.Ring(10, 0)
	for i := range out.Cameras {
		out.Cameras[i].T[2] = -4
		side.Cameras[i].R, side.Cameras[i].T = out.Cameras[0].R, [3]float64{float64(i), 0, 0}
	}
	for _, c := range []*scene.Capture{out, side} {
		if box := boxInView(c.Cameras, 2); box.half != 6 || box.center != [3]float64{} {
			t.Errorf("%+v", box)
		}
		c.Normalise()
		o := initOptions(InitRandom)
		o.Points = 100
		mustInit(t, c, o)
	}
}

func TestInitFromPLY(t *testing.T) {
	dir := t.TempDir()
	c := scenetest.Ring(10, 50)
	c.Cameras[0].T[2] = 9
	cloudFile := filepath.Join(dir, "cloud.ply")
	text := "ply\nformat ascii 1.0\nelement vertex 4\nproperty double x\nproperty double y\nproperty double " +
		"z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n0 0 0 1 2 3\n1 0 0 4 5 6\n1.1 0 0 6 7 8\n0 0 2 9 9 9\n"
	scenetest.Put(t, cloudFile, []byte(text))
	c.Normalise()
	o := initOptions(InitPLY)
	o.File = cloudFile
	s := mustInit(t, c, o).ToCapture(c.Frame, [3]float64{})
	if s.N != 4 || math.Abs(float64(s.Means[11]-2)) > 1e-6 || math.Abs(float64(s.Means[6])-1.1) > 1e-6 {
		t.Errorf("%d at %v", s.N, s.Means)
	}
	o.Grid = 0.5
	s = mustInit(t, c, o).ToCapture(c.Frame, [3]float64{})
	if s.N < 3 || s.N > 4 { // the two neighbours may be in two cells
		t.Errorf("%d splats", s.N)
	}

	// A model is used as it is, whatever opacity and scale say.
	model := Initialise(t.Context(), cloud(20), 1, 2, 0.3, 2)
	for i := range model.SH {
		model.SH[i] = float32(i) / 100
	}
	file := filepath.Join(dir, "model.ply")
	must.Do(t, plytest.Write(file, model, ply.Meta{Origin: &[3]float64{10, 20, 30}}))
	o = initOptions(InitPLY)
	o.File = file
	got := mustInit(t, c, o)
	back := got.ToCapture(c.Frame, [3]float64{10, 20, 30})
	if got.Degree != 1 || !slices.Equal(got.LogitOpacities, model.LogitOpacities) ||
		!slices.Equal(got.SH[:12], model.SH[:12]) || !slices.Equal(got.SH[12:24], model.SH[27:39]) {
		t.Errorf("degree %d", got.Degree)
	}
	for i, x := range back.Means {
		if math.Abs(float64(x-model.Means[i])) > 1e-4 {
			t.Fatalf("mean %v, want %v", x, model.Means[i])
		}
	}
	o.Degree = 3
	if got := mustInit(t, c, o); got.Degree != 3 || got.SH[27] != 0 || got.SH[48] != model.SH[27] {
		t.Error("degree 3 holds other coefficients")
	}
	o.Grid = 1
	_, err := Splats(context.Background(), c, o)
	scenetest.CheckRefusal(t, err, []string{"a grid samples points"}, "init-grid", fault.ErrUsage)
	o = initOptions(InitPLY)
	o.File = filepath.Join(dir, "nowhere.ply")
	_, err = Splats(context.Background(), c, o)
	scenetest.CheckRefusal(t, err, []string{"nowhere.ply"}, "spelling", nil)
}

func TestGrid(t *testing.T) {
	points := []scene.Point{{Pos: [3]float64{0.1, 0.1, 0.1}, Color: [3]uint8{0, 10, 255}},
		{Pos: [3]float64{5, 5, 5}, Color: [3]uint8{1, 1, 1}},
		{Pos: [3]float64{0.3, 0.5, 0.9}, Color: [3]uint8{1, 20, 255}},
		{Pos: [3]float64{-0.1, 0.1, 0.1}, Color: [3]uint8{}}}
	got, err := gridSample(points, 1)
	want := []scene.Point{{Pos: [3]float64{0.2, 0.3, 0.5}, Color: [3]uint8{1, 15, 255}}, points[1], points[3]}
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for i := range want {
		if got[i].Color != want[i].Color || geom.Length(geom.Sub(got[i].Pos, want[i].Pos)) > 1e-12 {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	// Against a map, over many cells.
	many := cloud(20000)
	cells := map[[3]int]int{}
	for _, p := range many {
		cells[[3]int{int(math.Floor(p.Pos[0] / 0.01)), int(math.Floor(p.Pos[1] / 0.01)),
			int(math.Floor(p.Pos[2] / 0.01))}]++
	}
	if got, err = gridSample(many, 0.01); err != nil || len(got) != len(cells) {
		t.Errorf("%d cells, want %d, %v", len(got), len(cells), err)
	}
	if grown := scenetest.HeapGrowth(func() { _, _ = gridSample(many, 100) }); grown > 1<<16 {
		t.Errorf("%d bytes for one cell", grown)
	}
	_, err = gridSample(points, 1e-300)
	scenetest.CheckRefusal(t, err, []string{"can be counted"}, "init-grid", fault.ErrUsage)
}

func TestInitOptions(t *testing.T) {
	for in, want := range map[string][2]string{"points": {"points", ""}, "random": {"random", ""}, "auto": {"", ""},
		"ply:a b.ply": {"ply", "a b.ply"}, "x.spz": {"ply", "x.spz"}, "out/model": {"ply", "out/model"}} {
		if kind, file, err := ParseInit(in); err != nil || kind != want[0] || file != want[1] {
			t.Errorf("%q: %q, %q, %v", in, kind, file, err)
		}
	}
	for _, in := range []string{"ply:", "ply", "Random"} {
		if _, _, err := ParseInit(in); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%q: %v", in, err)
		}
	}
	for name, change := range map[string]func(o *Options){
		"kind": func(o *Options) { o.Kind = "x" }, "no file": func(o *Options) { o.Kind = InitPLY },
		"points": func(o *Options) { o.Points = -1 },
		"many":   func(o *Options) { o.Points = 1 << 40 }, "grid": func(o *Options) { o.Grid = math.NaN() },
		"opacity": func(o *Options) { o.Opacity = 1 }, "scale": func(o *Options) { o.Scale = 0 },
	} {
		o := initOptions(InitAuto)
		change(&o)
		if err := Check(scenetest.Ring(3, 10), o); !errors.Is(err, fault.ErrUsage) || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Points that are not finite are left out of the file to begin with, flat splats are read, and both are told.
func TestInitWarns(t *testing.T) {
	c := scenetest.Ring(10, 50)
	c.Normalise()
	dir := t.TempDir()
	const head = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
	flat := "property float " + strings.Join(strings.Fields("f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 rot_0 rot_1 "+
		"rot_2 rot_3"), "\nproperty float ") + "\nend_header\n"
	for text, want := range map[string]string{
		head + "end_header\n0 0 0\n1 -nan(ind) 0\n1.1 0 0\n":             "1 of 3 points are left out",
		head + flat + strings.Repeat("1 2 3 0 0 0 1 -3 -3 1 0 0 0\n", 3): "flat disks",
	} {
		o := initOptions(InitPLY)
		o.File = filepath.Join(dir, "a.ply")
		scenetest.Put(t, o.File, []byte(text))
		var said []string
		o.Warn = func(text string) { said = append(said, text) }
		if s := mustInit(t, c, o); s.N < 2 || len(said) != 1 || !strings.Contains(said[0], want) {
			t.Errorf("%d splats, said %q, want %q", s.N, said, want)
		}
	}
}

// TestInitWithoutDirection begins with a model one of whose splats has no rotation: no file could be written of what
// would come of it.
func TestInitWithoutDirection(t *testing.T) {
	c := scenetest.Ring(10, 1000)
	c.Normalise()
	s := mustInit(t, c, initOptions(InitPoints))
	file := filepath.Join(t.TempDir(), "model.ply")
	o := initOptions(InitPLY)
	o.File, o.Model = file, func(string) (int, func() (*scene.Splats, ply.Meta, error), error) {
		return s.N, func() (*scene.Splats, ply.Meta, error) { return s, ply.Meta{}, nil }, nil
	}
	for _, q := range []float32{0, 3e38} {
		for k := range 4 {
			s.Quats[4*9+k] = q
		}
		if _, err := Splats(context.Background(), c, o); !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("a rotation of four times %g: %v", q, err)
		}
	}
}

// TestCanceled wants nothing to be made once the caller has given up, from where it may take long.
func TestCanceled(t *testing.T) {
	c := scenetest.Ring(10, 50)
	c.Normalise()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, kind := range []string{InitRandom, InitPoints} {
		o := initOptions(kind)
		o.Points = 100
		if s, err := Splats(ctx, c, o); !errors.Is(err, context.Canceled) || s != nil {
			t.Errorf("%s: %v, error %v", kind, s, err)
		}
	}
}

// TestCount wants the number of splats to be known before they are made.
func TestCount(t *testing.T) {
	c := scenetest.Ring(10, 50)
	c.Normalise()
	file := filepath.Join(t.TempDir(), "model.ply")
	must.Do(t, plytest.Write(file, Initialise(t.Context(), cloud(20), 1, 2, 0.3, 2), ply.Meta{}))
	for kind, want := range map[string]int{InitRandom: 77, InitPoints: len(c.Points), InitPLY: 20} {
		o := initOptions(kind)
		o.Points, o.File = 77, file
		if n, err := Count(c, o); err != nil || n != want {
			t.Errorf("%s: %d splats, want %d, error %v", kind, n, want, err)
		}
	}
}
