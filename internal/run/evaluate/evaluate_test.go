package evaluate

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
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
		{[]results.Score{known("PSNR", 20), known("PSNR", 21), known("PSNR", 21)}, "20.000 **21.000** **21.000**"},
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

// TestNotComparable: of models that were measured on photos of other sizes, on others of the same names, or with other
// masks, none is the best, and a warning says why. Copies of the same photos are the same.
func TestNotComparable(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	was := scene.Camera{Name: "a.png", Width: 64, Height: 48, Path: write("a", "photo")}
	copied, smaller, other, masked := was, was, was, was
	copied.Path, smaller.Width, other.Path, masked.Mask = write("b", "photo"), 32, write("c", "other"), write("m", "mask")
	for _, c := range []struct {
		of   scene.Camera
		warn string
	}{{was, ""}, {copied, ""}, {smaller, "measured on photos of other sizes:"}, {other, "other photos of the same names"},
		{masked, "with other masks:"}} {
		var text, warnings strings.Builder
		console := cli.New(nil, &text, &warnings)
		var jobs []*Job
		for i, cam := range []scene.Camera{was, c.of} {
			j := &Job{console: console, cams: []scene.Camera{cam}}
			j.scorer = &Scorer{Protocol: ProtocolOf(ProtocolGsplat)}
			j.Result.Views = []results.ViewScores{{Name: cam.Name,
				Scores: []results.Score{{Name: "PSNR", Value: float64(20 + i), Known: true}}}}
			jobs = append(jobs, j)
		}
		printComparison(console, jobs)
		if strings.Contains(text.String(), "**") != (c.warn == "") || (warnings.Len() > 0) != (c.warn != "") ||
			!strings.Contains(warnings.String(), c.warn) {
			t.Errorf("%q:\n%s%s", c.warn, &text, &warnings)
		}
	}
}

// TestSameContent compares files to the last byte.
func TestSameContent(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("photo", 1<<14)
	for name, text := range map[string]string{"a": long, "b": long, "c": long[:len(long)-1] + "x",
		"d": long[1:], "none": "", "empty": ""} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for other, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false, "empty": false,
		"absent": false} {
		if got := sameContent(filepath.Join(dir, "a"), filepath.Join(dir, other)); got != want {
			t.Errorf("%s: %v", other, got)
		}
	}
	if !sameContent(filepath.Join(dir, "none"), filepath.Join(dir, "empty")) || sameContent("", dir) ||
		!sameContent("", "") {
		t.Error("files without content differ, or one that is not there is the same")
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

// TestFrameOfTheRun wants a run's model drawn in the frame of its training, whichever photos are measured.
func TestFrameOfTheRun(t *testing.T) {
	capture := scenetest.Ring(12, 1)
	rec := &captured.Record{HeldOut: []string{capture.Cameras[2].Name, capture.Cameras[7].Name}}
	o := NewOptions()
	for _, every := range []int{0, 3} {
		o.TestEvery, o.Given = every, func(flag string) bool { return flag == "test-every" && every > 0 }
		c := *capture
		views, err := o.heldOutViews(&c, rec)
		if train, _ := c.Split(0); err != nil || len(train) != 10 || (every == 3) != (len(views) == 4) {
			t.Errorf("every %d: measured %v in the frame of %v, %v", every, views, train, err)
		}
	}
}

// TestResplit: a run that held out other photos before it was resumed may have been trained on those of today.
func TestResplit(t *testing.T) {
	capture := scenetest.Ring(5, 1)
	capture.HoldOutCameras([]string{capture.Cameras[1].Name})
	j := &Job{capture: capture}
	for _, resplit := range []bool{false, true} {
		rec := &captured.Record{HeldOut: []string{capture.Cameras[1].Name}, Resplit: resplit}
		if on := j.countTrainedOn(rec, []int{1}); on.Known == resplit || on.Views != 0 {
			t.Errorf("resplit %v: %+v", resplit, on)
		}
	}
}

// TestNearestInTable wants the table to say how far a held-out view is from those trained on.
func TestNearestInTable(t *testing.T) {
	for _, held := range [][]int{{1}, {1, 2}, {2}} { // the last leaves the view that is measured among those trained on
		capture := scenetest.Ring(5, 1)
		capture.HeldOut = map[string]bool{}
		for _, i := range held {
			capture.HeldOut[capture.Cameras[i].Name] = true
		}
		var text strings.Builder
		name := capture.Cameras[1].Name
		j := &Job{console: cli.New(nil, &text, io.Discard), capture: capture, cams: capture.Cameras[1:2]}
		j.o.Protocol = ProtocolGsplat
		j.setScorer()
		j.setNearest()
		train, _ := capture.Split(0)
		if n := j.Result.Nearest[name]; n != scene.NearestTo(captured.Pick(capture.Cameras, train), j.cams)[name] ||
			(n == scene.Nearest{}) != (held[0] == 2) {
			t.Errorf("%+v without %v", n, held)
		}
		j.Result.Views = []results.ViewScores{{Name: name}}
		printResult(j.console, j)
		for _, want := range []string{" nearest_degrees | nearest_distance |", "nearest_degrees: angle to the closest"} {
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
