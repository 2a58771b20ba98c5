package meter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"vksplat/pipeline"
)

func TestPeakRSS(t *testing.T) {
	if got := PeakRSS(); got < 1<<20 || got > 1<<40 {
		t.Errorf("%d bytes", got)
	}
}

// TestProgressLines wants few plain lines where there is no terminal, the last
// step among them once, and no allocation on steps that print nothing.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, Auto, 0, 1000)
	for step := 1; step <= 1000; step++ {
		p.Update(pipeline.Progress{Step: step, Loss: 0.25, Splats: 77})
	}
	if n := testing.AllocsPerRun(10, func() { p.Update(p.Last) }); n != 0 {
		t.Errorf("%g allocations per step", n)
	}
	p.Interrupt()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "step 1000/1000  loss 0.25000  77 splats  ") ||
		!strings.HasSuffix(lines[0], "ETA 0s") {
		t.Errorf("printed %q", lines)
	}
}

// TestProgressOfPictures wants of a command that draws its pictures and no loss.
func TestProgressOfPictures(t *testing.T) {
	for _, how := range []string{Plain, Bar} {
		var out bytes.Buffer
		p := New(&out, how, 0, 3)
		p.Draws = true
		for i := range 3 {
			p.Update(pipeline.Progress{Step: i + 1})
		}
		p.Interrupt()
		want := map[string]string{Plain: "picture 3/3  ETA 0s\n", Bar: "] 100%  3/3  ETA 0s\x1b[K\n"}[how]
		if text := out.String(); !strings.HasSuffix(text, want) || strings.Contains(text, "loss") ||
			strings.Contains(text, "splat") {
			t.Errorf("%s: printed %q", how, text)
		}
	}
}

// TestProgressOfParts wants to see how far a large picture is, of which nothing is done before a minute has gone.
func TestProgressOfParts(t *testing.T) {
	for _, how := range []string{Plain, Bar} {
		var out bytes.Buffer
		p := New(&out, how, 0, 2)
		p.Draws = true
		p.Part(1, 4)
		if out.Len() > 0 {
			t.Errorf("%s: printed %q at once", how, &out)
		}
		p.shown = p.shown.Add(-20 * time.Second)
		p.mark = p.shown
		p.Part(2, 4)
		if want := "0/2 and 2/4 of the next  ETA 1m00s"; !strings.Contains(out.String(), want) {
			t.Errorf("%s: printed %q, want %q", how, &out, want)
		}
		out.Reset()
		p.shown = p.shown.Add(-20 * time.Second)
		p.Part(1, 1) // a picture that is drawn at once
		p.Part(4, 4)
		p.Update(pipeline.Progress{Step: 1})
		if text := out.String(); strings.Contains(text, "next") || !strings.Contains(text, "1/2  ETA ") {
			t.Errorf("%s: printed %q of a whole picture", how, text)
		}
	}
}

// stepAt is the progress of a step that a meter shows.
func stepAt(n int) pipeline.Progress {
	return pipeline.Progress{Step: n, Loss: float32(n), MSE: 0.01, Splats: 100 + n}
}

func TestProgressKinds(t *testing.T) {
	show := func(how string, width int) string {
		var b bytes.Buffer
		p := New(&b, how, 0, 400)
		p.Width = func() int { return width }
		p.Rate = 2
		p.Update(stepAt(100))
		p.Interrupt()
		return b.String()
	}
	if got := show(None, 80); got != "" {
		t.Errorf("none: %q", got)
	}
	for width := range 120 {
		line := strings.TrimPrefix(strings.TrimSuffix(show(Bar, width), "\x1b[K\n"), "\r")
		if len(line) > max(width-1, len(" 25%")) || strings.Contains(line, "\n") {
			t.Errorf("a bar of %d characters on a terminal of %d: %q", len(line), width, line)
		}
	}
	if got, want := show(Bar, 100), "\r[======                  ]  25%  100/400  ETA 2m30s  2.00 steps/s  loss "+
		"100.0000  200 splats\x1b[K\n"; got != want {
		t.Errorf("bar: %q", got)
	}
	var l StepLine
	if err := json.Unmarshal([]byte(show(JSON, 80)), &l); err != nil || l.Step != 100 || l.Total != 400 ||
		float64(l.PSNR) != 20 || float64(l.ETA) != 150 {
		t.Errorf("json: %+v, %v", l, err)
	}
	if got := New(&bytes.Buffer{}, Auto, 0, 1).How; got != Plain {
		t.Errorf("auto is %s where there is no terminal", got)
	}
}

// TestRateLeavesPausesOut wants the time between two stretches of training not to count.
func TestRateLeavesPausesOut(t *testing.T) {
	p := New(&bytes.Buffer{}, None, 0, 1000)
	p.Update(stepAt(1))
	p.Rate = 50
	p.mark = p.mark.Add(-100 * rateWindow) // as if an evaluation had taken that long
	p.Resume()
	p.Update(stepAt(2))
	if p.Rate != 50 {
		t.Errorf("the rate fell to %g", p.Rate)
	}
}

// TestRateAfterResume wants the steps before a resume not to count.
func TestRateAfterResume(t *testing.T) {
	p := New(&bytes.Buffer{}, None, 5000, 10000)
	p.Resume()
	p.mark = p.mark.Add(-rateWindow)
	p.Update(stepAt(5010))
	if p.Rate < 1 || p.Rate > 10/rateWindow.Seconds() {
		t.Errorf("%g steps/s of ten steps in %v", p.Rate, rateWindow)
	}
}

func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{4.2: "4.20 steps/s", 317.4: "317 steps/s"} {
		if got := RateText(rate); got != want {
			t.Errorf("%g is %q, want %q", rate, got, want)
		}
	}
}

// TestRateForgetsTheFirstStep has a first step that compiles kernels: it is no part of the rate of those that follow.
func TestRateForgetsTheFirstStep(t *testing.T) {
	p := New(&bytes.Buffer{}, Plain, 0, 100)
	for i, rate := range []float64{0.1, 100, 200} {
		p.observe(rate)
		if want := []float64{0.1, 100, rateMemory*100 + (1-rateMemory)*200}[i]; p.Rate != want {
			t.Errorf("rate %g after %d, want %g", p.Rate, i+1, want)
		}
	}
}
