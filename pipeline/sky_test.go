package pipeline

import (
	"testing"

	"vksplat/internal/filetest"
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
	train, _ := c.Split(8)
	found, err := sky.Find(t.Context(), &c, train)
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
	steps, seeds, gain := 600, []uint64{42}, 1.0
	if filetest.Long() {
		steps, seeds, gain = 3000, []uint64{42, 1, 2}, 2.5
	}
	dome, open := skyScene(t, false), skyScene(t, true)
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
			under := trained(dome)
			t.Logf("under a dome %.2f dB", under)
			missing += (under - with) / float64(len(seeds))
		}
	}
	if missing > 0.5 {
		t.Errorf("the shell is %.2f dB short of a dome, in the mean", missing)
	}
}
