package recipe

import (
	"math"
	"slices"
	"testing"

	"vksplat/scene"
	"vksplat/shaders/layout"
)

func TestScaled(t *testing.T) {
	c := Default()
	c.RefineStart = 0
	half, tiny := c.Scaled(0.29), c.Scaled(1e-9)
	if half.Iterations != 8700 || half.SHInterval != 290 || half.RefineStop != 4350 || half.RefineEvery != 29 ||
		half.ResetEvery != 870 || half.RefineStart != 0 || half.ResolutionSchedule != 870 {
		t.Errorf("%+v", half)
	}
	if tiny.Iterations != 1 || tiny.RefineEvery != 1 || tiny.Validate() != nil || c.Scaled(1) != c {
		t.Errorf("%+v", tiny)
	}
	quarter := c.ForShare(0.25)
	if quarter.Iterations != 7500 || quarter.LRMeansFinal != c.LRMeansFinal || c.ForShare(1) != c {
		t.Errorf("%+v", quarter)
	}
	for i, rate := range quarter.SplatRates() {
		if *rate != 2**c.SplatRates()[i] {
			t.Errorf("rate %d of a quarter is %g", i, *rate)
		}
	}
	for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), 1e30} {
		if c.Scaled(f).Validate() == nil {
			t.Errorf("factor %g is accepted", f)
		}
	}
}

func TestSplatsFor(t *testing.T) {
	cams := make([]scene.Camera, 100)
	for i := range cams {
		cams[i].Width, cams[i].Height = 1000, 800 // 80 million pixels
	}
	for _, x := range []struct {
		points int
		factor float64
		want   int
	}{
		{20000, 0.25, 316228}, {20000, 0.5, 632456}, {80000, 0.25, 632456},
		{0, 0.25, 447214},                             // one for 2000 pixels: 40000
		{9000000, 0.25, 894427}, {160000, 1, 3577709}, // one for 500 pixels at most
		{3, 0.25, 200000}, // one for 10000 at least
		{20000, 1e-9, 1}, {20000, 1e30, math.MaxInt32},
	} {
		if got := SplatsFor(cams, x.points, x.factor); got != x.want {
			t.Errorf("%d points, factor %g: %d splats, want %d", x.points, x.factor, got, x.want)
		}
	}
}

func TestTargetSplats(t *testing.T) {
	steps := func(c Config) (r []int) {
		for s := range c.Iterations {
			if c.Refines(s) {
				r = append(r, s)
			}
		}
		return r
	}
	for name, c := range map[string]Config{"default": Default(), "mcmc": MCMC()} {
		for _, n := range []int{500, 1000, 1001, 5000, 900_000} {
			for _, iterations := range []int{700, 7000, 30000} {
				c.Splats, c.Iterations = n, iterations
				last, all := 1000, steps(c)
				if len(all) != c.Refinements() {
					t.Fatalf("%d refinements, want %d", c.Refinements(), len(all))
				}
				for k, s := range all {
					got := c.TargetSplats(1000, 1<<30, s)
					if refinement(&c, s) != k+1 || (got < last) != (n < 1000 && got < last) || got > max(n, 1000) {
						t.Errorf("%s to %d: %d after %d", name, n, got, last)
					}
					last = got
				}
				if last != n && !(name == "mcmc" && n < 1000) {
					t.Errorf("%s ends with %d splats, want %d", name, last, n)
				}
			}
		}
	}
	// More iterations than the run was started with keep the promised number.
	for name, c := range map[string]Config{"default": Default(), "mcmc": MCMC()} {
		for _, started := range []int{400, 1000, 7000} {
			c.Splats, c.Iterations = 5000, 30000
			c = c.StartedFor(started)
			if c.Refinements() == 0 {
				c.Splats = 1000 // no other number can be promised
			}
			for _, s := range []int{started / 100 * 100, 7100, 14900} {
				if got := c.TargetSplats(1000, 1<<30, s); c.Refines(s) && s >= started && got != c.Splats {
					t.Errorf("%s of %d iterations, after step %d: %d splats, want %d", name, started, s, got, c.Splats)
				}
			}
		}
	}
	c := MCMC()
	if got := c.TargetSplats(1000, 1100, 600); got != 1050 {
		t.Errorf("%d splats, want 1050", got)
	}
	if got := c.TargetSplats(1000, 1100, 900); got != 1100 {
		t.Errorf("%d splats, want the ceiling", got)
	}
	if got := c.TargetSplats(2000, 1100, 900); got != 2000 {
		t.Errorf("%d splats, want those that live", got)
	}
}

func TestRandomBackground(t *testing.T) {
	c := Default()
	if c.Background = [3]float32{0.1, 0.2, 0.3}; c.BackgroundOf(5) != c.Background {
		t.Error("the background is not the one asked for")
	}
	c.RandomBackground = true
	if a, b := c.BackgroundOf(1), c.BackgroundOf(2); a == b || a != c.BackgroundOf(1) {
		t.Error("not another colour every step")
	}
	var all []float32
	for s := range 2000 {
		rgb := c.BackgroundOf(s)
		all = append(all, rgb[:]...)
	}
	if lo, hi := slices.Min(all), slices.Max(all); lo < 0 || hi > 1 || lo > 0.01 || hi < 0.99 {
		t.Errorf("from %g to %g", lo, hi)
	}
}

