package meter

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/pipeline"
)

const (
	Auto  = "auto"  // a bar on a terminal, plain lines elsewhere
	Bar   = "bar"   // a line that is drawn again and again
	Plain = "plain" // a line every few seconds
	JSON  = "json"  // a JSON object a line, every second
	None  = "none"
)

const (
	RedrawEvery = 100 * time.Millisecond // of the bar
	LinesEvery  = 5 * time.Second        // between plain lines
	JsonEvery   = time.Second            // between JSON lines
	firstLine   = time.Second            // until the first plain line
	rateWindow  = 2 * time.Second        // over which steps per second are taken
	rateMemory  = 0.7                    // weight of the windows before in the rate
	lossMemory  = 0.95                   // weight of the past in the loss that is shown; single views differ a lot
	barWidth    = 24                     // characters of the bar, on a terminal that is wide enough

)

// Meter shows how training goes. It only looks at the clock on most steps.
type Meter struct {
	w     io.Writer
	Text  *sync.Mutex // guards w and open
	How   string      // never auto
	Width func() int
	Use   func() DeviceUse // asked for JSON lines
	Spent func() float64   // seconds of training; likewise
	Total int              // steps, or pictures
	Draws bool             // pictures are drawn, of which there is no loss

	shown, mark time.Time // of the last output, of the rate's window
	markStep    int
	Rate        float64 // steps per second, 0 while unknown
	rough       bool    // Rate is that of the first step, which compiles kernels
	loss        float64 // smoothed
	Last        pipeline.Progress
	drawn       int       // step of the last output, 0 for none
	said        bool      // there was an output
	open        bool      // a bar's line has no end yet
	done, of    int       // parts of the picture in hand, where it has several
	reported    time.Time // of the last event
	sent        int       // its step
}

// Kind is how progress is shown on w: Auto depends on whether that is a terminal.
func Kind(w io.Writer, how string) string {
	if how != Auto {
		return how
	}
	if f, isFile := cli.FileOf(w); isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		return Bar
	}
	return Plain
}

// New shows the steps from on, up to total, on w.
func New(w io.Writer, how string, from, total int) *Meter {
	now := time.Now()
	p := &Meter{w: w, Text: &sync.Mutex{}, How: Kind(w, how), Total: total, shown: now, mark: now, markStep: from,
		loss: math.NaN(), Width: func() int { return cli.PlainWidth }, Use: func() DeviceUse { return DeviceUse{} },
		Spent: func() float64 { return 0 }}
	if f, isFile := cli.FileOf(w); isFile {
		p.Width = func() int { return cli.TerminalWidth(f) }
	}
	return p
}

// Update is called after every step.
func (p *Meter) Update(now pipeline.Progress) {
	p.Last = now
	if math.IsNaN(p.loss) {
		p.loss = float64(now.Loss)
	}
	p.loss += (1 - lossMemory) * (float64(now.Loss) - p.loss)
	t := time.Now()
	if d := t.Sub(p.mark); d >= rateWindow || p.Rate == 0 && now.Step > p.markStep && d > 0 {
		p.observe(float64(now.Step-p.markStep) / d.Seconds())
		p.mark, p.markStep = t, now.Step
	}
	p.drawAt(t)
}

// drawAt prints and reports the state where that is due.
func (p *Meter) drawAt(t time.Time) {
	if t.Sub(p.shown) >= p.every() {
		p.shown = t
		p.draw()
	}
	if t.Sub(p.reported) >= JsonEvery {
		p.report(t)
	}
}

// report sends the state to a parent process that listens.
func (p *Meter) report(t time.Time) {
	if child.Reports() {
		p.reported, p.sent = t, p.Last.Step
		child.Report(p.line())
	}
}

// Part is called after every part of the picture in hand, which has so many: one that is drawn in bands may take
// minutes.
func (p *Meter) Part(done, of int) {
	p.done, p.of = done, of
	if done == of || of < 2 {
		p.done, p.of = 0, 0 // update follows
		return
	}
	p.drawAt(time.Now())
}

// partText says how far the picture in hand is, "" where it is drawn at once.
func (p *Meter) partText() string {
	if p.of == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d/%d of the next", p.done, p.of)
}

// partShare is how much of the picture in hand is done.
func (p *Meter) partShare() float64 { return float64(p.done) / float64(max(p.of, 1)) }

