package pipeline

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/scene"
)

// TestCarve trains a scene some of whose splats begin in empty space. Without Carve such splats stay; with it none does
// at the end, whatever the strategy, and a model that is to have a given number of splats has that number.
func TestCarve(t *testing.T) {
	exact := 3500 / thinning()
	for name, change := range map[string]func(*recipe.Config){
		"default": func(*recipe.Config) {},
		"exact":   func(c *recipe.Config) { c.Splats = exact },
		"mcmc": func(c *recipe.Config) {
			m := recipe.MCMC()
			c.Strategy, c.ResetEvery, c.InitOpacity, c.MaxSplats = m.Strategy, 0, m.InitOpacity, 3300/thinning()
		},
		"mixed": func(c *recipe.Config) { c.Precision = recipe.PrecisionMixed },
	} {
		t.Run(name, func(t *testing.T) {
			for _, carve := range []float64{0, 0.5} {
				s, floaters := carved(t, func(c *recipe.Config) {
					shortened(c)
					change(c)
					c.Carve = carve
				})
				t.Logf("carve %g: %d splats, %d floaters", carve, s.N, floaters)
				switch {
				case carve == 0 && floaters == 0:
					t.Error("no floater without carving: the test proves too little")
				case carve > 0 && floaters > 0:
					t.Errorf("%d floaters are left of %d splats", floaters, s.N)
				case name == "exact" && s.N != exact:
					t.Errorf("%d splats, want %d", s.N, exact)
				}
			}
		})
	}
}

// carved trains the promise scene and counts the floaters of the model that a picture may show.
func carved(t *testing.T, change func(*recipe.Config)) (s *scene.Splats, floaters int) {
	views, init, scale, cfg := promiseScene(t)
	change(&cfg)
	tr := must.Get(trainOn(testDevice(t), views, init, scale, cfg))(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), nil))
	s = must.Get(tr.Splats())(t)
	cams, _ := splitViews(views)
	depths := depthsOf(cams)
	var list []ref.Voter[float64]
	for i := range cams {
		c := &cams[i]
		view := ref.View[float64]{R: c.R, T: c.T, Fx: c.Fx, Fy: c.Fy, Cx: c.Cx, Cy: c.Cy, Width: c.Width,
			Height: c.Height}
		list = append(list, ref.Voter[float64]{View: view, Empty: depths[i].Empty, Median: depths[i].Median})
	}
	reach := 1.0
	if cfg.Strategy == recipe.StrategyMCMC {
		reach = float64(strategyMCMC{}.variants().reach)
	}
	for i := range s.N {
		var mean [3]float64
		scale := math.Inf(-1)
		for k := range mean {
			mean[k], scale = float64(s.Means[3*i+k]), max(scale, math.Exp(float64(s.LogScales[3*i+k])))
		}
		if ref.Sigmoid(s.LogitOpacities[i]) >= ref.AlphaThreshold && ref.IsFloater(mean, scale/reach, list) {
			floaters++
		}
	}
	return s, floaters
}

// TestCarveGoesOn trains a finished model for a step more: the removal at the end of that leaves what the one before
// left.
func TestCarveGoesOn(t *testing.T) {
	d, path := testDevice(t), filepath.Join(t.TempDir(), "end")
	views, init, scale, cfg, run := checkpointScene(t)
	cfg.Iterations = 28
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	tr.SetRun(run)
	before := splatsAfter(t, tr, cfg.Iterations)
	saved(t, tr, path)
	must.Do(t, tr.Close())
	cfg.Iterations++
	next := resumed(t, d, path, cfg)
	defer next.Close()
	if after := splatsAfter(t, next, cfg.Iterations); after.N > before.N || after.N < before.N*99/100 {
		t.Errorf("%d splats, and %d after a step more", before.N, after.N)
	}
}
