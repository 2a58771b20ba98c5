package recipe

import "testing"

// TestResolve wants the strongest layer to win, each value to know its origin, and what was asked for to be known
// whatever a stronger layer made of it.
func TestResolve(t *testing.T) {
	r := Resolve(Default(),
		Layer{FromPreset, Given(map[string]any{"iterations": 7000, "refine-stop": 6000, "sh_degree": 2})},
		Layer{FromFile, Given(map[string]any{"refine_stop": 5000, "eval": nil})},
		Layer{FromCaller, Given(map[string]any{"seed": uint64(7)})},
		Layer{}, Stretched(0.5), Stretched(2),
		Layer{FromCapture, Given(map[string]any{"refine_stop": 100})})
	c := &r.Config
	if c.Iterations != 7000 || c.RefineStop != 100 || c.SHDegree != 2 || c.Seed != 7 || c.RefineEvery != 100 {
		t.Errorf("%+v", c)
	}
	if r.Written.RefineStop != 5000 || r.Written.Iterations != 7000 {
		t.Errorf("written were %d of %d steps", r.Written.RefineStop, r.Written.Iterations)
	}
	for name, want := range map[string][2]Origin{"iterations": {FromPreset, FromDefault},
		"refine-stop": {FromCapture, FromFile}, "eval": {FromFile, FromFile}, "seed": {FromCaller, FromCaller},
		"near": {FromDefault, FromDefault}} {
		if r.Origin(name) != want[0] || r.ChosenBy(name) != want[1] || r.Chosen(name) != (want[1] != FromDefault) {
			t.Errorf("%s is from %v, chosen by %v, want %v", name, r.Origin(name), r.ChosenBy(name), want)
		}
	}
}

// TestMayChange lets a factor change what was not asked for, and what a file gave if the factor itself was asked for.
func TestMayChange(t *testing.T) {
	file := Layer{FromFile, Given(map[string]any{"refine_stop": 5000})}
	caller := Layer{FromCaller, Given(map[string]any{"refine_stop": 5000})}
	factor := Layer{FromCaller, Given(map[string]any{StepsFactor: nil})}
	for i, tt := range []struct {
		layers []Layer
		want   bool
	}{{nil, true}, {[]Layer{file}, false}, {[]Layer{file, factor}, true}, {[]Layer{caller, factor}, false}} {
		if got := Resolve(Default(), tt.layers...).MayChange(StepsFactor, "refine_stop"); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
