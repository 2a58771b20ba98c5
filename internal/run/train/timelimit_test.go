package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene/synth"
)

func TestLimitFlag(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"60s", "60s"}, {"90", "90s"}, {"1.5m", "90s"}, {"1h1s", "3601s"}, {"1s", "1s"},
		{"0.5s", ""}, {"0", ""}, {"-5s", ""}, {"", ""}, {"soon", ""}, {"1e300", ""}, {"NaN", ""}, {"60x", ""},
	} {
		var f LimitFlag
		if err := f.Set(tt.text); (err == nil) != (tt.want != "") || f.String() != tt.want {
			t.Errorf("%q is %s, want %s: %v", tt.text, &f, tt.want, err)
		}
	}
}

// TestLimitChooses wants numbers of steps that are given to stay.
func TestLimitChooses(t *testing.T) {
	for _, tt := range []struct {
		flags, file texts
		want        bool
	}{
		{nil, nil, true},
		{texts{"preset": "3dgs"}, nil, true},
		{texts{"steps-scaler": "0.5"}, nil, true},
		{texts{"iterations-factor": "100"}, texts{"iterations": "900"}, true},
		{nil, texts{"iterations": "900", "iterations-factor": "100"}, true},
		{texts{"num-downscales": "1"}, nil, true},
		{texts{"iterations": "900"}, nil, false},
		{nil, texts{"iterations": "900"}, false},
		{nil, texts{"iterations": "900", "iterations-factor": "0"}, false},
	} {
		o := resolved(t, tt.flags, tt.file)
		if o.limitChooses() {
			t.Errorf("%v, %v: steps are chosen without a limit", tt.flags, tt.file)
		}
		if o.TimeLimit = LimitFlag(time.Minute); o.limitChooses() != tt.want {
			t.Errorf("%v, %v: the limit chooses the steps: %v, want %v", tt.flags, tt.file, !tt.want, tt.want)
		}
	}
}

// limitedRun returns a run of options whose capture has so many photos.
func limitedRun(o *Options, photos int) *Run {
	r := NewRun(o, &cli.Console{})
	r.training, r.Train = photographed(photos), make([]int, photos)
	r.setup.followCapture()
	return r
}

// asBlock makes options those of a block with a quarter of the photos of a plan.
func asBlock(t *testing.T, o *Options) *Options {
	t.Helper()
	plan := &plans.Plan{Photos: 100}
	must.Do(t, json.Unmarshal([]byte(`[{"trained":25}]`), &plan.Blocks))
	o.Divided, o.Block, o.ShareSteps = plan, 0, true
	o.configure()
	return o
}

// TestShorten wants the schedule of a limit to be the one that its settings give without a limit.
func TestShorten(t *testing.T) {
	for _, flags := range []texts{
		nil, {"preset": "default"}, {"preset": "3dgs"}, {"preset": "mcmc", "refine-every": "150"},
		{"refine-stop": "5000"}, {"steps-scaler": "0.5"}, {"steps-scaler": "3.7"},
		{"preset": "3dgs", "steps-scaler": "0.123"},
		{"preset": "mcmc", "iterations-factor": "90", "sh-degree-interval": "500"},
	} {
		for _, file := range []texts{nil, {"refine-every": "77"}} {
			alone := func(again texts) *Options { return resolved(t, with(flags, again), file) }
			block := func(again texts) *Options { return asBlock(t, alone(again)) }
			for i, options := range []func(again texts) *Options{alone, block} {
				for _, photos := range []int{9, 127} {
					name := fmt.Sprintf("%v, %v, %d photos, block %v", flags, file, photos, i == 1)
					checkShorten(t, name, options, photos)
				}
			}
		}
	}
}

// with returns texts and others, which are stronger.
func with(some, others texts) texts {
	all := texts{}
	maps.Copy(all, some)
	maps.Copy(all, others)
	return all
}

