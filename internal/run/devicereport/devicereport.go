// Package devicereport writes what a person sends in about a device: one file of text, with a line for
// docs/devices-table.md at its top. What identifies the person or the machine is left out.
package devicereport

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/run/bench"
)

type Report struct {
	Device, Driver string // "" where none could be opened
	Kernels, Right int    // that were run, and that computed the right thing
	Steps          []bench.Step
	Text           string // what doctor printed
	Passes         string // what bench printed
	Failure        error  // that ended the examination, or nil
}

func (r *Report) Write(path string) error {
	return atomicfile.WriteText(path, r.text())
}

func (r *Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nmachine  %s\n\n", r.Row(), machine())
	b.WriteString(r.Text)
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "step     %.4g s: %s\n", s.MS/1e3, s.Name)
	}
	if r.Passes != "" {
		fmt.Fprintf(&b, "\n%s", r.Passes)
	}
	if r.Failure != nil {
		fmt.Fprintf(&b, "\nerror: %v\n", r.Failure)
	}
	return withoutPrivate(b.String())
}

// Row is the report's line of docs/devices-table.md.
func (r *Report) Row() string {
	cells := []string{"none", "", fmt.Sprintf("%d of %d", r.Right, r.Kernels), "", "", cli.VersionText()}
	if r.Device != "" {
		cells[0], cells[1] = r.Device, r.Driver
	}
	for i, s := range r.Steps[:min(len(r.Steps), 2)] {
		cells[3+i] = fmt.Sprintf("%.*f ms", max(0, 2-int(math.Floor(math.Log10(max(s.MS, 0.01))))), s.MS)
	}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", "/")
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func machine() string {
	text := fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, cli.Count(runtime.NumCPU(), "processor"))
	for _, f := range []struct{ path, key string }{{"/proc/cpuinfo", "model name"}, {"/etc/os-release", "PRETTY_NAME"}} {
		if value := valueIn(f.path, f.key); value != "" {
			text += ", " + value
		}
	}
	return text
}

// valueIn finds the first value of a key in a file of lines such as KEY=VALUE or KEY : VALUE, "" where there is none.
func valueIn(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), key)
		rest = strings.TrimSpace(rest)
		if found && rest != "" && (rest[0] == '=' || rest[0] == ':') {
			return strings.Trim(strings.TrimSpace(rest[1:]), `"`)
		}
	}
	return ""
}

// identity finds lines that name this one device.
var identity = regexp.MustCompile(`(?m)^ *UUID .*\n`)

// withoutPrivate leaves out the device's UUID and the names of the user's folders and machine.
func withoutPrivate(text string) string {
	text = identity.ReplaceAllString(text, "")
	replace := func(private, by string) {
		if len(private) > 1 {
			text = strings.ReplaceAll(text, private, by)
		}
	}
	if dir, err := os.Getwd(); err == nil {
		replace(dir, "(here)")
	}
	if dir, err := os.UserHomeDir(); err == nil {
		replace(dir, "~")
	}
	replace(strings.TrimRight(os.TempDir(), `/\`), "(temporary)")
	if name, err := os.Hostname(); err == nil {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(text, "(host)")
	}
	return text
}
