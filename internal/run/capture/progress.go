package capture

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"

	"vksplat/internal/cli"
)

// progress shows how far a stage is: one line that is drawn again and again on a terminal, a line every few seconds
// elsewhere.
type progress struct {
	w     io.Writer
	text  *sync.Mutex // guards w and open
	bar   bool
	every time.Duration
	name  string
	shown time.Time
	open  bool
}

// How often the line is drawn.
const (
	redrawEvery = 200 * time.Millisecond
	linesEvery  = 5 * time.Second
)

// newProgress shows progress on the console's standard output.
func newProgress(console *cli.Console) *progress {
	p := &progress{w: console.Stdout, every: linesEvery}
	if f, isFile := cli.FileOf(console.Stdout); isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.bar, p.every = true, redrawEvery
	}
	p.text = console.Follow(p)
	return p
}

// begin starts a stage.
func (p *progress) begin(name string) {
	p.name, p.shown = name, time.Now()
	if p.bar {
		p.shown = time.Time{}
		p.tell("...")
	}
}

// tell says how far the stage is.
func (p *progress) tell(format string, args ...any) {
	p.text.Lock()
	defer p.text.Unlock()
	if time.Since(p.shown) < p.every {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("%-9s ", p.name+":") + fmt.Sprintf(format, args...)
	if p.bar {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.open = true
		return
	}
	fmt.Fprintln(p.w, line)
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

// What COLMAP prints of its progress, in its versions.
var (
	partLine       = regexp.MustCompile(`\[(\d+)/(\d+)(?:, (\d+)/(\d+))?\]`)
	registeredLine = regexp.MustCompile(`Registering (?:image|frame) #\d+ \((?:num_reg_frames=)?(\d+)\)`)
	initialLine    = regexp.MustCompile(`Initializing with image pair`)
)

// parts shows the parts of the work that COLMAP counts in what it prints.
func (p *progress) parts(what string) func(line string) {
	return func(line string) {
		m := partLine.FindStringSubmatch(line)
		if m == nil {
			return
		}
		done, of := number(m[1]), number(m[2])
		if m[4] != "" { // blocks by blocks
			done, of = (done-1)*number(m[4])+number(m[3]), of*number(m[4])
		}
		p.tell("%s %d of %d", what, done, of)
	}
}

// cameras shows how many cameras the mapper has found, in one component after the other.
func (p *progress) cameras(photos int) func(line string) {
	component, found := 0, 0
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
		p.tell("%d of %d photos have a camera%s", found, photos, more)
	}
}

// number reads digits.
func number(digits string) int {
	n, _ := strconv.Atoi(digits) // a pattern found digits
	return n
}
