package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// How many checkpoints stay unless the user says otherwise.
const (
	defaultKeepRunning = 2
	defaultKeepAtEnd   = 1
)

// checkpointOptions says when checkpoints are written and what a run goes on with.
type checkpointOptions struct {
	every     everyFlag
	saveAt    cli.Steps
	keep      keepFlag
	resume    string // "": start; auto: the newest checkpoint, if any; or a file
	accept    bool   // other settings or photos than the checkpoint's
	overwrite bool   // replace a run in OUT, and files that are in the way
	off       bool   // neither written nor looked for
}

// newCheckpointOptions returns the defaults.
func newCheckpointOptions() checkpointOptions {
	return checkpointOptions{every: everyFlag{time: 5 * time.Minute}, keep: -1}
}

// resumeAuto is what --resume without a value means.
const resumeAuto = "auto"

// table lists the options of checkpoints.
func (o *checkpointOptions) table() []option {
	return []option{
		other(&o.every, "checkpoint-every", "write a checkpoint every `N|Nm` steps or minutes; 0: only at the end and when stopped").essential(),
		stepList(&o.saveAt, "save-at", "write model and checkpoint after the steps `N,N,...` too").essential().also("save-steps", "save-iterations", "checkpoint-iterations"),
		other(&o.keep, "keep-checkpoints", "keep the newest `N` checkpoints (default: 2 while running, 1 at the end)"),
		text(&o.resume, "resume", "go on with a checkpoint, `auto|FILE`: --resume alone takes the newest one of OUT, or starts without one; --resume=FILE that file").orAlone(resumeAuto).essential().flagOnly(),
		truth(&o.accept, "accept-changes", "with --resume, go on although settings or photos changed, with the new ones").essential().flagOnly(),
		truth(&o.overwrite, "overwrite", "replace a run in OUT, which stays aside until this one has a checkpoint, and other files in the way").essential().flagOnly(),
	}
}

// check refuses --accept-changes without --resume.
func (o *checkpointOptions) check() error {
	if o.accept && o.resume == "" {
		return fault.Usagef("add --resume to go on with the run in OUT, or give --overwrite to replace it",
			"flag --accept-changes needs --resume")
	}
	return nil
}

// keepRunning returns how many checkpoints stay while training runs.
func (o *checkpointOptions) keepRunning() int {
	if o.keep < 0 {
		return defaultKeepRunning
	}
	return max(int(o.keep), 1)
}

// keepAtEnd returns how many stay when it is done.
func (o *checkpointOptions) keepAtEnd() int {
	if o.keep < 0 {
		return defaultKeepAtEnd
	}
	return int(o.keep)
}

// everyFlag is a number of steps or a time; both 0: never.
type everyFlag struct {
	steps int
	time  time.Duration
}

var everyForm = regexp.MustCompile(`^\d+(\.\d+)?m$`)

func (f *everyFlag) Type() string { return "N|Nm" }

func (f *everyFlag) String() string {
	if f.time > 0 {
		return strconv.FormatFloat(f.time.Minutes(), 'f', -1, 64) + "m"
	}
	return strconv.Itoa(f.steps)
}

// Set parses a number of steps or, with m, of minutes.
func (f *everyFlag) Set(s string) error {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		*f = everyFlag{steps: n}
		return nil
	}
	minutes, err := strconv.ParseFloat(strings.TrimSuffix(s, "m"), 64)
	if err != nil || !everyForm.MatchString(s) || minutes > maxMinutes {
		return fault.Usagef("give steps as in 1000, or minutes as in 5m", "%q is neither steps nor minutes", s)
	}
	*f = everyFlag{time: time.Duration(minutes * float64(time.Minute))}
	return nil
}

// maxMinutes is more than any run takes, and less than a time.Duration holds.
const maxMinutes = 1e8

// keepFlag is a number of checkpoints, -1 for the default.
type keepFlag int

func (f *keepFlag) Type() string { return "N" }

func (f *keepFlag) String() string {
	if *f < 0 {
		return ""
	}
	return strconv.Itoa(int(*f))
}

// Set parses a number from 0 up.
func (f *keepFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fault.Usagef("give a number from 0 up; 0 leaves none at the end", "%q is no number of checkpoints", s)
	}
	*f = keepFlag(n)
	return nil
}
