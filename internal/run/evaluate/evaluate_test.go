package evaluate

import (
	"io"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/results"
	"vksplat/scene/scenetest"
)

func TestBestInBold(t *testing.T) {
	known := func(name string, v float64) results.Score { return results.Score{Name: name, Value: v, Known: true} }
	for _, c := range []struct {
		row  []results.Score
		want string
	}{
		{[]results.Score{known("PSNR", 20), known("PSNR", 21), known("PSNR", 21)}, "20.000 **21.000** 21.000"},
		{[]results.Score{known("LPIPS", 0.2), {Name: "LPIPS"}, known("LPIPS", 0.1)}, "0.2000 n/a **0.1000**"},
		{[]results.Score{{Name: "SSIM"}, {Name: "SSIM"}}, "n/a n/a"},
	} {
		if got := strings.Join(bestInBold(c.row), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestUnmeasured wants tables without scores that nothing has, and n/a where only some have one.
func TestUnmeasured(t *testing.T) {
	var text strings.Builder
	job := func(lpips bool) *Job {
		j := &Job{console: cli.New(nil, &text, io.Discard), scorer: &Scorer{Protocol: ProtocolOf(ProtocolGsplat)}}
		j.Result.Views = []results.ViewScores{{Name: "cabin/a |b.png", Scores: []results.Score{
			{Name: "PSNR", Value: 20, Known: true}, {Name: "LPIPS", Value: 0.25, Known: lpips}, {Name: "SSIM"}}}}
		return j
	}
	for _, c := range []struct {
		print      func()
		lpips, gap bool
	}{
		{func() { printResult(job(false).console, job(false)) }, false, false},
		{func() { printResult(job(true).console, job(true)) }, true, false},
		{func() { printComparison(job(true).console, []*Job{job(false), job(false)}) }, false, false},
		{func() { printComparison(job(true).console, []*Job{job(false), job(true)}) }, true, true},
	} {
		text.Reset()
		c.print()
		said := text.String()
		if strings.Contains(said, "LPIPS ()") != c.lpips || strings.Contains(said, "n/a: not") != c.gap ||
			strings.Contains(said, " n/a |") != c.gap || strings.Contains(said, "SSIM ()") ||
			!strings.Contains(said, "20.000") {
			t.Errorf("LPIPS %v, n/a %v:\n%s", c.lpips, c.gap, said)
		}
	}
}

func TestMarkdownTable(t *testing.T) {
	table := &MarkdownTable{}
	table.Add("view", "PSNR")
	table.Add("a|b.jpg", "20.5")
	const want = "| view     | PSNR |\n|----------|-----:|\n| a\\|b.jpg | 20.5 |\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestNearestInTable wants a held-out view to be as far as from the views that its run trained on, whichever are
// measured, and the table to say so.
func TestNearestInTable(t *testing.T) {
	capture := scenetest.Ring(5, 1)
	names := []string{capture.Cameras[1].Name, capture.Cameras[2].Name}
	far := scene.NearestTo(slices.Delete(slices.Clone(capture.Cameras), 1, 3), capture.Cameras)
	for _, c := range []struct {
		rec  *captured.Record
		want scene.Nearest
	}{
		{&captured.Record{HeldOut: names}, far[names[0]]},
		{nil, scene.NearestTo(slices.Delete(slices.Clone(capture.Cameras), 1, 2), capture.Cameras)[names[0]]},
		{&captured.Record{HeldOut: names[1:]}, scene.Nearest{}}, // it was trained on
	} {
		var text strings.Builder
		j := &Job{console: cli.New(nil, &text, io.Discard), capture: capture, cams: capture.Cameras[1:2], rec: c.rec}
		j.o.Protocol = ProtocolGsplat
		j.setScorer()
		j.setNearest([]int{1})
		if n := j.Result.Nearest[names[0]]; n != c.want {
			t.Errorf("%+v, want %+v", n, c.want)
		}
		j.Result.Views = []results.ViewScores{{Name: names[0]}}
		printResult(j.console, j)
		for _, want := range []string{" nearest_degrees | nearest_distance |", "nearest_: the least angle"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%q is missing:\n%s", want, &text)
			}
		}
		text.Reset()
		j.Result.Nearest = nil // with --split train
		if printResult(j.console, j); strings.Contains(text.String(), "nearest") {
			t.Errorf("there is no nearest view:\n%s", &text)
		}
	}
}
