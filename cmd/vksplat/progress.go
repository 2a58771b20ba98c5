package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"vksplat/pipeline"
)

// Kinds of progress.
const (
	progressAuto  = "auto"  // a bar on a terminal, plain lines elsewhere
	progressBar   = "bar"   // a line that is drawn again and again
	progressPlain = "plain" // a line every few seconds
	progressJSON  = "json"  // a JSON object a line, every second
	progressNone  = "none"
)

const (
	redrawEvery = 100 * time.Millisecond // of the bar
	linesEvery  = 5 * time.Second        // between plain lines
	jsonEvery   = time.Second            // between JSON lines
	firstLine   = time.Second            // until the first plain line
	rateWindow  = 2 * time.Second        // over which steps per second are taken
	rateMemory  = 0.7                    // weight of the windows before in the rate
	lossMemory  = 0.95                   // weight of the past in the loss that is shown; single views differ a lot
	barWidth    = 24                     // characters of the bar, on a terminal that is wide enough
	plainWidth  = 80                     // characters of a terminal that does not tell its width
)

// progress shows how training goes. It only looks at the clock on most steps.
type progress struct {
	w     io.Writer
	text  *sync.Mutex // guards w and open
	how   string      // never auto
	width func() int
	use   func() deviceUse // asked for JSON lines
	spent func() float64   // seconds of training; likewise
	total int              // steps, or pictures
	draws bool             // pictures are drawn, of which there is no loss

	shown, mark time.Time // of the last output, of the rate's window
	markStep    int
	rate        float64 // steps per second, 0 while unknown
	loss        float64 // smoothed
	last        pipeline.Progress
	drawn       int  // step of the last output, 0 for none
	said        bool // there was an output
	open        bool // a bar's line has no end yet
	done, of    int  // parts of the picture in hand, where it has several
}

// newProgress shows the steps from on, up to total, on w.
func newProgress(w io.Writer, how string, from, total int) *progress {
	now := time.Now()
	p := &progress{w: w, text: &sync.Mutex{}, how: how, total: total, shown: now, mark: now, markStep: from, loss: math.NaN(), width: func() int { return plainWidth }, use: func() deviceUse { return deviceUse{} }, spent: func() float64 { return 0 }}
	f, isFile := fileOf(w)
	if isFile {
		p.width = func() int { return terminalWidth(f) }
	}
	if how == progressAuto {
		p.how = progressPlain
		if isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
			p.how = progressBar
		}
	}
	return p
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
		p.observe(float64(now.Step-p.markStep) / d.Seconds())
		p.mark, p.markStep = t, now.Step
	}
	if t.Sub(p.shown) >= p.every() {
		p.shown = t
		p.draw()
	}
}

// part is called after every part of the picture in hand, which has so many: one that is drawn in bands may take minutes.
func (p *progress) part(done, of int) {
	p.done, p.of = done, of
	if done == of || of < 2 {
		p.done, p.of = 0, 0 // update follows
		return
	}
	if t := time.Now(); t.Sub(p.shown) >= p.every() {
		p.shown = t
		p.draw()
	}
}

// partText says how far the picture in hand is, "" where it is drawn at once.
func (p *progress) partText() string {
	if p.of == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d/%d of the next", p.done, p.of)
}

// partShare is how much of the picture in hand is done.
func (p *progress) partShare() float64 { return float64(p.done) / float64(max(p.of, 1)) }

// observe takes in the rate of a window.
func (p *progress) observe(rate float64) {
	if p.rate > 0 {
		rate = rateMemory*p.rate + (1-rateMemory)*rate
	}
	p.rate = rate
}

// every is the time between two outputs.
func (p *progress) every() time.Duration {
	switch {
	case p.how == progressBar:
		return redrawEvery
	case p.how == progressJSON:
		return jsonEvery
	case p.how == progressNone:
		return math.MaxInt64
	case !p.said:
		return firstLine
	}
	return linesEvery
}

// draw prints the state of the last step.
func (p *progress) draw() {
	p.text.Lock()
	defer p.text.Unlock()
	p.drawn, p.said = p.last.Step, true
	switch p.how {
	case progressBar:
		// Return to the line's start and erase what is right of the text.
		_, _ = fmt.Fprintf(p.w, "\r%s\x1b[K", p.bar())
		p.open = true
	case progressPlain:
		if p.draws {
			_, _ = fmt.Fprintf(p.w, "picture %d/%d%s  ETA %s\n", p.last.Step, p.total, p.partText(), p.eta())
			return
		}
		_, _ = fmt.Fprintf(p.w, "step %d/%d  loss %.5f  %s  %s  ETA %s\n", p.last.Step, p.total, p.loss, count(p.last.Splats, "splat"), rateText(p.rate), p.eta())
	case progressJSON:
		writeLine(p.w, p.line())
	}
}

// bar draws as much of the state as the terminal is wide.
func (p *progress) bar() string {
	share := (float64(p.last.Step) + p.partShare()) / float64(max(p.total, 1))
	parts := []string{fmt.Sprintf("%3.0f%%", math.Floor(100*share)), fmt.Sprintf("%d/%d", p.last.Step, p.total) + p.partText(), "ETA " + p.eta()}
	if !p.draws {
		parts = append(parts, rateText(p.rate), fmt.Sprintf("loss %.4f", p.loss), count(p.last.Splats, "splat"))
	}
	width := p.width() - 1 // the last column would wrap on some terminals
	line := parts[0]
	if width >= plainWidth-1 {
		full := int(share * barWidth)
		line = "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "] " + line
	}
	for _, s := range parts[1:] {
		if len(line)+2+len(s) > width {
			break
		}
		line += "  " + s
	}
	return line
}

// interrupt shows the last step and ends the line of a bar. What happens until
// resume is no training and does not count for the rate.
func (p *progress) interrupt() {
	if p.last.Step > p.drawn {
		p.draw()
	}
	p.text.Lock()
	defer p.text.Unlock()
	p.EndLine()
}

// EndLine ends the line of a bar: the next one is drawn below. The lock must be held.
func (p *progress) EndLine() {
	if p.open {
		_, _ = fmt.Fprintln(p.w)
		p.open = false
	}
}

// resume goes on after interrupt.
func (p *progress) resume() { p.mark, p.markStep = time.Now(), max(p.markStep, p.last.Step) }

// etaSeconds returns the time that is left at the present rate, NaN while that is unknown.
func (p *progress) etaSeconds() float64 {
	left := max(0, float64(p.total-p.last.Step)-p.partShare())
	switch share := p.partShare(); {
	case p.rate > 0:
		return left / p.rate
	case share > 0: // of the first picture
		return left / share * time.Since(p.mark).Seconds()
	}
	return math.NaN()
}

func (p *progress) eta() string {
	if s := p.etaSeconds(); !math.IsNaN(s) {
		return durationText(s)
	}
	return "?"
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

// line is the state of the last step for --progress json.
func (p *progress) line() stepLine {
	use := p.use()
	return stepLine{Event: eventStep, Step: p.last.Step, Total: p.total, Loss: rounded(p.last.Loss), L1: rounded(p.last.L1), SSIM: rounded(p.last.SSIM),
		PSNR: rounded(psnrOf(float64(p.last.MSE))), Splats: p.last.Splats, Visible: p.last.Visible, Isects: p.last.Isects, Downscales: p.last.Level,
		Rate: rounded(p.rate), ETA: rounded(p.etaSeconds()), DeviceBytes: use.bytes, DeviceBusy: use.busy(p.rate), RSSBytes: peakRSS(), Seconds: rounded(p.spent())}
}
