package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/lpips"
	"vksplat/scene"
	"vksplat/scene/metric"
)

// madeLPIPS makes up weights of a network that keep features about as large as they are.
func madeLPIPS(net string) *metric.LPIPSWeights {
	w := &metric.LPIPSWeights{Net: net}
	for _, l := range metric.LPIPSLayers(net) {
		var kernels, biases, channels []float32
		if !l.Pool {
			bound := math.Sqrt(6 / float64(l.In*l.Side*l.Side))
			kernels, biases = made(l.Out*l.In*l.Side*l.Side, -bound, bound), made(l.Out, -0.1, 0.1)
		}
		if l.Compared {
			channels = made(l.Out, 0, 2)
		}
		w.Kernels, w.Biases = append(w.Kernels, kernels), append(w.Biases, biases)
		w.Channels = append(w.Channels, channels)
	}
	return w
}

// made returns numbers of [low, high).
func made(n int, low, high float64) []float32 {
	x, random := make([]float32, n), rand.New(rand.NewPCG(1, uint64(n)))
	for i := range x {
		x[i] = float32(low + (high-low)*random.Float64())
	}
	return x
}

func newTestLPIPS(t *testing.T, d *Device, net string) *lpips.Scorer {
	t.Helper()
	l := must.Get(NewLPIPS(d, madeLPIPS(net), lpips.Options{Normalize: true}))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func score(t *testing.T, l *lpips.Scorer, x, y []float32, width, height int) float64 {
	t.Helper()
	s, err := l.Score(x, y, width, height)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	return s
}

// TestLPIPSPlan draws and compares pictures of two sizes in as little device memory as the refusal of less says is
// enough.
func TestLPIPSPlan(t *testing.T) {
	s, cams := renderViews(t)
	cams = []scene.Camera{cams[0].Rescaled(160, 120), cams[1].Rescaled(90, 120), cams[0].Rescaled(20, 20)}
	net := metric.LPIPSAlex
	_, err := budgetDevice(t, 1<<20).PlanLPIPS(net, s.N, s.Degree, cams, "")
	if !IsShortage(err) || !strings.Contains(err.Error(), "there are 1.0 MiB") {
		t.Fatalf("in 1 MiB: %v", err)
	}
	var enough int64
	if _, err := fmt.Sscanf(fault.Hint(err), "raise --max-vram to %dMiB or more", &enough); err != nil {
		t.Fatalf("hint %q: %v", fault.Hint(err), err)
	}
	for _, smaller := range []string{"", "make smaller pictures (--size)"} { // what a command lacks is not hinted at
		_, err := budgetDevice(t, 1<<20).PlanLPIPS(net, 0, 0, cams, smaller)
		if got := strings.Count(fault.Hint(err), "("); got != len(strings.Fields(smaller))/4 {
			t.Errorf("hint %q with %q", fault.Hint(err), smaller)
		}
		_, err = NewRenderer(budgetDevice(t, 1<<20), s, cams, RenderConfig{Smaller: smaller})
		if got := strings.Count(fault.Hint(err), "("); got != len(strings.Fields(smaller))/4 {
			t.Errorf("hint %q with %q", fault.Hint(err), smaller)
		}
	}
	if _, err := budgetDevice(t, enough<<20-1).PlanLPIPS(net, s.N, s.Degree, cams, ""); !IsShortage(err) {
		t.Errorf("with less than %d MiB: %v", enough, err)
	}
	d := budgetDevice(t, enough<<20)
	beside, err := d.PlanLPIPS(net, s.N, s.Degree, cams, "")
	if err != nil || beside == 0 {
		t.Fatalf("in %d MiB: %d bytes beside, %v", enough, beside, err)
	}
	l := newTestLPIPS(t, d, net)
	must.Do(t, l.Reserve(cams, beside))
	held := l.Buffers
	r := must.Get(NewRenderer(d, s, cams, RenderConfig{}))(t)
	defer r.Close()
	ample := newTestLPIPS(t, testDevice(t), net)
	for round := range 2 {
		for _, c := range cams[:2] {
			picture := must.Get(r.RenderInto(nil, c))(t)
			black := make([]float32, len(picture))
			held := d.dev.Stats().InUse
			got := score(t, l, picture, black, c.Width, c.Height)
			if now := d.dev.Stats().InUse; now != held {
				t.Errorf("comparing %dx%d pixels took %d bytes beside what was reserved", c.Width, c.Height, now-held)
			}
			if want := score(t, ample, picture, black, c.Width, c.Height); got != want || got == 0 {
				t.Errorf("round %d, %dx%d: %v, with much memory %v", round, c.Width, c.Height, got, want)
			}
		}
	}
	if l.Buffers != held {
		t.Error("what was reserved is not what pictures were compared in")
	}
	if beside, err := d.PlanLPIPS(net, 0, 0, cams, ""); err != nil || beside != 0 {
		t.Errorf("pictures that are there: %d bytes beside, %v", beside, err)
	}
}
