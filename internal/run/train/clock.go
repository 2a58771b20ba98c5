package train

import (
	"os"
	"strings"
	"time"

	"vksplat/internal/cli"
)

// clock says how long a run has taken. Work is reported to it, since the clock of tests counts nothing else.
type clock interface {
	passed() time.Duration
	rehearsed(level, splats int) // a step of a rehearsal, on photos that are halved level times
	trained(level int)           // a step of the run
	evaluated(photos int)
}

// startClock begins to count: where the process does nothing but this run, from its start on.
func (lim *limiter) startClock() {
	if lim.clock != nil { // it runs
		return
	}
	began := cli.ProcessStart
	switch {
	case !lim.Begun.IsZero():
		began = lim.Begun
	case lim.Opened != nil:
		began = time.Now()
	}
	lim.clock = wallClock{began}
	if c, err := parseStepClock(os.Getenv(stepTimesVariable)); err == nil {
		lim.clock = c
	}
}

// wallClock is the clock of runs.
type wallClock struct{ began time.Time }

func (c wallClock) passed() time.Duration { return time.Since(c.began) }
func (wallClock) rehearsed(int, int)      {}
func (wallClock) trained(int)             {}
func (wallClock) evaluated(int)           {}

// stepTimesVariable makes a run's clock a stepClock: what a step on photos of full size takes in a rehearsal and in the
// run, and, if there is a third time, what the evaluation of a photo takes, as in 20ms,40ms,1s.
const stepTimesVariable = "VKSPLAT_STEP_TIMES"

// stepClock is a clock for tests, on which each piece of work takes a given time and all else none.
type stepClock struct{ rehearsal, training, evaluation, sum time.Duration }

func parseStepClock(text string) (*stepClock, error) {
	c := &stepClock{}
	times := []*time.Duration{&c.rehearsal, &c.training, &c.evaluation}
	for i, field := range strings.SplitN(text, ",", len(times)) {
		d, err := time.ParseDuration(field)
		if err != nil {
			return nil, err
		}
		*times[i] = d
	}
	return c, nil
}

func (c *stepClock) passed() time.Duration  { return c.sum }
func (c *stepClock) rehearsed(level, _ int) { c.sum += c.rehearsal >> (2 * level) }
func (c *stepClock) trained(level int)      { c.sum += c.training >> (2 * level) }
func (c *stepClock) evaluated(photos int)   { c.sum += c.evaluation * time.Duration(photos) }
