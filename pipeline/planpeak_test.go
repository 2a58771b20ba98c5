package pipeline

import (
	"context"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// peakCase is a run whose memory is watched.
type peakCase struct {
	name   string
	budget int64
	photos int64 // TrainerOptions.PhotoBytes
	change func(*recipe.Config)
}

// peakScene is the promise scene with a model that grows to any ceiling within a few steps.
func peakScene(t *testing.T) ([]scene.Camera, photos.Images, *scene.Splats, float64, recipe.Config) {
	views, init, scale, cfg := wholeScene(t)
	hungry(&cfg)
	cfg.Iterations, cfg.RefineStop = 14, 13
	cams, photos := splitViews(views)
	return cams, photos, init, scale, cfg
}

// TestPlanHolds trains to the ceiling with every strategy, in budgets from tight to ample, whole views and in bands:
// never is more memory in use than was planned, nor more taken than the budget.
func TestPlanHolds(t *testing.T) {
	cams, images, init, scale, base := peakScene(t)
	some := photos.Bytes(&cams[0]) * 3
	ceiling := func(n int, more func(*recipe.Config)) func(*recipe.Config) {
		return func(c *recipe.Config) {
			more(c)
			c.MaxSplats = n
		}
	}
	colours := func(c *recipe.Config) { c.AbsGrad, c.Exposure, c.Robust, c.ResetEvery = true, true, true, 9 }
	poses := func(c *recipe.Config) { c.RefineCameras, c.PoseStart, c.PoseGain, c.ResetEvery = true, 4, -0.9, 9 }
	exact := func(c *recipe.Config) { shortExact(c); c.Splats, c.Iterations, c.RefineStop = 4000, 14, 13 }
	mcmc := func(c *recipe.Config) {
		shortMCMC(c)
		c.Splats, c.Iterations, c.RefineStop, c.GrowFactor = 4000, 14, 13, 2
	}
	for _, c := range []peakCase{
		{"default", 96 << 20, 0, ceiling(6000, func(*recipe.Config) {})},
		{"default in bands", 20 << 20, some, ceiling(9000, func(*recipe.Config) {})},
		{"default, whatever fits", 12 << 20, -1, func(*recipe.Config) {}},
		{"absgrad and exposure", 40 << 20, some, ceiling(6000, colours)},
		{"absgrad and exposure, whatever fits", 14 << 20, -1, colours},
		{"poses", 40 << 20, some, ceiling(6000, poses)},
		{"poses, whatever fits", 14 << 20, -1, poses},
		{"exact", 24 << 20, some, ceiling(8000, exact)},
		{"mcmc", 14 << 20, some, ceiling(8000, mcmc)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := base
			c.change(&cfg)
			cams, images := cams, images
			if cfg.RefineCameras { // whose trial draws each photo many times
				cams, images = cams[:8], images[:8]
			}
			if c.name == "default in bands" {
				inBands(t, 3)
			}
			d := budgetDevice(t, c.budget)
			tr := must.Get(NewTrainer(d, cams, images, init, scale, cfg, TrainerOptions{PhotoBytes: c.photos}))(t)
			defer tr.Close()
			watchPeak(t, d, tr, c.budget)
			if n := tr.NSplats(); n != tr.shards.first.plan.Ceiling && n != cfg.Splats {
				t.Errorf("%d splats, the ceiling is %d: the test proves too little", n, tr.shards.first.plan.Ceiling)
			}
			// Checkpoints take what the plan leaves of the budget, or nothing.
			tr.SetRun(RunRecord{Version: "test", Frame: checkpoint.FrameRecord{Scale: 1, SceneScale: scale}})
			for _, background := range []bool{true, false} {
				w := must.Get(tr.SaveCheckpoint(filepath.Join(t.TempDir(), "x"), background))(t)
				must.Do(t, w.Wait())
			}
			if peak := d.dev.Stats().PeakAllocated; peak > c.budget {
				t.Errorf("%d bytes at the peak of a checkpoint, the budget is %d", peak, c.budget)
			}
		})
	}
}

