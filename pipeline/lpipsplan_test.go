package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/metric"
)

// TestLPIPSPlan draws and compares pictures of two sizes in as little device memory as the refusal of less says is enough.
func TestLPIPSPlan(t *testing.T) {
	s, cams := renderViews(t)
	cams = []scene.Camera{cams[0].Rescaled(160, 120), cams[1].Rescaled(90, 120), cams[0].Rescaled(20, 20)}
	net := metric.LPIPSAlex
	_, err := budgetDevice(t, 1<<20).PlanLPIPS(net, s.N, s.Degree, cams, "")
	if !IsShortage(err) || !strings.Contains(err.Error(), "there are 1.0 MiB") {
		t.Fatalf("in 1 MiB: %v", err)
	}
	var enough int64
	if _, err := fmt.Sscanf(fault.Hint(err), "Raise max-vram to %dMiB or more", &enough); err != nil {
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
	l := newTestLPIPS(t, d, madeLPIPS(net), LPIPSOptions{Normalize: true})
	if err := l.Reserve(cams, beside); err != nil {
		t.Fatal(err)
	}
	held := l.buffers
	r, err := NewRenderer(d, s, cams, RenderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ample := newTestLPIPS(t, testDevice(t), madeLPIPS(net), LPIPSOptions{Normalize: true})
	for round := range 2 {
		for _, c := range cams[:2] {
			picture, err := r.RenderInto(nil, c)
			if err != nil {
				t.Fatal(err)
			}
			black := make([]float32, len(picture))
			if got, want := score(t, l, picture, black, c.Width, c.Height), score(t, ample, picture, black, c.Width, c.Height); got != want || got == 0 {
				t.Errorf("round %d, %dx%d: %v, with much memory %v", round, c.Width, c.Height, got, want)
			}
		}
	}
	if l.buffers != held {
		t.Error("what was reserved is not what pictures were compared in")
	}
	if beside, err := d.PlanLPIPS(net, 0, 0, cams, ""); err != nil || beside != 0 {
		t.Errorf("pictures that are there: %d bytes beside, %v", beside, err)
	}
}
