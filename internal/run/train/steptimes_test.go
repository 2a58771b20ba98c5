package train

import (
	"math"
	"slices"
	"testing"

	"vksplat/pipeline/recipe"
	"vksplat/scene/scenetest"
)

// TestStepTimes wants times between and beyond two models to grow with the root of the number of splats, for each size
// of photos, to 1.2 times what the larger one was rehearsed with.
func TestStepTimes(t *testing.T) {
	times := stepTimes{modelTimes{100, []float64{2, 1}}, modelTimes{400, []float64{6, 2}}, 1}
	for _, tt := range []struct {
		splats, level int
		want          float64
	}{{100, 0, 2}, {400, 0, 7.2}, {225, 0, 4.6}, {900, 0, 12.4}, {225, 1, 1.7}, {225, 5, 1.7}, {0, 0, 1}} {
		if got := times.at(tt.splats, tt.level); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%d splats, halved %d times: %g, want %g", tt.splats, tt.level, got, tt.want)
		}
	}
	same := modelTimes{100, []float64{3}}
	if got := (&stepTimes{few: same, many: same}).at(100, 0); got != 3 {
		t.Errorf("a model that does not grow: %g", got)
	}
	if more := same.slower(120); more.splats != 120 || math.Abs(more.at(0)-3.6) > 1e-12 || same.at(0) != 3 {
		t.Errorf("1.2 times as many splats: %+v", more)
	}
}

// TestSchedule wants the seconds of a schedule to be the sum over its steps, and the most steps that fit.
func TestSchedule(t *testing.T) {
	times := stepTimes{modelTimes{1000, []float64{0.02, 0.01}}, modelTimes{5000, []float64{0.1, 0.03}}, 0.05}
	for _, flags := range []texts{nil, {"preset": "default"}, {"preset": "3dgs"}, {"preset": "mcmc"},
		{"preset": "3dgs", "splats": "9000"}, {"preset": "3dgs", "refine-every": "0"}, {"refine-stop": "0"}} {
		cfg := limitedRun(resolved(t, flags, nil), 50).Config
		g := growth{first: 1000, ceiling: 20000, guess: 7000}
		for _, seconds := range []float64{0, 0.005, 3, 30, 1e9} {
			n := times.fit(cfg, g, seconds)
			short, longer := g.ofSteps(cfg, n), g.ofSteps(cfg, n+1)
			if got := times.schedule(&short, g); n > 0 && got > seconds*1.001 {
				t.Errorf("%v: %d steps take %g s of %g", flags, n, got, seconds)
			}
			if got := times.schedule(&longer, g); n < cfg.Iterations && got < seconds*0.999 {
				t.Errorf("%v: %d steps take %g s, %d fit into %g", flags, n+1, got, n, seconds)
			}
			if n > cfg.Iterations || seconds == 1e9 && n < cfg.Iterations {
				t.Errorf("%v: %d of %d steps in %g s", flags, n, cfg.Iterations, seconds)
			}
		}
		short := g.ofSteps(cfg, 1000)
		sum, splats := 0.0, g.first
		for step := range short.Iterations {
			sum += times.at(splats, short.Level(step))
			if short.Refines(step) {
				splats = g.at(&short, step)
				sum += 0.05
			}
		}
		if got := times.schedule(&short, g); math.Abs(got-sum) > 0.02*sum {
			t.Errorf("%v: %g s, the steps take %g", flags, got, sum)
		}
	}
}

// TestGrowth wants the numbers of splats that the recipe makes, and a guess where it does not say.
func TestGrowth(t *testing.T) {
	config := func(flags texts) *recipe.Config { return &limitedRun(resolved(t, flags, nil), 50).Config }
	cams := photographed(50).Cameras
	for _, flags := range []texts{nil, {"preset": "mcmc"}, {"preset": "3dgs", "splats": "9000"}} {
		cfg := config(flags)
		g := growthOf(cfg, cams, 0, 1000, 20000)
		want := cfg.TargetSplats(1000, 20000, cfg.Iterations)
		if got := g.last(cfg); got != want || g.at(cfg, 0) != 1000 {
			t.Errorf("%v: from %d to %d splats, want %d", flags, g.at(cfg, 0), got, want)
		}
	}
	cfg := config(texts{"preset": "3dgs"})
	g := growth{first: 1000, ceiling: 20000, guess: 7000}
	half := g.at(cfg, (cfg.RefineStart+cfg.RefineStop)/2)
	if g.last(cfg) != 7000 || half < 3990 || half > 4010 {
		t.Errorf("a guess of 7000 splats: %d in the end, %d half way", g.last(cfg), half)
	}
	if g := growthOf(cfg, cams, 0, 1000, 1200); g.last(cfg) > 1200 || g.last(cfg) < 1000 {
		t.Errorf("%d splats of at most 1200", g.last(cfg))
	}
	if cfg := config(texts{"splats": "500"}); growthOf(cfg, cams, 0, 1000, 20000).first != 500 {
		t.Error("a model of 500 splats begins with more")
	}
}

