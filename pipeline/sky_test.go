package pipeline

import (
	"path/filepath"
	"testing"

	"vksplat/internal/filetest"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/sky"
	"vksplat/scene/synth"
)

// skyScene is a procedural capture whose sky is out of reach, or painted on a dome. Every eighth photo is held out.
func skyScene(t *testing.T, open bool) *driftScene {
	t.Helper()
	c, images := synthCapture(t, synth.Options{Images: 96, Width: 64, Height: 48, Points: 1500, Open: open})
	s := &driftScene{capture: c}
	train, held := c.Split(8)
	for _, i := range train {
		s.train = append(s.train, TrainView{c.Cameras[i], images[i]})
	}
	for _, i := range held {
		s.held = append(s.held, TrainView{c.Cameras[i], images[i]})
	}
	return s
}

// withShell is s with a far shell.
func (s driftScene) withShell(t *testing.T) *driftScene {
	t.Helper()
	c := *s.capture
	c.HoldOutEvery(8)
	found, err := sky.Find(t.Context(), c.Training(), 1<<30)
	if err != nil || len(found.Points) == 0 {
		t.Fatalf("%d points of a far shell, error %v", len(found.Points), err)
	}
	c.Points = append(append([]scene.Point(nil), c.Points...), found.Points...)
	s.capture, s.shell = &c, found.Radius
	return &s
}

// TestSky wants a far shell to give back most of what an open sky costs, as a model cannot reach it from the points of
// the capture. In the long form little is missing of what the same scene has under a dome, whose points it can reach.
func TestSky(t *testing.T) {
	d := testDevice(t)
	steps, seeds, gain := 250, []uint64{42}, 0.5
	if filetest.Long() {
		steps, seeds, gain = 3000, []uint64{42, 1, 2}, 1.5
	}
	open := skyScene(t, true)
	shell := open.withShell(t)
	var missing float64
	for _, seed := range seeds {
		trained := func(s *driftScene) float64 {
			cfg := passerConfig(steps)
			cfg.Seed, cfg.MaxSplats = seed, 3500
			psnr, _ := s.trainedPSNR(t, d, s.train, cfg)
			return psnr
		}
		with, without := trained(shell), trained(open)
		t.Logf("seed %d: held-out PSNR %.2f dB with a far shell, %.2f dB without", seed, with, without)
		if with < without+gain {
			t.Errorf("the shell brings %.2f dB, want %g", with-without, gain)
		}
		if filetest.Long() {
			under := trained(skyScene(t, false))
			t.Logf("under a dome %.2f dB", under)
			missing += (under - with) / float64(len(seeds))
		}
	}
	if missing > 0.75 { // 0.51 by three seeds
		t.Errorf("the shell is %.2f dB short of a dome, in the mean", missing)
	}
}

// TestShellResumed: a run that is resumed goes on with the far shell that it began with, which no option says anew, and
// gives the bytes of the undisturbed run. Without the shell it gives others.
func TestShellResumed(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg, run := checkpointScene(t)
	m := recipe.MCMC()
	cfg.Iterations, cfg.Strategy, cfg.NoiseLR, cfg.ScaleReg, cfg.ResetEvery = 12, m.Strategy, m.NoiseLR, m.ScaleReg, 0
	distances := make([]float64, init.N)
	for i := range distances {
		distances[i] = geom.Length([3]float64{float64(init.Means[3*i]), float64(init.Means[3*i+1]),
			float64(init.Means[3*i+2])})
	}
	half := filepath.Join(t.TempDir(), "half")
	trained := func(shell float64) string {
		tr := must.Get(trainWith(d, views, init, scale, cfg, TrainerOptions{Shell: shell}))(t)
		defer tr.Close()
		tr.SetRun(run)
		must.Do(t, tr.RunTo(t.Context(), 6, nil))
		mustSave(t, tr, half)
		return endHash(t, tr)
	}
	without := trained(0)
	with := trained(scene.Median(distances) / shellFrom) // half of the splats are of the shell
	if with == without {
		t.Error("a shell changes nothing: the test proves too little")
	}
	tr := resumed(t, d, half, cfg)
	defer tr.Close()
	if got := endHash(t, tr); got != with {
		t.Error("a run that is resumed ends with other bytes")
	}
}
