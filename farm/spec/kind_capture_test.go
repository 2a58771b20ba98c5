package spec

import (
	"strings"
	"testing"

	"vksplat/internal/fault"
)

// TestCapture plans captures that others train on, and refuses keys that contradict each other, where they stand.
func TestCapture(t *testing.T) {
	j, p, err := planOf(head + `
[[task]]
kind = "capture"
id = "scene"
masks = "masks"
matrix.source = ["walk.mp4", "photos"]
[[task]]
kind = "train"
source = "@scene"
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(compiled(t), j); err != nil {
		t.Errorf("the schema refuses it: %v", err)
	}
	if len(p.Tasks) != 4 || p.Tasks[0].Masks.Key != "masks" || p.Tasks[2].Source.Tasks[0] != 0 ||
		p.Tasks[3].Source.Tasks[0] != 1 {
		t.Errorf("the tasks are %+v", p.Tasks)
	}
	for _, test := range []struct {
		keys, text, hint string
		line             int
	}{
		{"source = \"p\"\nfps = 2\nframes = 20", "fps and frames exclude each other", "give one", 7},
		{"source = \"p\"\nmapper = \"own\"", "have no device", "leave it out", 6},
		{"source = \"p\"\nloops = true", "unknown key \"loops\"", "leave it out", 6},
		{"source = \"p\"\nvocab_tree = \"t\"", "unknown key \"vocab_tree\"", "leave it out", 6},
		{"source = \"p\"\ncamera_model = \"OPENCB\"", "is not one of", "OPENCV", 6},
		{"source = \"@capture\"", "cycle", "", 5},
		{"source = \"@made\"\n[[task]]\nkind = \"demo\"\nid = \"made\"", "made makes a capture", "makes pictures", 5},
	} {
		_, _, err := planOf(head + "[[task]]\nkind = \"capture\"\n" + test.keys)
		if err == nil || !strings.Contains(err.Error(), test.text) || lineIn(err) != test.line ||
			!strings.Contains(fault.Hint(err), test.hint) {
			t.Errorf("%s: %v; %s", test.keys, err, fault.Hint(err))
		}
	}
}
