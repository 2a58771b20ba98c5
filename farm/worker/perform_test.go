package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdk "go.temporal.io/sdk/worker"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
)

// bench does one attempt at a task, which only pretends.
type bench struct {
	t     *testing.T
	w     *worker
	place *place
	in    flow.TaskInput
	stop  context.CancelCauseFunc
	ctx   context.Context // of attempts, which the server ends
	do    func(ctx context.Context, o task.Options) error
}

const document = "version = 1\nname = \"j\"\nretry.max_attempts = 3\nretry.backoff = \"7s\"\n[[task]]\nkind = \"train\"\n" +
	"id = \"a\"\nsource = \"x\"\nlimits.vram_min_mb = 4000\n"

func newBench(t *testing.T) *bench {
	t.Helper()
	roots := store.Roots{}
	for _, name := range []string{"inputs", "outputs"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		roots[name] = store.Options{URL: dir}
	}
	job, plan := spectest.Job(t, document)
	d, err := flow.Put(t.Context(), roots, job, "anna")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, in: flow.TaskInput{Version: flow.Version, Document: d, Task: "a", Hash: plan.Hash(0)}}
	b.w = &worker{Options: Options{Roots: roots, Program: "vksplat"}, documents: &flow.Documents{Roots: roots},
		at: map[string]chan struct{}{}, do: func(ctx context.Context, o task.Options) (*store.Manifest, error) {
			return nil, b.do(ctx, o)
		}}
	b.w.stopping, b.stop = context.WithCancelCause(t.Context())
	b.ctx = t.Context()
	b.begin()
	return b
}

// begin makes a place that has failed at nothing.
func (b *bench) begin() {
	b.place = &place{worker: b.w, device: &task.Device{Name: "one", UUID: "1", MemoryBytes: 8 << 30},
		slots: newSlots(1)}
}

// attempt runs one, after what an earlier one said, and returns how it ended and what it said last.
func (b *bench) attempt(before *Beat) (last Beat, err error) {
	b.t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(sdk.Options{BackgroundActivityContext: b.ctx})
	env.RegisterActivityWithOptions(b.place.perform, activity.RegisterOptions{Name: flow.TaskType})
	if before != nil {
		env.SetHeartbeatDetails(*before)
	}
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		last = Beat{}
		_ = details.Get(&last)
	})
	_, err = env.ExecuteActivity(flow.TaskType, b.in)
	return last, err
}

// TestEnds decides what counts and what follows the end of an attempt.
func TestEnds(t *testing.T) {
	away := &fault.Error{Op: "read", Err: syscall.ENOSPC, Kind: fault.ErrTryAgain}
	for _, c := range []struct {
		name   string
		err    error
		before Tally
		want   Tally
		final  bool
		pause  time.Duration
		goesOn bool // the place takes other tasks
	}{
		{"crashed", &task.ChildError{Command: "train", Code: 139}, Tally{}, Tally{Failed: 1}, false, 7 * time.Second,
			false},
		{"crashed again", &task.ChildError{Command: "train", Code: 139}, Tally{Failed: 1}, Tally{Failed: 2}, false,
			14 * time.Second, false},
		{"crashed too often", &task.ChildError{Command: "train", Code: 139}, Tally{Failed: 2}, Tally{Failed: 3}, true,
			0, true},
		{"wrong data", &task.ChildError{Command: "train", Code: fault.ExitData, Said: "bad photo"}, Tally{}, Tally{},
			true, 0, true},
		{"lost device", &task.ChildError{Command: "train", Code: 75, Causes: []error{fault.ErrDeviceLost}},
			Tally{Failed: 2},
			Tally{Failed: 2}, false, 7 * time.Second, false},
		{"full disk", away, Tally{Failed: 2}, Tally{Failed: 2}, false, awayPause, false},
		{"no such root", &fault.Error{Op: "open root", Err: errors.New("unknown"), Kind: store.ErrSetup},
			Tally{Failed: 2},
			Tally{Failed: 2, Refused: 1}, false, awayPause, false},
		{"nobody is set up", &fault.Error{Op: "open root", Err: errors.New("unknown"), Kind: store.ErrSetup},
			Tally{Refused: mostRefused - 1}, Tally{Refused: mostRefused}, true, 0, true},
		{"damaged input", fmt.Errorf("read: %w", store.ErrDamaged), Tally{}, Tally{}, true, 0, true},
		{"no such input", &fault.Error{Op: "fetch input", Err: task.ErrNoInput, Kind: store.ErrSetup}, Tally{},
			Tally{Refused: 1}, false, awayPause, true},
	} {
		b := newBench(t)
		b.do = func(context.Context, task.Options) error { return c.err }
		last, err := b.attempt(&Beat{Tally: c.before})
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.NonRetryable() != c.final || app.NextRetryDelay() != c.pause {
			t.Errorf("%s: %v (%+v)", c.name, err, app)
			continue
		}
		if last.Tally != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, last.Tally, c.want)
		}
		if !strings.Contains(app.Message(), c.err.Error()) {
			t.Errorf("%s: it says %q", c.name, app.Message())
		}
		if rests := time.Until(b.place.slots.rests) > 0; rests == c.goesOn {
			t.Errorf("%s: the place rests: %v", c.name, rests)
		}
	}
}

