package train

import (
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// TestAdoptHeldOut wants each of the flags that hold photos out to be the run's where it is not given, and the names of
// its record, for which no list is read, where none is.
func TestAdoptHeldOut(t *testing.T) {
	for _, tt := range []struct {
		given string
		eval  bool
		list  string
		every int
		want  begun
		names bool
	}{
		{"", false, "", 8, begun{Eval: true, TestEvery: 5, TestList: "/list"}, true},
		{"test-every", false, "", 5, begun{Eval: true, TestEvery: 5}, false},
		{"test-every", false, "", 6, begun{Eval: true, TestEvery: 6}, false},
		{"eval", true, "", 8, begun{Eval: true, TestEvery: 5, TestList: "/list"}, true},
		{"eval", false, "", 8, begun{TestEvery: 5}, false},
		{"test-list", true, "/other", 8, begun{Eval: true, TestEvery: 5, TestList: "/other"}, false},
	} {
		r := NewRun(resolved(t, nil, nil), &cli.Console{})
		r.choices.caller[underscored(tt.given)] = nil
		r.Eval, r.TestList, r.TestEvery = tt.eval, tt.list, tt.every
		r.prev.adoptCapture(&begun{Eval: true, TestEvery: 5, TestList: "/list", HeldOut: []string{"a.png"}})
		if r.Eval != tt.want.Eval || r.TestEvery != tt.want.TestEvery || r.TestList != tt.want.TestList ||
			(r.recorded != nil) != tt.names {
			t.Errorf("given %s: held out %v, every %d, list %q, names %q", tt.given, r.Eval, r.TestEvery, r.TestList,
				r.recorded)
		}
	}
}

// TestSmallHeldOut wants a photo that cannot be measured to be refused before the training.
func TestSmallHeldOut(t *testing.T) {
	r := NewRun(resolved(t, nil, nil), &cli.Console{})
	r.Capture = &scene.Capture{Cameras: []scene.Camera{{Name: "a", Width: 40, Height: 30},
		{Name: "b", Width: 11, Height: 11}, {Name: "c", Width: 40, Height: 10}}}
	r.Eval = true
	for test, want := range map[int]string{1: "", 2: "1 of 2 held-out photos have a side of fewer than 11 pixels"} {
		r.Test = []int{0, test}
		err := r.refuseSmall()
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("photo %d: %v", test, err)
		}
	}
	if r.Eval = false; r.refuseSmall() != nil {
		t.Error("it is not measured")
	}
}

// TestMostSplats wants the ceiling of splats to have the range of their number.
func TestMostSplats(t *testing.T) {
	if s := recipe.SettingNamed("max_splats"); s.Range.Most != recipe.SettingNamed("splats").Range.Most {
		t.Errorf("max_splats goes up to %g", s.Range.Most)
	}
}
