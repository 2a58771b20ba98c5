package pipeline

import (
	"errors"
	"os"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// TestSetOpacities hides splats of a model: every picture is that of the model without them, and with all of them again
// that of the whole, also where the device holds a part of the model at a time.
func TestSetOpacities(t *testing.T) {
	s, cams := cityModel(t, 60_000)
	cams = cams[:2]
	var kept []int
	drawn := slices.Clone(s.LogitOpacities)
	for i := range s.N {
		if i%3 == 1 || i > 50_000 {
			drawn[i] = HiddenLogit
		} else {
			kept = append(kept, i)
		}
	}
	whole, _ := drawAll(t, DeviceOptions{}, s, cams, RenderConfig{})
	rest, _ := drawAll(t, DeviceOptions{}, s.Take(kept), cams, RenderConfig{})
	for _, memory := range []string{"", "12M"} {
		d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: memory})
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRenderer(d, s, cams[:1], RenderConfig{Looks: true})
		if err != nil {
			t.Fatal(errors.Join(err, d.Close()))
		}
		if r.Shared() != (memory != "") {
			t.Errorf("memory %q: all splats are on the device: %v", memory, !r.Shared())
		}
		check := func(what string, c *scene.Camera, want []float32) {
			got := must.Get(r.Show(nil, *c, LookColor))(t)
			for i := range len(got) / 3 {
				if !slices.Equal(got[3*i:3*i+3], want[4*i:4*i+3]) {
					t.Fatalf("memory %q, %s: pixel %d is %v, want %v", memory, what, i, got[3*i:3*i+3], want[4*i:4*i+3])
				}
			}
		}
		for i := range cams {
			check("before", &cams[i], whole[i].Color)
		}
		for _, step := range []struct {
			what   string
			logits []float32
			all    bool
		}{{"hidden", drawn, false}, {"shown again", s.LogitOpacities, true}} {
			must.Do(t, r.SetOpacities(step.logits))
			for i := range cams {
				if !step.all {
					check(step.what, &cams[i], rest[i].Color)
				} else {
					check(step.what, &cams[i], whole[i].Color)
				}
			}
		}
		if err := r.SetOpacities(drawn[:10]); err == nil {
			t.Error("ten opacities for the whole model are taken")
		}
		must.Do(t, errors.Join(r.Close(), d.Close()))
	}
}
