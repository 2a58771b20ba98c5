package pipeline

import (
	"math"
	"path/filepath"
	"testing"

	"vksplat/internal/geom"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/lenscases"
)

// TestLensPlaces draws small splats through every lens that photos are trained on through, and wants each to be where
// the lens's own formula has it.
func TestLensPlaces(t *testing.T) {
	d := testDevice(t)
	tried := 0
	for _, c := range lenscases.All {
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
		o, err := k.Optics(taken.Width, taken.Height)
		if err != nil {
			t.Fatal(err)
		}
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

// centroid draws the splats and returns the middle of what is bright.
func centroid(t *testing.T, d *Device, s *scene.Splats, c scene.Camera) (x, y float64) {
	t.Helper()
	r, err := NewRenderer(d, s, []scene.Camera{c}, RenderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	picture, err := r.RenderInto(nil, c)
	if err != nil {
		t.Fatal(err)
	}
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
		taken, err := c.AsTaken()
		if err != nil {
			t.Fatal(err)
		}
		*c = taken
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
	want := train(bentScene, usual)
	same := func(name string, o TrainerOptions) {
		t.Helper()
		if got := train(bentScene, o); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
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
}

// TestLensResume: a run that goes on from a checkpoint makes the model of the undisturbed one.
func TestLensResume(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := bentScene(t)
	cfg.Iterations = 12
	tr, err := trainOn(d, views, init, scale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	_, _, _, _, run := checkpointScene(t)
	tr.SetRun(run)
	half := filepath.Join(t.TempDir(), "half")
	if err := tr.RunTo(t.Context(), 6, nil); err != nil {
		t.Fatal(err)
	}
	saved(t, tr, half)
	if err := tr.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	file, err := checkpoint.Open(half)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	again, err := resumeOn(d, views, file, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if endHash(t, tr) != endHash(t, again) {
		t.Error("the resumed run made another model")
	}
}

// TestLensesRefused: what does not go through lenses is refused before anything is done.
func TestLensesRefused(t *testing.T) {
	d := testDevice(t)
	for name, change := range map[string]func(c *recipe.Config){
		"poses": func(c *recipe.Config) { c.RefinePoses = true }, "robust": func(c *recipe.Config) { c.Robust = true },
	} {
		views, init, scale, cfg := bentScene(t)
		change(&cfg)
		if tr, err := trainOn(d, views, init, scale, cfg); err == nil {
			tr.Close()
			t.Errorf("%s: there is no error", name)
		}
	}
}
