package pipeline

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/bench"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// TestMeasure trains a little, measures, and wants the model as it was, counts that belong together, and a cost of
// every pass that moves anything.
func TestMeasure(t *testing.T) {
	d := testDevice(t)
	for name, change := range map[string]func(*recipe.Config){
		"default": func(*recipe.Config) {},
		"mixed":   func(c *recipe.Config) { c.Precision = recipe.PrecisionMixed },
		"absgrad": func(c *recipe.Config) { c.AbsGrad, c.GrowGrad2D = true, recipe.AbsGradThreshold },
		"bands":   func(*recipe.Config) {},
		"mcmc": func(c *recipe.Config) {
			c.Strategy, c.MaxSplats, c.ResetEvery, c.Vignetting = recipe.StrategyMCMC, 4000, 0, true
			c.OpacityReg, c.ScaleReg = 0.01, 0.01
		},
	} {
		t.Run(name, func(t *testing.T) {
			bands := 1
			if name == "bands" {
				bands = 2
			}
			inBands(t, bands)
			tr, _, cfg := checkpointTrainer(t, d, change)
			must.Do(t, tr.RunTo(context.Background(), 8, nil))
			before := must.Get(tr.Splats())(t)
			told := 0
			m := must.Get(tr.Measure(context.Background(), bench.Options{Warm: 2, Steps: 4, Rounds: 2},
				func(Progress) { told++ }))(t)
			if want := (bench.Options{Warm: 2, Steps: 4, Rounds: 2}).Total(); told != want || tr.Step() != 8+want {
				t.Errorf("%d steps, told of %d, want %d", tr.Step()-8, told, want)
			}
			after := must.Get(tr.Splats())(t)
			if modelHash(before) != modelHash(after) {
				t.Error("measuring changed the model")
			}
			checkRounds(t, m.Rounds)
			checkCounts(t, m.Counts, before.N, bands, &cfg)
			checkCosted(t, m)
		})
	}
}

