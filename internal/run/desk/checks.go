package desk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/scene/inspect"
)

// check is a question about a capture: the verdict, or the plan of a training. It is answered by a child, once; pages
// ask again and again until it is.
type check struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`

	Report  *inspect.Report `json:"report,omitempty"`  // of a verdict, without the table of cameras
	Cameras int             `json:"cameras,omitempty"` //
	Plan    *plan           `json:"plan,omitempty"`

	asked  time.Time
	wanted time.Time          // when a page asked last
	stop   context.CancelFunc // ends the work on it
}

// plan is the output of train --dry-run.
type plan struct {
	Ceiling int `json:"ceiling"` // splats
	Device  struct {
		Total  int64 `json:"total"`
		Budget int64 `json:"budget"`
	} `json:"device"`
	Host struct {
		Process  int64 `json:"process"`
		Cache    int64 `json:"cache"`
		Decode   int64 `json:"decode"`
		Readback int64 `json:"readback"`
	} `json:"host"`
	Prediction *struct {
		Steps   int     `json:"steps"`
		Seconds float64 `json:"seconds"`
	} `json:"prediction,omitempty"`
	Busy bool `json:"busy,omitempty"` // the device trains, so that no time was measured
}

const (
	checkedFor = 10 * time.Minute // an answer is good: a folder may change
	busyFor    = 15 * time.Second // likewise, of a plan without a time
	failedFor  = 5 * time.Second  // likewise, of a failure
	mostChecks = 200
	// unwantedFor is how long no page has asked for an answer that is not worked on any more, where another is wanted.
	unwantedFor = 3 * time.Second
	// rehearsedFor is the time limit of rehearsals, of which they take a part.
	rehearsedFor = "60s"
)

// good reports whether an answer is still good.
func (c *check) good(now time.Time) bool {
	most := checkedFor
	switch {
	case !c.Ready:
		return true
	case c.Error != "":
		most = failedFor
	case c.Plan != nil && c.Plan.Busy:
		most = busyFor
	}
	return now.Sub(c.asked) < most
}

// checks are the answers so far. Questions are worked on one at a time.
type checks struct {
	ctx     context.Context // of all work
	running *sync.WaitGroup
	turn    chan struct{} // holds a value while a question is worked on

	mu    sync.Mutex
	byKey map[string]*check
}

// known is the answer to a question, empty where there is none yet.
func (c *checks) known(key string) check {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.byKey[key]; a != nil {
		return *a
	}
	return check{}
}

// ask returns the answer to a question, one that is not ready where it is being worked on. work runs in the background.
func (c *checks) ask(key string, work func(ctx context.Context, c *check) error) check {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for k, a := range c.byKey {
		if k != key && !a.Ready && now.Sub(a.wanted) > unwantedFor {
			a.stop()
		}
	}
	if a := c.byKey[key]; a != nil && a.good(now) {
		a.wanted = now
		return *a
	}
	for k, a := range c.byKey {
		if len(c.byKey) >= mostChecks && a.Ready {
			delete(c.byKey, k)
		}
	}
	ctx, stop := context.WithCancel(c.ctx)
	a := &check{asked: now, wanted: now, stop: stop}
	c.byKey[key] = a
	c.running.Go(func() {
		defer stop()
		found, err := c.answer(ctx, work)
		c.mu.Lock()
		defer c.mu.Unlock()
		if ctx.Err() != nil {
			delete(c.byKey, key) // a page that wants it asks again
			return
		}
		if err != nil {
			found.Error, found.Hint = forPage(err.Error()), forPage(fault.Hint(err))
		}
		found.Ready, found.asked = true, time.Now()
		*a = found
	})
	return *a
}

// answer works on a question, one at a time.
func (c *checks) answer(ctx context.Context, work func(ctx context.Context, c *check) error) (found check, err error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
		err = work(ctx, &found)
	case <-ctx.Done():
	}
	return found, err
}

// verdict asks what inspect says of a capture.
func (d *desk) verdict(rel string) (check, error) {
	dir, err := d.absolute(rel)
	if err != nil {
		return check{}, err
	}
	return d.checks.ask("verdict "+dir, func(ctx context.Context, c *check) error {
		if err := d.ownScene(dir, 1); err != nil {
			return err
		}
		report := new(inspect.Report)
		err := d.askChild(ctx, report, "inspect", dir, cli.Switch("json"), cli.Flag("downscale", "1"))
		if err != nil && len(report.Problems) == 0 {
			return err
		}
		report.Root, report.Model, report.Images = d.relative(dir), "", "" // paths of this machine
		for i := range report.Problems {
			p := &report.Problems[i]
			p.Text, p.Remedy = forPage(p.Text), forPage(p.Remedy)
		}
		c.Cameras, report.Cameras, c.Report = len(report.Cameras), nil, report
		return nil
	}), nil
}

// plan asks what a training would need.
func (d *desk) plan(r *trainRequest) (check, error) {
	if err := r.check(); err != nil {
		return check{}, err
	}
	dir, err := d.absolute(r.Scene)
	if err != nil {
		return check{}, err
	}
	args := append([]string{"train", dir, cli.Switch("dry-run"), cli.Switch("json")}, r.settings()...)
	begins, _ := d.beginning(dir)
	args = slices.Concat(args, begins, d.DeviceArgs)
	return d.checks.ask("plan "+strings.Join(args, " "), func(ctx context.Context, c *check) error {
		ctx, stop, busy := d.queue.lend(ctx)
		defer stop()
		if err := d.ownScene(dir, r.Size); err != nil {
			return err
		}
		p := &plan{Busy: busy}
		if !busy {
			args = append(slices.Clone(args), cli.Flag("time-limit", rehearsedFor))
		}
		c.Plan = p
		return d.askChild(ctx, p, args...)
	}), nil
}

// askChild runs this program and reads the JSON that it prints.
func (d *desk) askChild(ctx context.Context, v any, args ...string) error {
	err := child.Ask(ctx, d.Program, args, child.Options{Apart: true}, v)
	if ctx.Err() != nil {
		return errors.New("a training is using the device")
	}
	return err
}
