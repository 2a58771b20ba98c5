package desk

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"vksplat/internal/run/meter"
	"vksplat/internal/wording"
)

// numbers are what a job's process tells of its course. Those that are not known are 0.
type numbers struct {
	Began       int64   `json:"began,omitempty"` // seconds since 1970
	Ended       int64   `json:"ended,omitempty"`
	Doing       string  `json:"doing,omitempty"`
	Step        int     `json:"step"`
	Total       int     `json:"total"`
	Splats      int     `json:"splats,omitempty"`
	Loss        float64 `json:"loss,omitempty"`
	Rate        float64 `json:"rate,omitempty"`     // steps a second
	ETA         float64 `json:"eta,omitempty"`      // seconds that are left
	Seconds     float64 `json:"seconds,omitempty"`  // of training
	DeviceBytes int64   `json:"device,omitempty"`   //
	HeldPSNR    float64 `json:"heldPsnr,omitempty"` // dB, of held-out photos
}

const (
	mostWarnings = 20
	// watchedAt and shownAt introduce the addresses of viewers.
	watchedAt = "watch it in a browser: "
	shownAt   = "open in a browser: "
)

// What render and capture say of their progress.
var (
	pictureLine = regexp.MustCompile(`^picture (\d+)/(\d+)`)
	partLine    = regexp.MustCompile(`(\d+) of (\d+)`)
)

// heard takes in a line of a job's process.
func (d *desk) heard(j *job, line []byte, stdout bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stdout && len(line) > 0 && line[0] == '{' {
		j.event(line)
		return
	}
	text := strings.TrimSpace(wording.Printable(string(line)))
	if m := pictureLine.FindStringSubmatch(text); m != nil {
		j.progress(m)
		return
	}
	if address, is := strings.CutPrefix(text, watchedAt); is && j.Kind == kindTrain && j.address == "" {
		j.address, j.Watch = address, true
		return
	}
	if told, is := strings.CutPrefix(text, "vksplat: "); is {
		j.told(told)
		return
	}
	if hint, is := strings.CutPrefix(text, "hint: "); is {
		j.Hint = forPage(hint)
	} else if text != "" && j.Kind != kindTrain {
		j.Doing = text
		j.progress(partLine.FindStringSubmatch(text))
	}
}

// progress takes in a match of a pattern with two numbers. Without one, nobody knows how much is left.
func (j *job) progress(m []string) {
	j.Step, j.Total = 0, 0
	if m == nil {
		return
	}
	if n, err := strconv.Atoi(m[1]); err == nil {
		j.Step = n
	}
	if n, err := strconv.Atoi(m[2]); err == nil && n >= j.Step {
		j.Total = n
	}
}

// told takes in a warning or an error.
func (j *job) told(text string) {
	if warning, is := strings.CutPrefix(text, "warning: "); is {
		if len(j.Warnings) < mostWarnings {
			j.Warnings = append(j.Warnings, forPageAtLeast(warning))
		}
	} else if err, is := strings.CutPrefix(text, "error: "); is {
		err = forPageAtLeast(err)
		if j.Error != "" {
			err = j.Error + "; " + err
		}
		j.Error = err
	}
}

// event takes in a line of a training's progress.
func (j *job) event(line []byte) {
	var e struct {
		meter.StepLine
		PSNR meter.Rounded `json:"psnr"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	known := func(r meter.Rounded) float64 {
		if v := float64(r); v-v == 0 {
			return v
		}
		return 0
	}
	switch e.Event {
	case meter.EventStart:
		j.Step, j.Total, j.Doing = e.Step, e.Total, ""
	case meter.EventStep:
		j.Step, j.Total, j.Splats, j.DeviceBytes = e.Step, e.Total, e.Splats, e.DeviceBytes
		j.Loss, j.Rate, j.ETA, j.Seconds = known(e.Loss), known(e.Rate), known(e.ETA), known(e.Seconds)
		if j.Step == j.Total {
			j.Doing = "measuring and writing the model"
		}
	case meter.EventEval:
		j.HeldPSNR = known(e.PSNR)
	}
}
