package capture

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/reconstruct"
)

// progress shows how far a stage is: one line that is drawn again and again on a terminal, a line every few seconds
// elsewhere, or JSON for programs.
type progress struct {
	w     io.Writer
	text  *sync.Mutex // guards w and open
	how   string      // of package meter, never auto
	name  string
	shown time.Time
	open  bool
	sent  time.Time // of the last event
	began time.Time // of what is counted; zero if parts take unequal, unknown times
	watch Watcher   // nil: there is none
}

// Watcher is shown how far the search for cameras is, on the goroutine that searches.
type Watcher interface {
	Stage(s *Stage)
	// Growing is reconstruct.Growing.
	Growing(look func() *reconstruct.Sketch, last bool)
}

// redrawEvery is how often the line on a terminal is drawn.
const redrawEvery = 200 * time.Millisecond

// newProgress shows progress on w, in a way of package meter.
func newProgress(console *cli.Console, w io.Writer, how string) *progress {
	p := &progress{w: w, how: meter.Kind(w, how)}
	p.text = console.Follow(p)
	return p
}

func (p *progress) begin(name string) {
	p.name, p.shown, p.sent, p.began = name, time.Time{}, time.Time{}, time.Now()
	if p.how == meter.Plain {
		p.shown = time.Now()
	}
	p.update(0, 0, "...")
}

// Stage is a line of JSON: how far a stage is. Keys may be added; these stay.
type Stage struct {
	Event string `json:"event"` // meter.EventStep
	Name  string `json:"stage"`
	Step  int    `json:"step"`  // photos, frames, or parts of the work, that are done
	Total int    `json:"total"` // 0: not known

	ETA  meter.Rounded `json:"eta_s"`          // null while unknown
	Text string        `json:"text,omitempty"` // for people, to a parent process and a Watcher
	Done bool          `json:"done,omitempty"` // and Text says what came of it; to a Watcher
}

// eta is how long the stage takes yet, in seconds, NaN while that is unknown.
func (p *progress) eta(done, of int) float64 {
	if done == 0 || of == 0 || p.began.IsZero() {
		return math.NaN()
	}
	return time.Since(p.began).Seconds() / float64(done) * float64(of-done)
}

// update says how far the stage is: done of so many, where that is known, and what the line for people says.
func (p *progress) update(done, of int, format string, args ...any) {
	p.text.Lock()
	defer p.text.Unlock()
	text, eta := fmt.Sprintf(format, args...), p.eta(done, of)
	state := Stage{Event: meter.EventStep, Name: p.name, Step: done, Total: of, ETA: meter.Rounded(eta)}
	event := state
	event.Text = text
	if p.watch != nil {
		p.watch.Stage(&event)
	}
	if time.Since(p.sent) >= meter.JsonEvery {
		p.sent = time.Now()
		child.Report(event)
	}
	every := map[string]time.Duration{meter.Bar: redrawEvery, meter.Plain: meter.LinesEvery,
		meter.JSON: meter.JsonEvery}
	if p.how == meter.None || time.Since(p.shown) < every[p.how] {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("%-9s ", p.name+":") + text
	if eta >= 0 {
		line += "  ETA " + cli.Duration(eta)
	}
	switch p.how {
	case meter.JSON:
		_ = cli.WriteLine(p.w, state)
	case meter.Bar:
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.open = true
	default:
		fmt.Fprintln(p.w, line)
	}
}

// say says what came of a stage.
func (p *progress) say(console *cli.Console, name, text string) {
	console.Printf("%-9s %s\n", name+":", text)
	if p.watch != nil {
		p.watch.Stage(&Stage{Name: name, ETA: meter.Rounded(math.NaN()), Text: text, Done: true})
	}
}

// end removes the line of a stage.
func (p *progress) end() {
	p.text.Lock()
	defer p.text.Unlock()
	p.EndLine()
}

// EndLine removes the open line: what is printed next takes its place. The lock must be held.
func (p *progress) EndLine() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}

// What COLMAP prints of its progress, in its versions. Files and parts with a time are done, others have begun.
var (
	partLine       = regexp.MustCompile(`\[(\d+)/(\d+)(?:, (\d+)/(\d+))?\]( in )?`)
	registeredLine = regexp.MustCompile(`Registering (?:image|frame) #\d+ \((?:num_reg_frames=)?(\d+)\)`)
	initialLine    = regexp.MustCompile(`Initializing with image pair`)
)

// parts shows the parts of the work that COLMAP counts in what it prints, from now on.
func (p *progress) parts(what string) func(line string) {
	p.began = time.Now()
	return func(line string) {
		m := partLine.FindStringSubmatch(line)
		if m == nil {
			return
		}
		part, of := number(m[1]), number(m[2])
		if m[4] != "" { // blocks by blocks
			part, of = (part-1)*number(m[4])+number(m[3]), of*number(m[4])
		}
		done := part
		if m[5] == "" && !strings.Contains(line, "Processed file") {
			done--
		}
		p.update(done, of, "%s %d of %d", what, part, of)
	}
}

// timed says that what is counted from now on takes equal times.
func (p *progress) timed() { p.began = time.Now() }

// cameras shows how many cameras the mapper has found, in one component after the other.
func (p *progress) cameras(photos int) func(line string) {
	component, found := 0, 0
	p.began = time.Time{} // the more cameras there are, the longer one takes
	return func(line string) {
		if initialLine.MatchString(line) {
			component++
			found = 0
		} else if m := registeredLine.FindStringSubmatch(line); m != nil {
			found = number(m[1])
		} else {
			return
		}
		more := ""
		if component > 1 {
			more = fmt.Sprintf(", component %d", component)
		}
		p.update(found, photos, "%d of %d photos have a camera%s", found, photos, more)
	}
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // a pattern found digits
	return n
}