func checkShorten(t *testing.T, name string, options func(again texts) *Options, photos int) {
	t.Helper()
	for _, share := range []float64{0.003, 0.2, 0.77, 0.9999} {
		for halved := range 3 {
			name := fmt.Sprintf("%s, %g of the steps, halved %d times", name, share, halved)
			r := limitedRun(options(nil), photos)
			full := r.Config
			steps := max(1, int(share*float64(full.Iterations)))
			g := growth{first: 100, ceiling: 1e6, fewer: r.splatsFollow()}
			again := r.limit.shorten(halvings(full, 480)[halved], steps, g)
			c := &r.Config
			if n := c.Iterations; n > steps+1 || float64(n) < 0.99*float64(steps)-2 {
				t.Errorf("%s: %d steps, %d fit", name, n, steps)
			}
			given := texts{}
			for _, c := range again {
				given[c.Setting] = c.Value
			}
			if other := limitedRun(options(given), photos).Config; other != *c {
				t.Errorf("%s: %v gives another recipe:\n%v\n%v", name, again, other, *c)
			}
			grows := r.splatsFollow() && c.Refinements() > 0
			want := g.ofSteps(full, c.Iterations).Splats
			if grows && math.Abs(float64(c.Splats-want)) > 2+0.002*float64(want) {
				t.Errorf("%s: %d splats after %d steps, want %d", name, c.Splats, c.Iterations, want)
			}
			if grows && share < 0.9 && c.Splats >= full.Splats {
				t.Errorf("%s: %d splats, as many as after all steps", name, c.Splats)
			}
			if c.NumDownscales != full.NumDownscales+halved ||
				halved > 0 && steps > 9 && c.NumDownscales*c.ResolutionSchedule >= c.Iterations {
				t.Errorf("%s: halved %d times, each size for %d of %d steps", name, c.NumDownscales,
					c.ResolutionSchedule, c.Iterations)
			}
		}
	}
}

// TestShortenNothing wants a limit that is longer than the run to change nothing.
func TestShortenNothing(t *testing.T) {
	r := limitedRun(resolved(t, nil, nil), 50)
	full := r.Config
	if again := r.limit.shorten(full, full.Iterations, growth{}); again != nil || r.Config != full {
		t.Errorf("%v: %v, was %v", again, r.Config, full)
	}
}

