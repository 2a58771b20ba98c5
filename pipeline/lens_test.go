package pipeline

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/lenstest"
)

// TestLensPlaces draws small splats through every lens that photos are trained on through, and wants each to be where
// the lens's own formula has it.
func TestLensPlaces(t *testing.T) {
	d := testDevice(t)
	tried := 0
	for _, c := range lenstest.All {
		k := scene.Calibration{Model: scene.LensModel(c.Model), Width: 800, Height: 1000, Params: c.Params}
		views, err := k.Views(scene.Camera{Name: "photo", R: geom.Identity}, 800, 1000, 8)
		if err != nil {
			t.Fatal(err)
		}
		taken, err := views[0].AsTaken()
		if err != nil || taken.Distortion == nil {
			continue
		}
		tried++
		o := must.Get(k.Optics(taken.Width, taken.Height))(t)
		for _, at := range [][2]float64{{30, 40}, {50, 62}, {81, 104}} {
			ray, ok := o.Ray(at[0], at[1])
			if !ok {
				continue
			}
			length := geom.Length(ray)
			s := &scene.Splats{N: 1, Means: make([]float32, 3), LogScales: []float32{-7, -7, -7},
				Quats: []float32{1, 0, 0, 0}, LogitOpacities: []float32{4}, SH: []float32{1.7, 1.7, 1.7}}
			for i := range ray {
				s.Means[i] = float32(3 * ray[i] / length)
			}
			x, y := centroid(t, d, s, taken)
			if math.Hypot(x-at[0], y-at[1]) > 0.05 {
				t.Errorf("%v: a splat is drawn at %.2f, %.2f, want %v", k.Model, x, y, at)
			}
		}
	}
	if tried < 8 {
		t.Errorf("%d lenses were tried", tried)
	}
}

// TestShutterPlaces draws small splats of which a camera that moves takes each from the pose of another row, and wants
// each to be where the ray of that row meets it: by a pinhole, a lens that bends and a fisheye.
func TestShutterPlaces(t *testing.T) {
	d := testDevice(t)
	for _, k := range []scene.Calibration{
		{Model: scene.LensPinhole, Params: []float64{90, 92, 48, 41}},
		{Model: scene.LensOpenCV, Params: []float64{80, 82, 51, 40, -0.2, 0.05, 0.001, -0.002}},
		{Model: scene.LensOpenCVFisheye, Params: []float64{60, 61, 50, 39, -0.03, 0.005, -0.002, 0.0002}},
	} {
		k.Width, k.Height = 100, 80
		pose := scene.Camera{Name: "photo", R: geom.RotationFromVector([3]float64{0.2, -0.5, 0.1}),
			T: [3]float64{0.4, -0.3, 0.2}, Motion: scene.Motion{Turn: [3]float64{0.07, -0.05, 0.09},
				Move: [3]float64{-0.2, 0.15, 0.1}}}
		views, err := k.Views(pose, k.Width, k.Height, 1)
		if err != nil {
			t.Fatal(err)
		}
		taken, err := views[0].AsTaken()
		if err != nil || taken.Motion != pose.Motion || taken.Distortion == nil {
			t.Fatalf("%v: %+v, %v", k.Model, taken.Motion, err)
		}
		o := must.Get(k.Optics(taken.Width, taken.Height))(t)
		for _, at := range [][2]float64{{20, 12}, {47, 42}, {80, 70}, {15, 66}} {
			ray, ok := o.Ray(at[0], at[1])
			if !ok {
				t.Fatalf("%v: nothing at %v", k.Model, at)
			}
			row := taken.At(at[1]/float64(taken.Height) - 0.5)
			world := geom.Add(row.Center(),
				geom.Scale(geom.Rotate(geom.Transposed(row.R), ray), 3/geom.Length(ray)))
			s := &scene.Splats{N: 1, LogScales: []float32{-7, -7, -7}, Quats: []float32{1, 0, 0, 0},
				LogitOpacities: []float32{4}, SH: []float32{1.7, 1.7, 1.7}}
			for _, x := range world {
				s.Means = append(s.Means, float32(x))
			}
			x, y := centroid(t, d, s, taken)
			still := taken
			still.Motion = scene.Motion{}
			x0, y0 := centroid(t, d, s, still)
			if math.Hypot(x-at[0], y-at[1]) > 0.05 || at[0] != 47 && math.Hypot(x0-at[0], y0-at[1]) < 0.5 {
				t.Errorf("%v: a splat is drawn at %.2f, %.2f, want %v; without motion at %.2f, %.2f", k.Model, x, y, at,
					x0, y0)
			}
		}
	}
}

// TestShutterLeans draws a long thin splat before a camera that pans: its picture leans as the rows' poses have it.
func TestShutterLeans(t *testing.T) {
	d := testDevice(t)
	const pan, height = 0.2, 120
	c := scene.Camera{Name: "photo", Width: 100, Height: height, Fx: 100, Fy: 100, Cx: 50, Cy: height / 2,
		R: geom.Identity, Motion: scene.Motion{Turn: [3]float64{0, pan, 0}}}
	taken := must.Get(c.AsTaken())(t)
	s := &scene.Splats{N: 1, Means: []float32{0, 0, 4}, LogScales: []float32{-6, -0.5, -6},
		Quats: []float32{1, 0, 0, 0}, LogitOpacities: []float32{4}, SH: []float32{1.7, 1.7, 1.7}}
	r := must.Get(NewRenderer(d, s, []scene.Camera{taken}, RenderConfig{}))(t)
	defer r.Close()
	picture := must.Get(r.RenderInto(nil, taken))(t)
	middle := func(y int) (x float64) {
		var sum float64
		for i := range c.Width {
			light := float64(picture[3*(y*c.Width+i)])
			sum += light
			x += light * (float64(i) + 0.5)
		}
		return x / sum
	}
	// The world moves to the left by pan * Fx over all rows.
	got, want := middle(height/2+15)-middle(height/2-15), -pan*100*30/height
	if math.Abs(got-want) > 0.1 {
		t.Errorf("over 30 rows the splat leans by %.2f px, want %.2f", got, want)
	}
}

