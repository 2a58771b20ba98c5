package pipeline

import (
	"testing"

	"vksplat/internal/filetest"
	"vksplat/pipeline/recipe"
	"vksplat/scene/synth"
)

// passerScenes are a procedural capture and the same with people who walk through a third of its photos. Every other
// photo is trained on; held out are the others, without people in both.
func passerScenes(t *testing.T) (clean, passed *driftScene) {
	t.Helper()
	o := synth.Options{Images: 48, Width: 64, Height: 48, Points: 1500}
	made := func() *driftScene {
		c, images := synthCapture(t, o)
		s := &driftScene{capture: c}
		for i, m := range images {
			if i%2 == 1 {
				s.train = append(s.train, TrainView{c.Cameras[i], m})
			} else {
				s.held = append(s.held, TrainView{c.Cameras[i], m})
			}
		}
		return s
	}
	clean = made()
	o.Passers = true
	passed = made()
	passed.held = clean.held
	return clean, passed
}

// passerConfig is the default recipe for so many steps, without what only large photos need.
func passerConfig(steps int) recipe.Config {
	c := recipe.Default()
	c.Iterations, c.SHDegree, c.SHInterval = steps, 1, steps/30
	c.Strategy, c.MaxSplats, c.InitOpacity, c.InitScale = recipe.StrategyMCMC, 2500, 0.5, 0.5
	c.RefineStart, c.RefineStop, c.RefineEvery, c.ResetEvery = steps/20, steps*5/6, 25, 0
	c.GrowFactor, c.OpacityReg, c.ScaleReg = 1.09, 0.01, 0.01
	c.LRLogScales, c.LRSHN, c.LRCooldown = 1e-2, 2.5e-4, 0.2
	c.RandomBackground, c.Carve = true, 0
	return c
}

// TestPassers wants most of what people in a third of the photos cost to come back. The long form has more steps and
// three seeds, and says what robust training costs where nobody walks.
func TestPassers(t *testing.T) {
	d := testDevice(t)
	clean, passed := passerScenes(t)
	steps, seeds := 240, []uint64{42}
	if filetest.Long() {
		steps, seeds = 700, []uint64{42, 1, 2}
	}
	trained := func(s *driftScene, seed uint64, robust bool) float64 {
		cfg := passerConfig(steps)
		cfg.Seed, cfg.Robust = seed, robust
		psnr, _ := s.trainedPSNR(t, d, s.train, cfg)
		return psnr
	}
	for _, seed := range seeds {
		without, off, on := trained(clean, seed, false), trained(passed, seed, false), trained(passed, seed, true)
		t.Logf("seed %d: held-out PSNR %.2f dB; with people in a third of the photos %.2f dB, robust %.2f dB", seed,
			without, off, on)
		if !(on > without-1) || !(on > off+0.5) {
			t.Error("people who walk through the photos stay in the model")
		}
		if !(off < without-1) {
			t.Error("they cost nothing: the test proves too little")
		}
		if !filetest.Long() {
			continue
		}
		robust := trained(clean, seed, true)
		if t.Logf("without them, robust: %.2f dB", robust); !(robust > without-0.3) {
			t.Error("robust training is worse where nobody walks")
		}
	}
}
