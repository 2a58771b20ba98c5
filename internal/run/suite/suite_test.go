package suite

import (
	"errors"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/output"
	"vksplat/scene/results"
)

// Groups of captures have a mean once all of them have; what a run does not know is no number in any table.
func TestSuiteTables(t *testing.T) {
	plan := &Plan{name: "x.toml",
		file:     file{Protocol: evaluate.ProtocolINRIA, Correct: evaluate.ColorNone, Seeds: []int64{1, 2}},
		Captures: []entry{{name: "a"}, {name: "b"}},
		recipes:  []entry{{name: "r"}},
		Means:    []suiteMean{{"both", []string{"a", "b"}}, {"first", []string{"a"}}}}
	run := func(capture string, seed int64, psnr float64) *suiteRun {
		r := &suiteRun{suiteLine: suiteLine{Capture: capture, Recipe: "r", Seeds: []int64{seed}}, plan: plan}
		if psnr > 0 {
			r.Numbers = numbers{"loop_seconds": 4, "splats": 10, "PSNR": psnr, "SSIM": 0.5}
		}
		return r
	}
	runs := []*suiteRun{run("a", 1, 20), run("a", 2, 22), run("b", 1, 0), run("b", 2, 0)}
	res := plan.results(runs)
	if res.Means[0].Numbers["PSNR"] != 21 || len(res.Means[1].Seeds) != 0 {
		t.Errorf("means %+v", res.Means)
	}
	if g := res.Groups[0]; len(g.Missing) != 1 || g.Missing[0] != "b" || len(g.Numbers) > 0 {
		t.Errorf("group with a capture missing: %+v", g)
	}
	if g := res.Groups[1]; g.Numbers["PSNR"] != 21 || len(g.Numbers) != 4 {
		t.Errorf("group: %+v", g)
	}
	runs[2], runs[3] = run("b", 1, 30), run("b", 2, 30)
	text := plan.tables(runs)
	if !strings.Contains(text, "| **both** ") || !strings.Contains(text, "25.500 ") ||
		strings.Contains(text, "0.0000") || strings.Contains(text, "LPIPS (") || strings.Contains(text, "n/a") {
		t.Error(text)
	}
	for i, r := range runs {
		r.Drawn = &results.Drawn{Photos: []string{"64x48", "32x24", "64x48", "64x48"}[i]}
	}
	if text = plan.tables(runs); strings.Count(text, "not comparable") != 1 ||
		!strings.Contains(text, "**a was measured on photos of several sizes, 32x24 and 64x48: ") {
		t.Error(text)
	}
	runs[0].Numbers["LPIPS"] = 0.125
	if text = plan.tables(runs); !strings.Contains(text, "LPIPS (") || !strings.Contains(text, " n/a |") ||
		!strings.Contains(text, "n/a: not measured") {
		t.Error(text)
	}
}

// TestNames refuses names of captures and recipes that cannot be those of folders on some system.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{"con": "device", "nul.txt": "device", "a.": "dot", "a b": "100 letters", "a/b": "slash"} {
		for _, what := range []string{"capture", "recipe"} {
			err := new(Plan).checkName(what, name)
			if err == nil || !strings.Contains(err.Error()+fault.Hint(err), want) {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
}

// TestRecall refuses the run of another list of photos.
func TestRecall(t *testing.T) {
	r := &suiteRun{suiteLine: suiteLine{Out: t.TempDir()}, scene: "scene", settings: []string{"--eval", "--test-list=a.txt"}}
	for list, same := range map[string]bool{"a.txt": true, "b.txt": false} {
		r.record = suiteRecord{Scene: output.Absolute("scene"), Settings: []string{"--eval", "--test-list=" + list}}
		must.Do(t, r.save())
		if err := r.recall(); errors.Is(err, errOtherSettings) == same || same && err != nil {
			t.Errorf("%s: %v", list, err)
		}
	}
}
