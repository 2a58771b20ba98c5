package pipeline

import (
	"math"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/scene"
)

// shrunkScene is the promise scene with photos whose sides are no multiples, the first of them too small for the lowest
// level, the last masked.
func shrunkScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	for i := range views {
		v := &views[i]
		width, height := v.Camera.Width-1, v.Camera.Height-3
		if i == 0 {
			width, height = 29, 25
		}
		pix := make([]byte, 0, 4*width*height)
		for y := range height {
			row := 4 * y * v.Camera.Width
			pix = append(pix, v.Image.Pix[row:row+4*width]...)
		}
		v.Camera.Width, v.Camera.Height = width, height
		v.Image = scene.Image{Width: width, Height: height, Pix: pix}
	}
	last := &views[len(views)-1].Image
	last.Mask = make([]uint32, (last.Width*last.Height+31)/32)
	for i := range last.Mask {
		last.Mask[i] = 0xFFFF0FFF
	}
	cfg.NumDownscales, cfg.ResolutionSchedule = 2, 15
	return views, init, scale, cfg
}

// TestProgressiveSteps compares what the first step of each level reports with the twins on a shrunk photo and view.
func TestProgressiveSteps(t *testing.T) {
	d := testDevice(t)
	for _, fisheye := range []bool{false, true} {
		views, init, scale, cfg := shrunkScene(t)
		views = views[len(views)-1:]
		if fisheye {
			views[0].Camera.Model = scene.Fisheye
		}
		cfg.Iterations, cfg.RefineEvery, cfg.NumDownscales, cfg.ResolutionSchedule = 2, 0, 1, 1
		for _, rate := range cfg.SplatRates() {
			*rate = 0 // both steps see the same model
		}
		tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
		var told []Progress
		must.Do(t, tr.Run(t.Context(), func(p Progress) { told = append(told, p) }))
		if len(told) != 2 {
			t.Fatalf("%d steps told, want 2", len(told))
		}
		for i, p := range told {
			level := 1 - i
			want := shrunkLoss(&views[0], init, &cfg, level)
			if p.Level != level || p.Counted != want.Counted || math.Abs(float64(p.L1)/want.L1-1) > 1e-4 ||
				math.Abs(float64(p.Loss)/want.Loss-1) > 1e-4 {
				t.Errorf("fisheye %v: %+v, want level %d and %d pixels, L1 %g, loss %g", fisheye, p, level,
					want.Counted, want.L1, want.Loss)
			}
		}
		if picture, err := tr.RenderInto(nil, views[0].Camera); err != nil ||
			len(picture) != 3*views[0].Image.Width*views[0].Image.Height {
			t.Errorf("a picture of %d numbers, %v", len(picture), err)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// shrunkLoss is the loss of a photo at a level, by the twins.
func shrunkLoss(v *TrainView, s *scene.Splats, cfg *recipe.Config, level int) *ref.LossResult[float64] {
	c := &v.Camera
	view := &ref.View[float64]{R: c.R, T: c.T, Fx: c.Fx, Fy: c.Fy, Cx: c.Cx, Cy: c.Cy, Width: c.Width, Height: c.Height,
		Near: cfg.Near, Fisheye: c.Model == scene.Fisheye}
	model := ref.ConvertParams[float64](paramsOf(s))
	photo := ref.Shrink(ref.TargetFromRGBA8(v.Image.Pix, [3]float64{}), c.Width, c.Height, 3, level)
	loss := ref.LossConfig[float64]{Lambda: cfg.SSIMLambda,
		Mask: ref.ShrinkMask(v.Image.Mask, c.Width, c.Height, level)}
	view = view.Shrunk(level)
	proj, img := ref.Project(model, view), ref.NewImage[float64](view.Width, view.Height)
	ref.Rasterize(img, proj.Splats, ref.NewLists(proj, view.Grid()), view, view.Grid())
	return ref.Loss(img.Render, photo, view.Width, view.Height, loss)
}

// TestProgressiveSameBytes trains across two changes of level.
func TestProgressiveSameBytes(t *testing.T) {
	d := testDevice(t)
	usual := TrainerOptions{}
	hash := func(change func(*recipe.Config), o TrainerOptions) string {
		t.Helper()
		views, init, scale, cfg := shrunkScene(t)
		if !filetest.Long() {
			cfg.Iterations, cfg.ResolutionSchedule = 18, 6
		}
		change(&cfg)
		tr := must.Get(trainWith(d, views, init, scale, cfg, o))(t)
		defer tr.Close()
		return endHash(t, tr)
	}
	nothing := func(*recipe.Config) {}
	want := hash(nothing, usual)
	same := func(name string, o TrainerOptions) {
		t.Helper()
		if got := hash(nothing, o); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		same("larger buffers and two bands", larger)
	})
	t.Run("serial", func(t *testing.T) {
		t.Setenv("VKSPLAT_SERIAL", "1")
		inBands(t, 99)
		same("serial, a band for each row of tiles", usual)
	})
	if got := hash(func(c *recipe.Config) { c.NumDownscales = 0 }, usual); got == want {
		t.Error("photos of full size give the same model: the test proves nothing")
	}
}

// TestProgressiveCompiles compiles every kernel before training, also those of later levels, and none for levels that a
// resumed run is past.
func TestProgressiveCompiles(t *testing.T) {
	t.Setenv(verifyVariable, "")
	d := ownDevice(t)
	views, init, scale, cfg := shrunkScene(t)
	cfg.Iterations, cfg.RefineEvery, cfg.NumDownscales, cfg.ResolutionSchedule = 3, 0, 1, 2
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	before, _, _ := d.Pipelines()
	must.Do(t, tr.Run(t.Context(), nil))
	if after, _, _ := d.Pipelines(); tr.queue.level != 0 || after != before {
		t.Errorf("%d kernels compiled before training, %d after it at level %d", before, after, tr.queue.level)
	}
	cams, photos := splitViews(views)
	late := must.Get(newTrainer(d, cams, photos, scale, cfg, TrainerOptions{},
		start{first: init.N, step: 2, splats: init.N,
			fill: func(t *Trainer) error { return t.shards.first.e.setup.model.upload(init) }}))(t)
	defer late.Close()
	if late.queue.level != 0 || late.shards.first.e.setup.compare.shrunk {
		t.Errorf("a run that goes on at full size begins with programs of level %d, for smaller views: %v",
			late.queue.level,
			late.shards.first.e.setup.compare.shrunk)
	}
}