// TestSilent counts attempts that said nothing in the end, unless they came further than those before.
func TestSilent(t *testing.T) {
	b := newBench(t)
	ran := 0
	b.do = func(_ context.Context, o task.Options) error {
		ran++
		if !o.Fenced || o.Attempt != 0 || o.Selected.Name != "one" {
			t.Errorf("%+v", o)
		}
		return nil
	}
	before := &Beat{Tally: Tally{Open: true}}
	before.Step = 500
	last, err := b.attempt(before)
	if want := (Tally{Open: true, Best: 500}); err != nil || ran != 1 || last.Tally != want {
		t.Errorf("%v after %d runs, %+v", err, ran, last)
	}
	before.Tally = Tally{Open: true, Best: 500, Failed: 1}
	if last, err = b.attempt(before); err != nil || ran != 2 || last.Tally.Failed != 2 {
		t.Errorf("%v after %d runs, %+v", err, ran, last)
	}
	before.Tally.Failed = 2
	last, err = b.attempt(before)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !app.NonRetryable() || ran != 2 || last.Tally.Failed != 3 {
		t.Errorf("%v after %d runs, %+v", err, ran, last)
	}
}

// TestNotMe leaves tasks to others that this worker does not understand, or has no device for. They do not run here.
func TestNotMe(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"a newer farm":     func(b *bench) { b.in.Version++ },
		"another identity": func(b *bench) { b.in.Hash = strings.Repeat("0", 64) },
		"another task":     func(b *bench) { b.in.Task = "b" },
		"beyond the plan":  func(b *bench) { b.in.Index = 7 },
		"too small":        func(b *bench) { b.place.device.MemoryBytes = 2 << 30 },
		"no program":       func(b *bench) { b.w.Lacks = map[*spec.Kind]error{spec.KindTrain: errors.New("no program")} },
	} {
		b := newBench(t)
		b.do = func(context.Context, task.Options) error { t.Errorf("%s: it ran", name); return nil }
		change(b)
		last, err := b.attempt(nil)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.NonRetryable() || last.Tally != (Tally{}) {
			t.Errorf("%s: %v, %+v", name, err, last.Tally)
		}
		if time.Until(b.place.slots.rests) <= 0 {
			t.Errorf("%s: the worker goes on asking", name)
		}
	}
}

// TestNewerDocument leaves a document with words that this version does not know to others.
func TestNewerDocument(t *testing.T) {
	b := newBench(t)
	b.do = func(context.Context, task.Options) error { t.Error("it ran"); return nil }
	key := "j/@run/new.json"
	text := `{"name":"j","task":[{"kind":"hologram","id":"a"}],"version":1}`
	root, err := b.w.Roots.Open("outputs")
	if err != nil {
		t.Fatal(err)
	}
	b.in.Document = put(t, root, key, text)
	last, err := b.attempt(nil)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || last.Tally != (Tally{}) ||
		!strings.Contains(app.Message(), "another version") {
		t.Errorf("%v, %+v", err, last.Tally)
	}
}

// TestStops hands tasks back when the worker is to end, and does not count that.
func TestStops(t *testing.T) {
	b := newBench(t)
	b.do = func(ctx context.Context, _ task.Options) error {
		b.stop(task.ErrStopped)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	last, err := b.attempt(&Beat{Tally: Tally{Failed: 2}})
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || app.NextRetryDelay() > time.Second ||
		last.Tally != (Tally{Failed: 2}) {
		t.Errorf("%v, %+v", err, last.Tally)
	}
}

// TestTakenBack does not count an attempt that the server ended. It has saved, and says so to the next one.
func TestTakenBack(t *testing.T) {
	b := newBench(t)
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithCancel(t.Context())
	b.do = func(ctx context.Context, o task.Options) error {
		cancel()
		<-ctx.Done()
		return task.ErrStopped
	}
	last, err := b.attempt(&Beat{Tally: Tally{Failed: 1}})
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) || last.Tally != (Tally{Failed: 1}) {
		t.Errorf("%v, %+v", err, last)
	}
}

// TestAlone has an attempt wait until an earlier one at the same task has saved.
func TestAlone(t *testing.T) {
	b := newBench(t)
	release, ok := b.w.holds(t.Context(), "outputs/"+b.in.Document.Key+"/a")
	if !ok {
		t.Fatal("nobody has it")
	}
	ran := make(chan struct{})
	b.do = func(context.Context, task.Options) error { close(ran); return nil }
	ended := make(chan error)
	go func() { _, err := b.attempt(nil); ended <- err }()
	select {
	case <-ran:
		t.Error("two attempts at a task at once")
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, root store.Root, key, text string) flow.Document {
	t.Helper()
	if err := root.Put(key, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return flow.Document{Root: "outputs", Key: key, SHA256: hex.EncodeToString(sum[:])}
}

// TestPreview puts the small picture of a task into the store, for the job's page.
func TestPreview(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "preview.jpg")
	if err := os.WriteFile(file, []byte("picture"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.do = func(_ context.Context, o task.Options) error {
		o.Report(task.Progress{Task: "a", Preview: file})
		return nil
	}
	last, err := b.attempt(nil)
	if err != nil || last.Preview != "" {
		t.Errorf("%v, %+v", err, last)
	}
	shown := filepath.Join(b.w.Roots["outputs"].URL, "j", local.PreviewKey(0))
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if data, err := os.ReadFile(shown); string(data) == "picture" {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%q, %v", data, err)
		}
	}
}