// TestHalvings wants photos of some size, and no more halvings than that leaves.
func TestHalvings(t *testing.T) {
	for _, tt := range []struct{ before, smallest, want int }{{0, 63, 1}, {0, 64, 2}, {0, 128, 3}, {0, 4000, 3},
		{2, 128, 1}, {2, 256, 2}} {
		c := recipe.Config{Iterations: 900, NumDownscales: tt.before}
		if got := halvings(c, tt.smallest); len(got) != tt.want || got[0].NumDownscales != tt.before {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// timed are the options of a run on a device that takes so long for a step, in the rehearsal and later.
func timed(t *testing.T, scene, out, rehearsed, trained string) *Options {
	t.Helper()
	t.Setenv(stepTimesVariable, rehearsed+","+trained)
	o := NewOptions()
	o.Scene, o.Out, o.Progress, o.Report = scene, out, meter.None, false
	o.Config.Iterations, o.TimeLimit = 250, LimitFlag(1000*time.Second)
	return o
}

// TestLimitBegins wants the limit of a run whose scene had to be made first to begin after that.
func TestLimitBegins(t *testing.T) {
	r := NewRun(&Options{}, &cli.Console{})
	r.Begun = time.Now().Add(-time.Hour)
	r.limit.startClock()
	if passed := r.limit.clock.passed(); passed < time.Hour || passed > 2*time.Hour {
		t.Errorf("%v have passed of a limit that began an hour ago", passed)
	}
}

// TestLimitedRun chooses steps and keeps to them, or ends when the time is over.
func TestLimitedRun(t *testing.T) {
	scene := runtest.SmallScene(t, 300)
	var said strings.Builder
	st, err := Do(cli.New(nil, io.Discard, &said), timed(t, scene, filepath.Join(t.TempDir(), "a"), "10s", "10s"))
	if err != nil || st.Step < 50 || st.Step > 90 || st.Config.Iterations != st.Step {
		t.Fatalf("%+v: %v, said %s", st, err, &said)
	}
	if !strings.Contains(said.String(), fmt.Sprintf("time limit 1000 s: %d of the recipe's 250 steps fit at 0.10 steps/s", st.Step)) {
		t.Errorf("said %s", &said)
	}
	out := filepath.Join(t.TempDir(), "b")
	said.Reset()
	st, err = Do(cli.New(nil, &said, io.Discard), timed(t, scene, out, "10s", "100s"))
	if err != nil || !st.Interrupted || !strings.Contains(said.String(), fmt.Sprintf(
		"Time limit reached at step %d of %d. The model is saved; continue with: ", st.Step, st.Config.Iterations)) {
		t.Errorf("a run that is slower than foreseen: %v, said %s", err, &said)
	}
	list, err := filepath.Glob(filepath.Join(out, "checkpoints", "*.safetensors"))
	if err != nil || len(list) != 1 {
		t.Fatalf("checkpoints %v: %v", list, err)
	}
	c := must.Get(checkpoint.Open(list[0]))(t)
	again := NewOptions() // of a demo
	again.Out = out
	if err := again.RefuseStopped(); fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(err.Error(),
		fmt.Sprintf("holds a run that stopped after step %d of ", st.Step)) || !strings.Contains(fault.Hint(err),
		"overwrite") {
		t.Errorf("a stopped run may be replaced: %v", err)
	}
	if again.Checkpoints.Overwrite = true; again.RefuseStopped() != nil {
		t.Error("a stopped run is not replaced")
	}
	again.Checkpoints.Overwrite, again.Out = false, filepath.Join(filepath.Dir(out), "none")
	if err := again.RefuseStopped(); err != nil {
		t.Error(err)
	}
	if h := &c.Header; h.Step >= h.Config.Iterations || h.Config.Iterations > 90 {
		t.Errorf("stopped after step %d of %d", h.Step, h.Config.Iterations)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	// so slow that the first steps of the rehearsal end early, too: no more steps are planned than fit
	said.Reset()
	st, err = Do(cli.New(nil, io.Discard, &said), timed(t, scene, filepath.Join(t.TempDir(), "d"), "40s", "8s"))
	if err != nil || st.Interrupted || st.Step > 24 || st.Config.Iterations != st.Step ||
		!strings.Contains(said.String(), "warning: time limit 1000 s: only about ") {
		t.Errorf("%+v: %v, said %s", st, err, &said)
	}
	// so slow that no step fits: the run has one, and a dry run says the same
	const none = "not one step fits into 1000 s on this device; training takes at least "
	said.Reset()
	o := timed(t, scene, filepath.Join(t.TempDir(), "c"), "9000s", "1s")
	st, err = Do(cli.New(nil, io.Discard, &said), o)
	if err != nil || st.Step != 1 || !strings.Contains(said.String(), "warning: time limit 1000 s: "+none) ||
		!strings.Contains(said.String(), "s longer than its time limit of 1000 s") ||
		strings.Contains(said.String(), " fit at ") || strings.Contains(said.String(), "full size") {
		t.Errorf("%+v: %v, said %s", st, err, &said)
	}
	said.Reset()
	o = timed(t, scene, filepath.Join(t.TempDir(), "e"), "9000s", "1s")
	o.DryRun, o.Checkpoints.Off = true, true
	if _, err = Do(cli.New(nil, &said, io.Discard), o); err != nil || !strings.Contains(said.String(), none) {
		t.Errorf("a dry run: %v, said %s", err, &said)
	}
}

// TestLimitedWithMeasurements foresees what is measured and saved on the way, at steps that are scaled as the command
// that it prints scales them, and refuses to replace a picture of the user.
func TestLimitedWithMeasurements(t *testing.T) {
	scene := runtest.SmallScene(t, 300)
	options := func(out string) *Options {
		o := timed(t, scene, out, "10s", "10s,30s")
		o.Eval, o.EvalAt, o.Checkpoints.SaveAt = true, cli.Steps{50, 100, 150, 9999}, cli.Steps{125}
		return o
	}
	out := t.TempDir()
	st, err := Do(cli.New(nil, io.Discard, io.Discard), options(out))
	if err != nil || st.Step != st.Config.Iterations || st.Step < 50 || st.Step > 80 {
		t.Fatalf("%+v: %v", st, err)
	}
	scaled := cli.Steps{50, 100, 150, 9999}
	scaled.Scale(float64(st.Step) / 250)
	for i, step := range st.EvalAt {
		if d := step - scaled[i]; i < 3 && (d < -1 || d > 1) {
			t.Errorf("measured after steps %v of %d, want %v", st.EvalAt, st.Step, scaled)
		}
	}
	if models := output.StepFolders(out, output.ModelFolder, -1); len(models) != 2 {
		t.Errorf("models %v", models)
	}

	pictures := output.PictureFolder + strconv.Itoa(st.Step)
	names := slices.DeleteFunc(filetest.List(t, out),
		func(name string) bool { return !strings.HasPrefix(name, pictures) })
	if len(names) == 0 {
		t.Fatal(filetest.List(t, out))
	}
	out = t.TempDir()
	filetest.Make(t, out, names[0])
	_, err = Do(cli.New(nil, io.Discard, io.Discard), options(out))
	if left := filetest.List(t, out); err == nil || !strings.Contains(err.Error(), names[0]) || len(left) != 1 {
		t.Errorf("a picture of the user is in the way: %v, left %v", err, left)
	}
}

// TestLimitedOnSmallerPhotos wants smaller photos where few steps fit: of half the size they take a quarter of the
// time.
func TestLimitedOnSmallerPhotos(t *testing.T) {
	runtest.NeedDevice(t)
	scene := filepath.Join(t.TempDir(), "scene")
	must.Do(t, synth.Write(scene, synth.Options{Images: 4, Width: 96, Height: 64, Points: 200}))
	var said strings.Builder
	st, err := Do(cli.New(nil, io.Discard, &said), timed(t, scene, filepath.Join(t.TempDir(), "out"), "10s", "1s"))
	if err != nil {
		t.Fatal(err)
	}
	c := &st.Config
	off := c.Iterations - 2*c.ResolutionSchedule
	if c.Iterations < 130 || c.Iterations > 140 || c.NumDownscales != 1 || off < 0 || off > 3 ||
		!strings.Contains(said.String(), "the first on photos of 1/2 of width and height") {
		t.Errorf("%d steps, halved %d times, for %d: %s", c.Iterations, c.NumDownscales, c.ResolutionSchedule, &said)
	}
}

// splatClock is a clock on which a step takes the root of the number of splats in seconds, and nothing else any time.
type splatClock struct{ stepClock }

func (c *splatClock) rehearsed(_, splats int) {
	c.sum += seconds(math.Sqrt(float64(splats)))
}

// TestLimitedGrowth wants the steps that fit to follow from how the model grows: the rehearsal knows models of the
// first and of the last number of splats. What is trained takes longer than what is rehearsed.
func TestLimitedGrowth(t *testing.T) {
	runtest.NeedDevice(t)
	o := timed(t, runtest.SmallScene(t, 300), t.TempDir(), "1s", "1s")
	o.Config.Strategy, o.Config.Splats, o.Config.MaxSplats = recipe.StrategyMCMC, 900, 900
	o.Config.Iterations, o.TimeLimit = 600, LimitFlag(10000*time.Second)
	o.Config.RefineStart, o.Config.RefineStop, o.Config.RefineEvery, o.Config.GrowFactor = 100, 400, 10, 1.05
	r := NewRun(o, cli.New(nil, io.Discard, io.Discard))
	r.limit.clock = &splatClock{}
	full := o.Config
	must.Do(t, r.Begin(t.Context()))
	defer r.Close()
	first := r.Trainer.NSplats()
	left := time.Duration(o.TimeLimit).Seconds() - r.limit.clock.passed().Seconds()
	takes := func(steps int) (seconds float64) {
		c, n := growth{}.ofSteps(full, steps), first
		for step := range steps {
			seconds += crowded * math.Sqrt(float64(n))
			if c.Refines(step) {
				n = c.TargetSplats(first, 900, step)
			}
		}
		return seconds
	}
	if n := r.Config.Iterations; first >= 900 || takes(n) > 1.02*left || takes(n) < 0.85*left {
		t.Errorf("%d steps, which take %g s of %g, from %d splats on", n, takes(n), left, first)
	}
}

// TestBesides wants less for the files of fewer splats, the same for photos, and no less where the clock ends a run.
func TestBesides(t *testing.T) {
	b := besides{splats: 1000, reading: time.Second, writing: 4 * time.Second, measuring: 3 * time.Second, saves: 2,
		evaluations: 1}
	for _, c := range []struct {
		splats             int
		onTheWay, end, cut float64
	}{{1000, 13, 0.1 + 1 + 4 + 1.5, 0.1 + 8}, {500, 8, 0.1 + 0.5 + 3 + 1, 0.1 + 5.5}, {0, 3, 0.1 + 3, 0.1 + 3}} {
		x := b.of(c.splats)
		got := []float64{x.onTheWay().Seconds(), x.end().Seconds(), x.cut().Seconds()}
		for k, want := range []float64{c.onTheWay, c.end, c.cut} {
			if math.Abs(got[k]-want) > 1e-6 {
				t.Errorf("%d splats: %g s, want %g, %g, %g", c.splats, got, c.onTheWay, c.end, c.cut)
			}
		}
	}
}

// TestRehearsalLeavesNothing wants a run after its rehearsal to hold what it holds without one, and the estimate of its
// end to leave no file.
func TestRehearsalLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r, _ := startedRun(t, true)
	before := r.Trainer.MemoryStats().DeviceBytes
	b, err := r.limit.estimateBesides(r.Trainer)
	if left, failed := os.ReadDir(temp); err != nil || failed != nil || b.end() <= closingTime || len(left) > 0 {
		t.Errorf("%v, left %v: %v, %v", b, left, err, failed)
	}
	budget := r.device.Budget()
	restore := r.keepBudgets()
	r.device.SetBudget(budget / 2)
	if restore(); r.device.Budget() != budget {
		t.Errorf("a budget of %d, was %d", r.device.Budget(), budget)
	}
	limited := timed(t, r.Scene, t.TempDir(), "1s", "1s")
	limited.Config.Iterations, limited.Eval = 3, true
	must.Do(t, r.Close())
	r = NewRun(limited, r.Console)
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.limit.startClock()
	must.Do(t, r.Begin(t.Context()))
	if after := r.Trainer.MemoryStats().DeviceBytes; after != before {
		t.Errorf("%d bytes of device memory after a rehearsal, %d without", after, before)
	}
}

// TestNoLimit refuses limits of nothing.
func TestNoLimit(t *testing.T) {
	o := NewOptions()
	for _, limit := range []time.Duration{-1, 1, time.Second - 1} {
		o.TimeLimit = LimitFlag(limit)
		if err := o.Check(); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("a limit of %v: %v", limit, err)
		}
	}
	o.TimeLimit, o.PrintConfig = LimitFlag(time.Minute), true
	if err := o.Check(); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a limit of what is printed: %v", err)
	}
	o.PrintConfig = false
	if err := o.OfOneBlock(&plans.Plan{}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a limit of several blocks: %v", err)
	}
}

// TestPredict has a dry run with a limit say how long all steps take, and write nothing.
func TestPredict(t *testing.T) {
	o := timed(t, runtest.SmallScene(t, 300), "", "10s", "10s")
	o.DryRun, o.PlanJSON = true, true
	var said strings.Builder
	must.Get(Do(cli.New(nil, &said, io.Discard), o))(t)
	var plan struct {
		Splats     int
		Prediction *prediction
	}
	if err := json.Unmarshal([]byte(said.String()), &plan); err != nil || plan.Splats == 0 || plan.Prediction == nil {
		t.Fatalf("%s: %v", &said, err)
	}
	if p := plan.Prediction; p.Steps != 250 || p.Seconds < 2400 || p.Seconds > 2700 || p.Fit < 50 || p.Fit > 100 {
		t.Errorf("%+v", p)
	}
	o = timed(t, o.Scene, "", "10s", "10s")
	o.DryRun = true
	said.Reset()
	if _, err := Do(cli.New(nil, &said, io.Discard), o); err != nil ||
		!strings.Contains(said.String(), "for 250 steps, by a rehearsal") {
		t.Errorf("%v, said %s", err, &said)
	}
}

// TestPlanStart wants a plan to begin with as many splats as training does: where fewer are asked for than the capture
// has points, no more than these.
func TestPlanStart(t *testing.T) {
	o := NewOptions()
	o.Scene, o.DryRun, o.Config.Strategy, o.Config.Splats = runtest.SmallScene(t, 300), true, recipe.StrategyMCMC, 100
	var said strings.Builder
	if _, err := Do(cli.New(nil, &said, io.Discard), o); err != nil ||
		!strings.Contains(said.String(), "100 splats to start with") {
		t.Errorf("%v, said %s", err, &said)
	}
}
