package merge

import (
	"slices"
	"strings"
	"testing"

	"vksplat/internal/run/captured"
	"vksplat/internal/run/plans"
)

// TestFinetuneArgs wants the merged scene to be trained by the published recipe, which keeps its splats, whatever
// recipe its blocks had.
func TestFinetuneArgs(t *testing.T) {
	plan := &plans.Plan{Dir: "city", Capture: captured.Source{Scene: "photos"}, Origin: [3]float64{1, 2, 0}}
	m := &merger{plan: plan, Options: &Options{Finetune: 7, Overwrite: true, DeviceFlags: []string{"--device=1"},
		SourceFlags: func(*captured.Source, string) []string { return []string{"--downscale=2"} }}}
	m.report.Degree, m.report.Model, m.record.Background = 2, "out/model.ply", [3]float32{0, 0, 1}
	want := []string{"train", "photos", "-m", "city/finetuned", "--preset=3dgs", "--init=ply:city/out/model.ply",
		"--iterations=7", "--sh-degree=2", "--sh-degree-interval=1", "--refine-every=0",
		"--lr-means=1.6000000000000001e-06", "--lr-means-final=1", "--background=0,0,1", "--origin=1,2,0",
		"--test-list=held_out.txt", "--downscale=2", "--device=1", "--overwrite"}
	if got := m.finetuneArgs("held_out.txt"); !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), strings.Join(want, " "))
	}
	m.Overwrite = false
	for _, arg := range m.finetuneArgs("") {
		if strings.HasPrefix(arg, "--test-list") || arg == "--overwrite" {
			t.Errorf("%s is given", arg)
		}
	}
}