// TestBackgroundNoise draws backgrounds that scatter about the one that is asked for.
func TestBackgroundNoise(t *testing.T) {
	c := Default()
	c.Background, c.BackgroundNoise = [3]float32{0, 0.5, 1}, 0.1
	if a := c.BackgroundOf(1); a == c.BackgroundOf(2) || a != c.BackgroundOf(1) {
		t.Error("not another colour every step")
	}
	for channel, want := range c.Background {
		lo, hi, sum := float32(2), float32(-2), float32(0)
		for step := range 2000 {
			x := c.BackgroundOf(step)[channel] - want
			lo, hi, sum = min(lo, x), max(hi, x), sum+x
		}
		if lo < -0.1001 || lo > -0.099 || hi > 0.1001 || hi < 0.099 || math.Abs(float64(sum/2000)) > 0.006 {
			t.Errorf("channel %d: from %g to %g, mean %g", channel, lo, hi, sum/2000)
		}
	}
}

// TestCooldown lowers every learning rate of splats at the end of the schedule, and MCMC's noise with that of the
// means.
func TestCooldown(t *testing.T) {
	c := MCMC()
	c.Iterations, c.LRMeansFinal = 1000, 1
	at := func(step int) (p layout.StepParams) {
		c.OptimiserParams(&p, step, 2, 4)
		c.StrategyParams(&p, step, 2, 4)
		return p
	}
	plain := at(0)
	c.LRCooldown, c.LRCooldownFinal = 0.2, 0.01
	for _, k := range []struct {
		step int
		want float64
	}{{0, 1}, {800, 1}, {850, math.Sqrt(0.1)}, {900, 0.1}, {1000, 0.01}, {1500, 0.01}} {
		got := at(k.step)
		for _, rate := range []struct {
			name      string
			got, full float32
		}{
			{"means", got.LrMeans, plain.LrMeans}, {"log scales", got.LrLogScales, plain.LrLogScales},
			{"quats", got.LrQuats, plain.LrQuats}, {"opacities", got.LrLogitOpacity, plain.LrLogitOpacity},
			{"sh0", got.LrSh0, plain.LrSh0}, {"shN", got.LrShn, plain.LrShn},
			{"noise", got.NoiseScale, plain.NoiseScale},
		} {
			if f := float64(rate.got / rate.full); math.Abs(f/k.want-1) > 1e-5 {
				t.Errorf("step %d: %s times %g, want %g", k.step, rate.name, f, k.want)
			}
		}
		if got.OpacityReg != plain.OpacityReg {
			t.Errorf("step %d: weight of opacity %g, want %g", k.step, got.OpacityReg, plain.OpacityReg)
		}
	}
}

func TestLevels(t *testing.T) {
	c := Config{NumDownscales: 2, ResolutionSchedule: 100}
	for _, x := range []struct{ step, width, height, want int }{
		{0, 64, 64, 2}, {99, 64, 64, 2}, {100, 64, 64, 1}, {199, 64, 64, 1}, {200, 64, 64, 0}, {1 << 30, 64, 64, 0},
		{0, 63, 400, 1}, {0, 400, 32, 1}, {0, 31, 31, 0}, {0, 1, 1, 0}, {150, 31, 400, 0},
	} {
		if got := levelOf(&c, x.step, x.width, x.height); got != x.want {
			t.Errorf("step %d, %dx%d: level %d, want %d", x.step, x.width, x.height, got, x.want)
		}
	}
	if got := levelOf(&Config{}, 0, 64, 64); got != 0 {
		t.Errorf("level %d without progressive resolution", got)
	}
}

// TestReorders wants splats in order of space after the first step, with every fifth refinement, after the last one,
// and in the schedule between the refinement and a reset.
func TestReorders(t *testing.T) {
	c := Default()
	c.Iterations, c.RefineStart, c.RefineEvery, c.RefineStop, c.ResetEvery = 3000, 500, 100, 1900, 1000
	var steps []int
	kinds := map[int][]Kind{}
	for u := (Unit{Number: 1}); u.Step < c.Iterations; u = c.After(u, true) {
		if !c.Comes(u, true) {
			t.Errorf("%+v comes, and does not", u)
		}
		if u.Kind == Reorder {
			steps = append(steps, u.Step)
		}
		kinds[u.Step] = append(kinds[u.Step], u.Kind)
	}
	if want := []int{0, 1000, 1500, 1800}; !slices.Equal(steps, want) {
		t.Errorf("in order after steps %v, want %v", steps, want)
	}
	if want := []Kind{Step, Carve, Refine, Reorder, Reset}; !slices.Equal(kinds[1000], want) {
		t.Errorf("after step 1000 come %v, want %v", kinds[1000], want)
	}
	c.RefineEvery = 0
	if u := c.After(Unit{Number: 1}, false); u.Kind != Reorder || c.Comes(Unit{Kind: Reorder, Step: 500}, false) {
		t.Errorf("without refinements %+v follows the first step, or step 500 reorders", u)
	}
}
