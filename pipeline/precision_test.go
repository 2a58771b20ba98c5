package pipeline

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// TestMixedUpload sends models to the device and back: what comes back is what mixed precision holds of them, and
// sending that again changes nothing.
func TestMixedUpload(t *testing.T) {
	d := testDevice(t)
	_, init, _, _ := promiseScene(t)
	for degree := range scene.MaxSHDegree + 1 {
		s := scene.NewSplats(init.N, degree)
		for i := range s.N {
			for r := range ref.ParamRows(degree) {
				*paramsOf(s).At(r, i) = *paramsOf(init).At(min(r, layout.RowSh), i) * (1 + float32(r)/3)
			}
		}
		s.SH[0], s.SH[1], s.SH[2] = 1e6, 1e-9, -3e-5
		m := must.Get(newModel(d.dev, min(degree+1, scene.MaxSHDegree)))(t)
		m.Rows = layout.RowsOf(m.Degree, true)
		m.unit = 256
		must.Do(t, m.upload(s))
		back := must.Get(downloaded(m, s.N, 100))(t)
		for i := range s.N {
			for r := range m.NParams {
				var want float32
				if r < ref.ParamRows(degree) {
					want = *paramsOf(s).At(r, i)
				}
				if r >= layout.RowSh {
					want = layout.HalfValue(layout.NearestHalf(want))
				}
				if got := *paramsOf(back).At(r, i); got != want {
					t.Fatalf("degree %d: row %d of splat %d: %g, want %g", degree, r, i, got, want)
				}
			}
		}
		if back.SH[0] != 65504 || back.SH[1] != 0 || math.Abs(float64(back.SH[2])+3e-5) > 1.0/(1<<25) {
			t.Errorf("degree %d: %g", degree, back.SH[:3])
		}
		must.Do(t, m.close())
	}
}

// TestMixedTrains trains without refinement in both precisions: the loss is the same within 0.1 dB of its squared
// error. The learning rates of the colours are so small that each step is far below a unit in the last place of a half:
// rounded to the nearest, no colour would move.
func TestMixedTrains(t *testing.T) {
	d := testDevice(t)
	train := func(precision string, change func(*recipe.Config)) (*scene.Splats, float64) {
		views, init, scale, cfg := promiseScene(t)
		cfg.Precision, cfg.RefineEvery, cfg.Iterations = precision, 0, 60
		change(&cfg)
		tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
		defer tr.Close()
		mse := 0.0
		must.Do(t, tr.Run(context.Background(), func(p Progress) {
			if p.Step > cfg.Iterations-2*len(views) {
				mse += float64(p.MSE) / float64(2*len(views))
			}
		}))
		s := must.Get(tr.Splats())(t)
		return s, mse
	}
	usual := func(*recipe.Config) {}
	_, want := train(recipe.PrecisionFull, usual)
	_, got := train(recipe.PrecisionMixed, usual)
	cost := 10 * math.Log10(got/want)
	t.Logf("squared error %.3g in full, %.3g in mixed precision: %.3f dB", want, got, cost)
	if math.Abs(cost) > 0.1 {
		t.Errorf("mixed precision costs %.3f dB", cost)
	}
	slow := func(c *recipe.Config) { c.LRSH0 = 1e-5 }
	_, init, _, _ := promiseScene(t)
	full, _ := train(recipe.PrecisionFull, slow)
	mixed, _ := train(recipe.PrecisionMixed, slow)
	var along, length float64 // of the way in mixed precision on that in full
	for i := range init.N {
		for k := range 3 {
			from := *paramsOf(init).At(layout.RowSh+k, i)
			if math.Abs(float64(from)) < 0.25 { // half a unit is 1.2e-4 and more beyond: twelve steps
				continue
			}
			a, b := float64(*paramsOf(full).At(layout.RowSh+k, i)-from),
				float64(*paramsOf(mixed).At(layout.RowSh+k, i)-from)
			along, length = along+a*b, length+a*a
		}
	}
	t.Logf("colours go %.3f of the way", along/length)
	if !(math.Abs(along/length-1) < 0.1) {
		t.Errorf("colours go %.3f of the way in steps below a unit", along/length)
	}
}

// TestSplatBytes pins the layout of today, which a new tensor in model.schema changes: a matter of these numbers and
// of ARCHITECTURE.md alone.
func TestSplatBytes(t *testing.T) {
	for mixed, want := range map[bool][2]int64{false: {176, 716}, true: {116, 384}} {
		if got := [2]int64{layout.RowsOf(0, mixed).SplatBytes(), layout.RowsOf(3, mixed).SplatBytes()}; got != want {
			t.Errorf("mixed precision %t: %d bytes a splat at degrees 0 and 3, want %d", mixed, got, want)
		}
	}
}

// TestMixedPlan wants mixed precision to fit more splats, and to say how many bytes each takes.
func TestMixedPlan(t *testing.T) {
	d := testDevice(t)
	views, init, _, cfg := promiseScene(t)
	cams, _ := splitViews(views)
	var ceilings, bytes [2]int
	for i, precision := range precisions {
		cfg.Precision = precision
		p := must.Get(d.Plan(cams, init.N, cfg, TrainerOptions{}))(t)
		ceilings[i], bytes[i] = p.Ceiling, p.SplatBytes
	}
	t.Logf("%d splats of %d bytes, %d of %d in mixed precision", ceilings[0], bytes[0], ceilings[1], bytes[1])
	rows := [2]int{int(layout.RowsOf(3, false).SplatBytes()), int(layout.RowsOf(3, true).SplatBytes())}
	if bytes != rows || ceilings[1] < ceilings[0] {
		t.Errorf("%d splats of %d bytes, %d of %d in mixed precision", ceilings[0], bytes[0], ceilings[1], bytes[1])
	}
}

// TestMixedCheckpoint opens a checkpoint of the other precision.
func TestMixedCheckpoint(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg, run := checkpointScene(t)
	cfg.Precision, cfg.Iterations = recipe.PrecisionMixed, 3
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	tr.SetRun(run)
	must.Do(t, tr.Run(context.Background(), nil))
	path := filepath.Join(t.TempDir(), "x")
	saved(t, tr, path)
	c := must.Get(checkpoint.Open(path))(t)
	defer c.Close()
	want := must.Get(tr.Splats())(t)
	if modelHash(modelIn(t, path)) != modelHash(want) {
		t.Error("the file has another model than the trainer")
	}
	cfg.Precision = recipe.PrecisionFull
	if list := c.Changes(cfg, run.Capture); len(list) != 1 || list[0].String() != `precision: "mixed" -> "full"` {
		t.Errorf("changes: %v", list)
	}
	if _, err := resumeOn(d, views, c, cfg); !errors.Is(err, fault.ErrUsage) ||
		!strings.Contains(err.Error(), "mixed precision cannot go on in full") {
		t.Errorf("in full precision: %v", err)
	}
}