func checkRounds(t *testing.T, rounds []bench.Round) {
	t.Helper()
	if len(rounds) != 2 {
		t.Fatalf("%d rounds", len(rounds))
	}
	for _, r := range rounds {
		if !(r.WallSeconds > 0) || r.HostSeconds < 0 || r.HostSeconds > r.WallSeconds || r.Visible < 1 ||
			r.Isects < r.Visible || r.Steps != 4 || r.PhotoBytes < 1000 {
			t.Errorf("%+v", r)
		}
		if sum := r.PassesMS(); !(sum > 0) || sum > r.TimedMS() {
			t.Errorf("passes of %g ms in steps of %g ms", sum, r.TimedMS())
		}
		for _, name := range []string{bench.PhotoCopy, "sort_scatter (depth)", "sort_scatter (tiles)",
			"rasterize_handed",
			"finish"} {
			if p := r.Pass(name); !(p.MS > 0) || p.Dispatches < 1 || p.Launches < 1 || p.Launches > p.Dispatches {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if first := r.Passes[0].Name; first != bench.PhotoCopy {
			t.Errorf("a step begins with %s", first)
		}
		if p := r.Pass("count_pairs"); p.Name != "" {
			t.Errorf("a round has what only counts: %+v", p)
		}
	}
}

func checkCounts(t *testing.T, c bench.Counts, splats, bands int, cfg *recipe.Config) {
	t.Helper()
	if c.Splats != splats || c.SHDegree != cfg.SHDegree || c.Mixed != (cfg.Precision == recipe.PrecisionMixed) ||
		c.AbsGrad != cfg.AbsGrad {
		t.Errorf("%+v", c)
	}
	if c.SeenIsects < 1 || c.SeenIsects > c.Isects || c.BlendedPairs < 1 || c.BlendedPairs > c.SeenPairs ||
		c.SeenPairs > layout.TilePixels*c.SeenIsects || c.Visits < 1 || c.Visits > layout.Patches*c.SeenIsects ||
		c.VisitsBwd < 1 || c.VisitsBwd > layout.Patches*c.SeenIsects {
		t.Errorf("counts that cannot be: %+v", c)
	}
	if c.Tiles*layout.TilePixels < c.Pixels || c.Bands != bands {
		t.Errorf("%+v", c)
	}
}

// small are the passes whose cost is next to nothing.
var small = []string{"begin", "fill tallies" /* of a second band */, "scan_spine", "find_appearance", "appearance_adam"}

func checkCosted(t *testing.T, m bench.Measurement) {
	t.Helper()
	for _, p := range m.Rounds[0].Passes {
		cost, known := m.Counts.Cost(p.Name)
		switch {
		case slices.Contains(small, p.Name):
		case p.Name == bench.PhotoCopy && cost.Bytes > 0: // without a lane's doing
		case !known:
			t.Errorf("%s has no cost: add it to passCosts", p.Name)
		case !(cost.Bytes > 0 && cost.Instructions > 0) || math.IsInf(cost.Bytes+cost.Instructions, 0):
			t.Errorf("%s: %+v", p.Name, cost)
		}
	}
}

// TestMeasureAtOnce wants sensible times where no step comes before the first that counts.
func TestMeasureAtOnce(t *testing.T) {
	tr, _, _ := checkpointTrainer(t, testDevice(t), nil)
	started := time.Now()
	m := must.Get(tr.Measure(context.Background(), bench.Options{Steps: 2, Rounds: 1}, nil))(t)
	if r := m.Rounds[0]; !(r.WallSeconds > 0) || r.WallSeconds > time.Since(started).Seconds() ||
		r.HostSeconds > r.WallSeconds {
		t.Errorf("%+v", r)
	}
}

// watched are steps after each of whose runs after is called.
type watched struct {
	measuring
	after func(meter *bench.Meter)
}

func (w *watched) Train(ctx context.Context, steps int, meter *bench.Meter) error {
	err := w.measuring.Train(ctx, steps, meter)
	w.after(meter)
	return err
}

// TestMeasureWithout wants timestamps around every copy of a photo in the half of a round that has timestamps, and none
// in the other, which is the judge.
func TestMeasureWithout(t *testing.T) {
	tr, _, _ := checkpointTrainer(t, testDevice(t), nil)
	tr.Hold()
	must.Do(t, tr.shards.timeSteps(true))
	runs := 0
	_, err := bench.Measure(context.Background(), &watched{measuring{tr, nil}, func(meter *bench.Meter) {
		runs++
		copies, clocked := 0, 0
		for _, f := range tr.shards.first.e.programs.frames {
			copies += len(f.photo.copiers)
			clocked += len(f.photo.took())
		}
		want := 0
		if meter.Timed() {
			want = copies
		}
		if copies == 0 || clocked != want {
			t.Errorf("run %d: %d copies, %d of them timed, want %d", runs, copies, clocked, want)
		}
	}}, bench.Options{Warm: 3, Steps: 4, Rounds: 2})
	if err != nil || runs < 5 {
		t.Errorf("%d runs: error %v", runs, err)
	}
}

func TestMeasureStops(t *testing.T) {
	tr, _, _ := checkpointTrainer(t, testDevice(t), nil)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := tr.Measure(ctx, bench.Options{Steps: 5, Rounds: 2}, func(p Progress) {
		if p.Step == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestMeasureTooFew wants an error where the run ends before all steps are measured.
func TestMeasureTooFew(t *testing.T) {
	tr, _, cfg := checkpointTrainer(t, testDevice(t), nil)
	must.Do(t, tr.RunTo(context.Background(), cfg.Iterations-2, nil))
	_, err := tr.Measure(context.Background(), bench.Options{Steps: 3, Rounds: 1}, nil)
	if err == nil || !strings.Contains(err.Error(), "2 of 3 ran") {
		t.Errorf("error %v", err)
	}
}

// TestCosts compares formulas with what was counted by hand, and with the rows of the model.
func TestCosts(t *testing.T) {
	c := bench.Counts{Splats: 1000, SHDegree: 3, Pixels: 4096, Tiles: 16, Bands: 1, Visible: 600, Isects: 20480,
		SeenIsects: 10240, SeenPairs: 1_000_000, BlendedPairs: 200_000, PhotoBytes: 16384, SortBits: 8, DepthBits: 31,
		TileBits: 4, Bucket: layout.MostBucket}
	mixed, abs, apart, banded, shared := c, c, c, c, c
	apart.UnseenApart = true
	mixed.Mixed, abs.AbsGrad, banded.Bands, shared.Views = true, true, 3, 4
	sharedMixed := shared
	sharedMixed.Mixed = true
	drawn := 0.0 // bytes of a splat's geometry that is drawn
	for _, x := range scene.NewSplats(1, 0).Tensors() {
		if x.Drawn && x.Name != "sh" {
			drawn += 4 * float64(x.Width)
		}
	}
	// A sector holds one shape, or two paints, of which one is visible in 1 - 0.4^2 of the sectors.
	seen := 600*32 + 1000*16*0.84
	const beside = 36 + 16 + 16 // of a visible splat: gradients, paint, statistics
	stepped := func(c layout.Rows) float64 { return 1000*(2*4*float64(c.NRows()-layout.StatRows)+4) + 600*beside }
	for _, tt := range []struct {
		c    bench.Counts
		pass string
		want float64
	}{
		{c, "project_bwd_adam", stepped(layout.RowsOf(3, false))},
		{mixed, "project_bwd_adam_mixed", stepped(layout.RowsOf(3, true))},
		{abs, "project_bwd_adam", stepped(layout.RowsOf(3, false)) + 600*8},
		{apart, "project_bwd_adam", stepped(layout.RowsOf(3, false))*0.6 + 0.4*(1000*4+600*beside)},
		{apart, "adam_unseen", (stepped(layout.RowsOf(3, false))-1000*4-600*beside)*0.4 + 1000*4},
		{c, bench.PhotoCopy, 2 * 16384},
		// Means of all; of the others the sectors, of 8 floats or 16 halves, that have any in view.
		{c, "project", 1000*(12+4) + 1000*(drawn-12+4*48)*0.99934464 + seen},
		{mixed, "project_mixed", 1000*(12+4) + 1000*((drawn-12)*0.99934464+2*48*0.99999957) + seen},
		// Four passes, of which the first reads a thousand keys and no values; half a byte of histogram a key.
		{c, "sort_scatter (depth)", 1000*(4+0.5) + 600*8 + 3*600*(16+0.5)},
		{c, "sort_histogram (depth)", (1000 + 3*600) * (4 + 0.5)},
		{c, "sort_scatter (tiles)", 20480 * (16 + 0.5)},
		{c, "sort_sweep (depth)", 1000*4 + 600*8 + 3*600*16},
		{c, "sort_sweep (tiles)", 20480 * 16},
		{c, "scan_tiles", 600 * 40},
		{c, "emit_isects", 600*(8+32) + 20480*12},
		// 10240 isects in 16 tiles are at least 40 buckets, 24 of which have a state of 4 kB, packed of 2; a byte an
		// isect says which patches it touches.
		{c, "rasterize", 10240*9 + 600*48 + 4096*20 + 24*4096},
		{c, "rasterize_bwd", 10240*9 + 600*48 + 4096*36 + 24*4096 + 20480*40},
		{mixed, "rasterize", 10240*9 + 600*48 + 4096*20 + 24*2048},
		{mixed, "rasterize_bwd", 10240*9 + 600*48 + 4096*36 + 24*2048 + 20480*40},
		{abs, "rasterize_bwd", 10240*9 + 600*48 + 4096*36 + 24*4096 + 20480*48},
		{c, "reduce_slots", 20480*36 + 600*(8+32+36)},
		{c, "loss", 4096*(16+4+36) + 16*12},
		// In three bands isects are made twice, and all visible splats looked at for each band.
		{banded, "count_tiles", 6 * 600 * 40},
		{banded, "sort_scatter (tiles)", 2 * 20480 * (16 + 0.5)},
		{banded, "rasterize", 2*(10240*8+600*48+4096*16) + 4096*4 + 24*4096 + 10240},
		{banded, "reduce_slots", 20480*36 + 3*600*(8+32) + 600*(2*3-1)*36},
		// Four views: keys and numbers of each, but no more splats in packets than one view shows.
		{shared, "mark_visible", 4 * 1000 * 8},
		{shared, "send_visible", 4*1000*12 + 600*2*52},
		{shared, "copy_records", 600 * 2 * (52 + 0.75*52 + 1.5*36)},
		{shared, "send_grads", 600 * (36 + 12 + 36)},
		{shared, "project_bwd_adam_views", stepped(layout.RowsOf(3, false)) - 600*16 + 1000*3*4},
		{sharedMixed, "project_bwd_adam_views_mixed", stepped(layout.RowsOf(3, true)) - 600*16 + 1000*3*4},
	} {
		if got, known := tt.c.Cost(tt.pass); !known || math.Abs(got.Bytes-tt.want) > 1e-6*tt.want {
			t.Errorf("%s: %g bytes, want %g", tt.pass, got.Bytes, tt.want)
		}
	}
	if _, known := c.Cost("begin"); known {
		t.Error("begin moves next to nothing, and has a cost")
	}
}

// TestCostsOnChip compares what is done on the chip with what was counted by hand.
func TestCostsOnChip(t *testing.T) {
	c := bench.Counts{Splats: 1000, SHDegree: 3, Pixels: 4096, Tiles: 16, Bands: 1, Visible: 600, Isects: 20480,
		SeenIsects: 10240, Visits: 50_000, PatchesBwd: 45_000, VisitsBwd: 40_000, Lanes: 32, LanesBwd: 32,
		SortBits: 8, DepthBits: 31, TileBits: 4}
	banded, cpu := c, c
	banded.Bands = 2
	cpu.Lanes, cpu.LanesBwd, cpu.HandRound = 8, 8, true
	for _, tt := range []struct {
		c                              bench.Counts
		pass                           string
		instructions, shared, shuffles float64
	}{
		// Of each isect 8 patches of 30 instructions, then 32 lanes a visit; each reads the splat's 9 words.
		{c, "rasterize", 10240*240 + 50_000*32*36, 9 * (10240 + 50_000*32), 0},
		{cpu, "rasterize", 10240*240 + 50_000*8*(12+4*24), 9 * 10240, 9 * 50_000 * 8},
		{banded, "rasterize", 2 * (10240*240 + 50_000*32*36), 2 * 9 * (10240 + 50_000*32), 0},
		// 32 lanes a visit, 32 pixels a patch; 9 sums of 2 lists an isect, on processors of 8.
		{c, "rasterize_bwd", 10240*9*2*4 + 40_000*32*50 + 45_000*32*47, 10240*(9+18) + 40_000*(32*9+9+9),
			40_000 * 32 * 12},
		// 676 pixels with the border, 104 runs, 128 pairs of pixels a channel.
		{cpu, "rasterize_bwd", 10240*9*8*4 + 40_000*8*50 + 45_000*32*47, 10240*(9+72) + 40_000*18,
			40_000 * 8 * (9 + 10)},
		{c, "loss", 4096 * 500, 16 * 3 * (676*2 + 104*(28+16) + 128*(48+2)), 0},
		{c, "loss_grad", 4096 * 290, 16 * 3 * (676*3 + 104*(42+12) + 128*36), 0},
		{c, "apply_appearance", 4096 * 60, 0, 0},
	} {
		got, known := tt.c.Cost(tt.pass)
		if !known || got.Instructions != tt.instructions || got.SharedWords != tt.shared ||
			got.Shuffles != tt.shuffles {
			t.Errorf("%s: %+v, want %g instructions, %g words, %g shuffles", tt.pass, got, tt.instructions, tt.shared,
				tt.shuffles)
		}
	}
}

// TestFloors wants the time of the busiest resource, with launches after it.
func TestFloors(t *testing.T) {
	rates := bench.Rates{CopyBytes: 1e9, Instructions: 2e9, SharedWords: 1e9, Shuffles: 5e8, LaunchSeconds: 4e-6}
	for _, tt := range []struct {
		cost     bench.Cost
		launches float64
		want     float64
		bound    string
	}{
		{bench.Cost{Bytes: 2e6, Instructions: 6e6}, 2, 3e-3 + 8e-6, bench.BoundArithmetic},
		{bench.Cost{Bytes: 5e6, Instructions: 6e6}, 1, 5e-3 + 4e-6, bench.BoundMemory},
		{bench.Cost{Bytes: 3e6, SharedWords: 2e6, Shuffles: 1e6}, 1, 4e-3 + 4e-6, bench.BoundShared},
		{bench.Cost{Bytes: 3e4}, 11, 3e-5 + 44e-6, bench.BoundLaunch},
		{bench.Cost{}, 3, 12e-6, bench.BoundLaunch},
	} {
		if got, bound := tt.cost.Floor(rates, tt.launches); math.Abs(got-tt.want) > 1e-12 || bound != tt.bound {
			t.Errorf("%+v, %g launches: %g s by %s, want %g s by %s", tt.cost, tt.launches, got, bound, tt.want,
				tt.bound)
		}
	}
	// Earlier files know two rates.
	old := bench.Rates{CopyBytes: 1e9, Instructions: 1e9}
	if got, bound := (bench.Cost{Bytes: 1e6}).Floor(old, 2); got != 1e-3 || bound != bench.BoundMemory {
		t.Errorf("%g s by %s", got, bound)
	}
}
