package recipe

import "testing"

// TestResolve wants the strongest layer to win, each value to know its origin, and what was asked for to be known
// whatever a stronger layer made of it.
func TestResolve(t *testing.T) {
	r := Resolve(Default(),
		Given(FromPreset, map[string]any{"iterations": 7000, "refine-stop": 6000, "sh_degree": 2}),
		Given(FromFile, map[string]any{"refine_stop": 5000, "eval": nil}),
		Given(FromCaller, map[string]any{"seed": uint64(7)}),
		nil, Stretched(0.5), Stretched(2),
		Given(FromCapture, map[string]any{"refine_stop": 100}))
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
		if r.Origin(name) != want[0] || r.AskedBy(name) != want[1] || r.Asked(name) != (want[1] != FromDefault) {
			t.Errorf("%s is from %d, asked for by %d, want %v", name, r.Origin(name), r.AskedBy(name), want)
		}
	}
}

// TestMayChange lets a factor change what was not asked for, and what a file gave if the factor itself was asked for.
func TestMayChange(t *testing.T) {
	file := Given(FromFile, map[string]any{"refine_stop": 5000})
	caller := Given(FromCaller, map[string]any{"refine_stop": 5000})
	factor := Given(FromCaller, map[string]any{StepsFactor: nil})
	for i, tt := range []struct {
		layers []Source
		want   bool
	}{{nil, true}, {[]Source{file}, false}, {[]Source{file, factor}, true}, {[]Source{caller, factor}, false}} {
		if got := Resolve(Default(), tt.layers...).MayChange(StepsFactor, "refine_stop"); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
