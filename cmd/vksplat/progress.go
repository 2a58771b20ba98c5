package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/term"

	"vksplat/pipeline"
)

const (
	redrawEvery = 100 * time.Millisecond // of the line on a terminal
	linesEvery  = 5 * time.Second        // between plain lines elsewhere
	firstLine   = time.Second            // until the first of them
	rateWindow  = 2 * time.Second        // over which steps per second are taken
	lossMemory  = 0.95                   // weight of the past in the loss that is shown; single views differ a lot
)

// progress shows how training goes: a line that is redrawn on a terminal, plain
// lines anywhere else. It only looks at the clock on most steps.
type progress struct {
	w        io.Writer
	terminal bool
	total    int // steps

	shown, mark time.Time // of the last output, of the rate's window
	markStep    int
	rate        float64 // steps per second, 0 while unknown
	loss        float64 // smoothed
	last        pipeline.Progress
	drawn       int // step of the last output, 0 for none
}

func newProgress(w io.Writer, total int) *progress {
	now := time.Now()
	return &progress{w: w, terminal: isTerminal(w), total: total, shown: now, mark: now, loss: math.NaN()}
}

// isTerminal reports whether w is a terminal that understands a redrawn line.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// update is called after every step.
func (p *progress) update(now pipeline.Progress) {
	p.last = now
	if math.IsNaN(p.loss) {
		p.loss = float64(now.Loss)
	}
	p.loss += (1 - lossMemory) * (float64(now.Loss) - p.loss)
	t := time.Now()
	if d := t.Sub(p.mark); d >= rateWindow || p.rate == 0 && now.Step > p.markStep && d > 0 {
		p.rate = float64(now.Step-p.markStep) / d.Seconds()
		p.mark, p.markStep = t, now.Step
	}
	every := linesEvery
	switch {
	case p.terminal:
		every = redrawEvery
	case p.drawn == 0:
		every = firstLine
	}
	if t.Sub(p.shown) >= every {
		p.shown = t
		p.draw()
	}
}

// draw prints the state of the last step.
func (p *progress) draw() {
	text := fmt.Sprintf("step %d/%d  loss %.5f  %s  %s  ETA %s", p.last.Step, p.total, p.loss, count(p.last.Splats, "splat"), rateText(p.rate), p.eta())
	p.drawn = p.last.Step
	if p.terminal {
		// Return to the line's start and erase what is right of the text.
		_, _ = fmt.Fprintf(p.w, "\r%s\x1b[K", text)
		return
	}
	_, _ = fmt.Fprintln(p.w, text)
}

// finish prints the last state and ends the line.
func (p *progress) finish() {
	if p.last.Step > p.drawn {
		p.draw()
	}
	if p.terminal && p.drawn > 0 {
		_, _ = fmt.Fprintln(p.w)
	}
}

// eta returns the time that is left, at the present rate.
func (p *progress) eta() string {
	if p.rate <= 0 {
		return "?"
	}
	return durationText(float64(p.total-p.last.Step) / p.rate)
}

func rateText(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.2f steps/s", perSecond)
	}
	return fmt.Sprintf("%.0f steps/s", perSecond)
}

// count prints a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// durationText prints seconds as 42s, 3m05s or 2h07m.
func durationText(seconds float64) string {
	s := int(math.Round(seconds))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
}

// bytesText prints a number of bytes as people read it.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	if u == 0 || x >= 100 {
		return fmt.Sprintf("%.0f %s", x, units[u])
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}