// centroid draws the splats and returns the middle of what is bright.
func centroid(t *testing.T, d *Device, s *scene.Splats, c scene.Camera) (x, y float64) {
	t.Helper()
	r := must.Get(NewRenderer(d, s, []scene.Camera{c}, RenderConfig{}))(t)
	defer r.Close()
	picture := must.Get(r.RenderInto(nil, c))(t)
	var sum float64
	for i := range c.Width * c.Height {
		light := float64(picture[3*i])
		sum += light
		x += light * (float64(i%c.Width) + 0.5)
		y += light * (float64(i/c.Width) + 0.5)
	}
	return x / sum, y / sum
}

// bentScene is the promise scene through a lens.
func bentScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	views, init, scale, cfg := promiseScene(t)
	for i := range views {
		c := &views[i].Camera
		k := scene.Calibration{Model: scene.LensOpenCV, Width: c.Width, Height: c.Height,
			Params: []float64{c.Fx, c.Fy, c.Cx, c.Cy, -0.2, 0.05, 0.001, -0.002}}
		c.Lens = &scene.Lens{Calibration: k, R: geom.Identity, Width: c.Width, Height: c.Height}
		taken := must.Get(c.AsTaken())(t)
		*c = taken
	}
	return views, init, scale, cfg
}

// movingScene is bentScene of cameras that move, but for every third.
func movingScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	views, init, scale, cfg := bentScene(t)
	for i := range views {
		if i%3 != 0 {
			views[i].Camera.Motion = scene.Motion{Turn: [3]float64{0.05, -0.03, 0.02 * float64(i%5)},
				Move: [3]float64{0.1, 0.05, -0.1}}
		}
	}
	return views, init, scale, cfg
}

// TestLensSameBytes trains through a lens in ways that must not matter and wants the same model, which is not the one
// without.
func TestLensSameBytes(t *testing.T) {
	d := testDevice(t)
	train := func(of trainSet, o TrainerOptions) string {
		t.Helper()
		tr := begun(t, d, of, func(c *recipe.Config) { c.Iterations = 12 }, o)
		defer tr.Close()
		return endHash(t, tr)
	}
	usual := TrainerOptions{}
	want, moving := train(bentScene, usual), train(movingScene, usual)
	same := func(name string, o TrainerOptions) {
		t.Helper()
		if got := train(bentScene, o); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := train(movingScene, o); got != moving {
			t.Errorf("%s, of cameras that move: %s, want %s", name, got, moving)
		}
	}
	same("again", usual)
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		same("larger buffers and two bands", larger)
		inBands(t, 99)
		same("a band for each row of tiles", usual)
	})
	t.Run("serial", func(t *testing.T) {
		t.Setenv("VKSPLAT_SERIAL", "1")
		same("serial", usual)
	})
	if train(promiseScene, usual) == want {
		t.Error("the lens changes nothing")
	}
	if moving == want {
		t.Error("the motion changes nothing")
	}
}

// TestLensResume: a run that goes on from a checkpoint makes the model of the undisturbed one.
func TestLensResume(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := movingScene(t)
	cfg.Iterations = 12
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	_, _, _, _, run := checkpointScene(t)
	tr.SetRun(run)
	half := filepath.Join(t.TempDir(), "half")
	must.Do(t, tr.RunTo(t.Context(), 6, nil))
	saved(t, tr, half)
	must.Do(t, tr.Run(t.Context(), nil))
	file := must.Get(checkpoint.Open(half))(t)
	defer file.Close()
	again := must.Get(resumeOn(d, views, file, cfg))(t)
	defer again.Close()
	must.Do(t, again.Run(t.Context(), nil))
	if endHash(t, tr) != endHash(t, again) {
		t.Error("the resumed run made another model")
	}
}

// TestRendererOfOtherCameras: a renderer for cameras without a lens, or that stand still, refuses others.
func TestRendererOfOtherCameras(t *testing.T) {
	d := testDevice(t)
	views, init, _, _ := movingScene(t)
	straight, still, moving := views[0].Camera.Undistorted(), views[0].Camera, views[1].Camera
	for _, c := range []struct {
		made, asked scene.Camera
		want        string
	}{{straight, still, "through a lens"}, {still, moving, "of a camera that moves"}} {
		r := must.Get(NewRenderer(d, init, []scene.Camera{c.made}, RenderConfig{}))(t)
		if _, err := r.RenderInto(nil, c.asked); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		r.Close()
	}
}

// TestLensesRefused: what does not go through lenses is refused before anything is done.
func TestLensesRefused(t *testing.T) {
	d := testDevice(t)
	for name, change := range map[string]func(c *recipe.Config){
		"robust":            func(c *recipe.Config) { c.Robust = true },
		"cameras that move": func(c *recipe.Config) { c.RefineCameras = true },
	} {
		views, init, scale, cfg := movingScene(t)
		change(&cfg)
		if tr, err := trainOn(d, views, init, scale, cfg); err == nil {
			tr.Close()
			t.Errorf("%s: there is no error", name)
		}
	}
}