// watchPeak trains to the end, makes a picture, reads the model, and compares what was in use with the plan.
func watchPeak(t *testing.T, d *Device, tr *Trainer, budget int64) {
	t.Helper()
	used, pool := int64(0), int64(0)
	look := func() { used, pool = max(used, d.dev.Stats().InUse), max(pool, tr.shards.first.e.programs.pool.Size()) }
	must.Do(t, tr.Run(context.Background(), func(Progress) { look() }))
	must.Get(tr.RenderInto(nil, tr.run.cams[0]))(t)
	must.Get(tr.Splats())(t)
	look()
	plan, peak := tr.shards.first.plan.Device, d.dev.Stats().PeakAllocated
	t.Logf("%d splats of %d, %d chunks, %d bands; scratch %d of %d; in use %d of %d; taken %d of %d of %d",
		tr.NSplats(), tr.shards.first.plan.Ceiling, len(tr.shards.first.e.setup.model.chunks),
		tr.shards.first.e.setup.bands,
		pool, plan.Scratch, used, plan.Total-plan.Slack, peak, plan.Total, budget)
	if pool > plan.Scratch {
		t.Errorf("%d bytes of scratch memory, %d were planned", pool, plan.Scratch)
	}
	if used > plan.Total-plan.Slack {
		t.Errorf("%d bytes in use, %d were planned", used, plan.Total-plan.Slack)
	}
	if peak > plan.Total || plan.Total > budget {
		t.Errorf("%d bytes taken, %d were planned, the budget is %d", peak, plan.Total, budget)
	}
}

// TestPlanCountsAll wants every unit and every table in the plan, as large as they are.
func TestPlanCountsAll(t *testing.T) {
	d := testDevice(t)
	cams, _, init, _, base := peakScene(t)
	f := &frame{params: phantom[layout.StepParams](d.dev, 1, 1<<10), report: phantom[layout.Report](d.dev, 1, 1<<10)}
	for name, change := range map[string]func(*recipe.Config){"default": func(*recipe.Config) {}, "exact": shortExact,
		"mcmc": shortMCMC} {
		cfg := base
		change(&cfg)
		e := must.Get(trainingSetup(d.dev, oneDevice, cams, nil, &cfg, &TrainerOptions{}))(t)
		for _, chunks := range []int{1, 2, 9} {
			whole := must.Get(e.scratchBytes(chunks, minIsects, 1))(t)
			alone := *e
			alone.kinds = []recipe.Kind{recipe.Refine}
			got := must.Get(alone.scratchBytes(chunks, minIsects, 1))(t)
			real := *e
			real.model, real.isectCapacity = e.model.planned(chunks), minIsects
			real.counters, real.args = phantom[uint32](d.dev, layout.NCounters, 4),
				phantom[[3]uint32](d.dev, layout.NArgs, 12)
			r := vk.NewRecorder(d.dev)
			real.record(r, f, recipe.Refine)
			want := int64(0)
			for _, size := range r.ScratchRegions() {
				want += (size + 4095) &^ 4095
			}
			if r.Err() != nil || want == 0 || got != want || whole < got {
				t.Errorf("%s, %d chunks: a refinement takes %d bytes of scratch memory, it is planned with %d of %d: "+
					"%v", name, chunks, want, got, whole, r.Err())
			}
		}
	}
	many := planCameras(5000, 64, 48)
	var plans [2]*Plan
	most := must.Get(d.Plan(many, init.N, base, TrainerOptions{}))(t)
	base.MaxSplats = most.Ceiling / 2 // leaves room for the tables
	for i, exposure := range []bool{false, true} {
		base.Exposure = exposure
		plans[i] = must.Get(d.Plan(many, init.N, base, TrainerOptions{}))(t)
	}
	plain, with := plans[0], plans[1]
	tables := int64(len(many)) * appearanceBytes
	if with.Ceiling != plain.Ceiling || with.Device.Model-plain.Device.Model != tables ||
		with.Device.Start-plain.Device.Start < tables {
		t.Errorf("appearances of %d bytes: %+v, without %+v", tables, with.Device, plain.Device)
	}
}

// TestPlanHoldsAtTheStart begins with the model at its ceiling, where fewer pairs are planned than a start would take:
// it takes what was planned.
func TestPlanHoldsAtTheStart(t *testing.T) {
	cams, photos, init, scale, cfg := peakScene(t)
	cfg.MaxSplats = init.N
	d := testDevice(t)
	tr := must.Get(NewTrainer(d, cams, photos, init, scale, cfg, TrainerOptions{}))(t)
	defer tr.Close()
	plan := tr.shards.first.plan
	if n := max(8*init.N, 4*tr.shards.first.e.setup.views.maxTiles); n <= plan.Isects {
		t.Fatalf("%d pairs to start with, %d are planned: the test proves nothing", n, plan.Isects)
	}
	if used := d.dev.Stats().InUse; tr.shards.first.e.setup.isectCapacity > plan.Isects || used > plan.Device.Start {
		t.Errorf("%d pairs, %d were planned; %d bytes in use, %d were planned", tr.shards.first.e.setup.isectCapacity,
			plan.Isects,
			used,
			plan.Device.Start)
	}
}