// observe takes in the rate of a window.
func (p *Meter) observe(rate float64) {
	if p.Rate > 0 && !p.rough {
		rate = rateMemory*p.Rate + (1-rateMemory)*rate
	}
	p.rough = p.Rate == 0
	p.Rate = rate
}

// every is the time between two outputs.
func (p *Meter) every() time.Duration {
	switch {
	case p.How == Bar:
		return RedrawEvery
	case p.How == JSON:
		return JsonEvery
	case p.How == None:
		return math.MaxInt64
	case !p.said:
		return firstLine
	}
	return LinesEvery
}

// draw prints the state of the last step.
func (p *Meter) draw() {
	p.Text.Lock()
	defer p.Text.Unlock()
	p.drawn, p.said = p.Last.Step, true
	switch p.How {
	case Bar:
		// Return to the line's start and erase what is right of the text.
		_, _ = fmt.Fprintf(p.w, "\r%s\x1b[K", p.bar())
		p.open = true
	case Plain:
		if p.Draws {
			_, _ = fmt.Fprintf(p.w, "picture %d/%d%s  ETA %s\n", p.Last.Step, p.Total, p.partText(), p.eta())
			return
		}
		_, _ = fmt.Fprintf(p.w, "step %d/%d  loss %.5f  %s  %s  ETA %s\n", p.Last.Step, p.Total, p.loss,
			cli.Count(p.Last.Splats, "splat"), RateText(p.Rate), p.eta())
	case JSON:
		cli.WriteLine(p.w, p.line())
	}
}

// bar draws as much of the state as the terminal is wide.
func (p *Meter) bar() string {
	share := (float64(p.Last.Step) + p.partShare()) / float64(max(p.Total, 1))
	parts := []string{fmt.Sprintf("%3.0f%%", math.Floor(100*share)),
		fmt.Sprintf("%d/%d", p.Last.Step, p.Total) + p.partText(), "ETA " + p.eta()}
	if !p.Draws {
		parts = append(parts, RateText(p.Rate), fmt.Sprintf("loss %.4f", p.loss), cli.Count(p.Last.Splats, "splat"))
	}
	width := p.Width() - 1 // the last column would wrap on some terminals
	line := parts[0]
	if width >= cli.PlainWidth-1 {
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

// Interrupt shows the last step and ends the line of a bar. What happens until
// resume is no training and does not count for the rate.
func (p *Meter) Interrupt() {
	if p.Last.Step > p.drawn {
		p.draw()
	}
	if p.Last.Step > p.sent {
		p.report(time.Now())
	}
	p.Text.Lock()
	defer p.Text.Unlock()
	p.EndLine()
}

// EndLine ends the line of a bar: the next one is drawn below. The lock must be held.
func (p *Meter) EndLine() {
	if p.open {
		_, _ = fmt.Fprintln(p.w)
		p.open = false
	}
}

// Resume begins again after Interrupt.
func (p *Meter) Resume() { p.mark, p.markStep = time.Now(), max(p.markStep, p.Last.Step) }

// EtaSeconds returns the time that is left at the present rate, NaN while that is unknown.
func (p *Meter) EtaSeconds() float64 {
	left := max(0, float64(p.Total-p.Last.Step)-p.partShare())
	switch share := p.partShare(); {
	case p.Rate > 0:
		return left / p.Rate
	case share > 0: // of the first picture
		return left / share * time.Since(p.mark).Seconds()
	}
	return math.NaN()
}

func (p *Meter) eta() string {
	if s := p.EtaSeconds(); !math.IsNaN(s) {
		return cli.Duration(s)
	}
	return "?"
}

func RateText(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.2f steps/s", perSecond)
	}
	return fmt.Sprintf("%.0f steps/s", perSecond)
}

// line is the state of the last step for --progress json.
func (p *Meter) line() StepLine {
	use := p.Use()
	return StepLine{Event: EventStep, Step: p.Last.Step, Total: p.Total, Loss: Rounded(p.Last.Loss),
		L1: Rounded(p.Last.L1), SSIM: Rounded(p.Last.SSIM),
		PSNR: Rounded(PsnrOf(float64(p.Last.MSE))), Splats: p.Last.Splats, Visible: p.Last.Visible,
		Isects: p.Last.Isects, Downscales: p.Last.Level,
		Rate: Rounded(p.Rate), ETA: Rounded(p.EtaSeconds()), DeviceBytes: use.Bytes, DeviceBusy: use.Busy(p.Rate),
		RSSBytes: PeakRSS(), Seconds: Rounded(p.Spent())}
}
