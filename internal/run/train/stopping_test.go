package train

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
)

// TestInterruptedAtTheEnd stops runs when nothing is left to train: they write and measure everything, and end as any
// other.
func TestInterruptedAtTheEnd(t *testing.T) {
	if interrupted, err := stopAtTheEnd(t, 3); interrupted || err != nil {
		t.Errorf("a run whose steps are all done counts as interrupted: %v, %v", interrupted, err)
	}
	if interrupted, err := stopAtTheEnd(t, 2); !interrupted || err != nil {
		t.Errorf("a run with a step to go counts as done: %v, %v", interrupted, err)
	}
}

// startedRun begins a run of three steps, which other tests train, and returns what it says.
func startedRun(t *testing.T, eval bool, change ...func(*Options)) (r *Run, said *bytes.Buffer) {
	t.Helper()
	o := NewOptions()
	o.Scene, o.Out, o.Config.Iterations, o.Progress, o.Eval = runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out"), 3,
		meter.None, eval
	for _, f := range change {
		f(o)
	}
	must.Do(t, os.MkdirAll(o.Out, 0o777))
	said = &bytes.Buffer{}
	r = NewRun(o, cli.New(nil, io.Discard, said))
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, r.Begin(context.Background()))
	watched(t, r)
	return r, said
}

// watched has a run's observers start, also again.
func watched(t *testing.T, r *Run) {
	t.Helper()
	for _, o := range r.observers {
		must.Do(t, o.Close())
	}
	r.observers = nil
	started, err := r.Started(io.Discard)
	if err == nil {
		err = errors.Join(r.observe(), r.emit(started))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stopAtTheEnd trains some of three steps and stops the run then.
func stopAtTheEnd(t *testing.T, steps int) (interrupted bool, err error) {
	t.Helper()
	r, said := startedRun(t, false)
	ctx, cancel := context.WithCancel(context.Background())
	must.Do(t, r.Trainer.RunTo(ctx, steps, nil))
	cancel()
	interrupted, err = r.stopped(ctx, r.train(ctx))
	if told := strings.Contains(said.String(), "all steps are done"); told == interrupted {
		t.Errorf("said: %s", said)
	}
	return interrupted, err
}

// counting counts the pictures of held-out photos, and calls a function with each.
func counting(n *atomic.Int32, each func()) Observe {
	return func(e Event) error {
		if _, is := e.(*Compared); is {
			n.Add(1)
			each()
		}
		return nil
	}
}

// TestPictureFailsInTheMiddle measures held-out photos of which one picture cannot be written: nothing is recorded as
// measured, and once it can be, all is.
func TestPictureFailsInTheMiddle(t *testing.T) {
	r, _ := startedRun(t, true, func(o *Options) { o.TestEvery = 2 })
	ctx := context.Background()
	must.Do(t, r.Trainer.RunTo(ctx, 3, nil))
	stuck := filepath.Join(picturesFolder(r.Out, 3), captured.PictureNames(captured.Pick(r.Capture.Cameras, r.Test))[1])
	must.Do(t, os.MkdirAll(filepath.Join(stuck, "a folder"), 0o777))
	drawn := drawnBy(r.Options, r.Capture, r.Test)
	views, err := r.measure(ctx, 3)
	if err == nil || !strings.Contains(err.Error(), stuck) || views != nil || r.unmeasured ||
		r.past.evaluated(3, drawn) != nil || output.IsFile(filepath.Join(r.Out, "results.json")) {
		t.Errorf("measured %v, recorded %v, stopped %v: %v", views, r.past.evaluated(3, drawn),
			r.unmeasured, err)
	}
	must.Do(t, os.RemoveAll(stuck))
	var seen atomic.Int32
	r.observers = append(r.observers, counting(&seen, func() {}))
	views, err = r.measure(ctx, 3)
	if err != nil || len(views) != len(r.Test) || int(seen.Load()) != len(r.Test) ||
		!output.IsFile(filepath.Join(r.Out, "results.json")) {
		t.Errorf("measured %d of %d photos, %d pictures were seen: %v", len(views), len(r.Test), seen.Load(), err)
	}
	// The user gives up in the middle.
	stopped, cancel := context.WithCancel(ctx)
	r.past.evals = nil
	r.observers = append(r.observers, counting(&seen, cancel))
	views, err = r.measure(stopped, 3)
	if cancel(); err != nil || views != nil || !r.unmeasured {
		t.Errorf("given up after the first picture: measured %v, %v", views, err)
	}
}