// TestModelLike wants copies that are finite, lie inside of what they are copies of, and let as much light through.
func TestModelLike(t *testing.T) {
	s := scenetest.RandomSplats(10, 0)
	for _, n := range []int{3, 10, 35} {
		like := modelLike(s, n)
		if err := like.Validate(); err != nil || like.N != n {
			t.Fatalf("%d splats: %d, %v", n, like.N, err)
		}
	}
	if like := modelLike(s, s.N); !slices.Equal(like.Means, s.Means) || !slices.Equal(like.LogScales, s.LogScales) {
		t.Error("as many splats are others")
	}
	logit := func(like []float32) float64 { return 1 / (1 + math.Exp(-float64(like[0]))) }
	four := modelLike(s, 40)
	if one, all := logit(s.LogitOpacities), 1-math.Pow(1-logit(four.LogitOpacities), 4); math.Abs(one-all) > 1e-4 {
		t.Errorf("opacity %g became %g", one, all)
	}
	for i := 1; i < 4; i++ {
		for k := range 3 {
			d, most := four.Means[3*i+k]-s.Means[k], math.Exp(float64(s.LogScales[k]))
			if d == 0 || math.Abs(float64(d)) > most*1.001 {
				t.Errorf("copy %d lies %g away along axis %d of length %g", i, d, k, most)
			}
		}
	}
}

// TestRehearsed wants throw-away models that any recipe allows, on photos of each size for as long, and refined only at
// their end.
func TestRehearsed(t *testing.T) {
	for _, flags := range []texts{nil, {"preset": "default"}, {"preset": "3dgs"}, {"preset": "mcmc"},
		{"preset": "3dgs", "splats": "9000"}, {"preset": "3dgs", "refine-every": "0"},
		{"refine-stop": "0"}} {
		cfg := limitedRun(resolved(t, flags, nil), 50).Config
		for _, try := range []trial{{splats: 1000, sizes: 1, steps: 1}, {splats: 777, sizes: 3, steps: 5},
			{splats: 1000, sizes: 2}, {splats: 1000, sizes: 2, steps: 3, last: true}} {
			c := rehearsed(cfg, try)
			if err := c.Validate(); err != nil {
				t.Errorf("%v, %+v: %v", flags, try, err)
			}
			at := make([]int, try.sizes)
			for step := range c.Iterations - 1 {
				last := step >= try.sizes*stretches*try.steps
				if c.Refines(step) != (last && cfg.RefineEvery > 0) || c.Cleans(step) {
					t.Errorf("%v, %+v: step %d refines: %v", flags, try, step, c.Refines(step))
				}
				if !last {
					at[c.Level(step)]++
				} else if c.Level(step) != 0 {
					t.Errorf("%v, %+v: step %d is on small photos", flags, try, step)
				}
			}
			if slices.Min(at) != stretches*try.steps || slices.Max(at) != stretches*try.steps {
				t.Errorf("%v, %+v: steps on photos of each size: %v", flags, try, at)
			}
		}
	}
}

// TestSpread wants each number once, those at even distances first.
func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		n, first int
		want     []int
	}{{0, 3, nil}, {2, 3, []int{0, 1}}, {6, 3, []int{0, 2, 4, 1, 3, 5}}, {5, 2, []int{0, 2, 1, 3, 4}}} {
		if got := spread(tt.n, tt.first); !slices.Equal(got, tt.want) {
			t.Errorf("%d of %d: %v, want %v", tt.first, tt.n, got, tt.want)
		}
	}
}
