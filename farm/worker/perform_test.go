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

	"go.temporal.io/api/serviceerror"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/wire"
	"vksplat/internal/child"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// bench does one attempt at a task, which only pretends.
type bench struct {
	*farm
	w     *worker
	place *place
	stop  context.CancelCauseFunc
	do    func(ctx context.Context, o task.Options) error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{farm: newFarm(t)}
	b.w = &worker{Options: Options{Conn: wire.Open(b.Address, "splats", nil), Roots: b.roots, Program: "vksplat"},
		documents: &flow.Documents{Roots: b.roots}, at: map[string]chan struct{}{},
		do: func(ctx context.Context, o task.Options) (*store.Manifest, error) { return nil, b.do(ctx, o) }}
	b.w.stopping, b.stop = context.WithCancelCause(t.Context())
	one := card("one")
	b.place = newPlace(b.w, &one, 1, nil)
	return b
}

// attempt runs one, after what an earlier one said, and returns the answer that the server got, and what it heard last.
func (b *bench) attempt(before *Beat) (last Beat, answer any) {
	b.t.Helper()
	b.mutex.Lock()
	clear(b.ends)
	clear(b.beats)
	b.mutex.Unlock()
	request := b.task("token", before)
	given := &wire.Given{Token: request.GetTaskToken(), Type: &wire.Kind{Name: flow.TaskType},
		Input: wire.PayloadsOf(b.in), Heartbeat: wire.SpanOf(b.beat)}
	if before != nil {
		given.Beat = wire.PayloadsOf(before)
	}
	b.place.perform(given, func() {})
	if list := b.ended("token"); len(list) > 1 {
		b.t.Errorf("%d answers", len(list))
	} else if len(list) == 1 {
		answer = list[0]
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if list := b.beats["token"]; len(list) > 0 {
		last = list[len(list)-1]
	}
	if f, is := b.failureOf(answer); is {
		last = f.last
	}
	return last, answer
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
		{"crashed", &child.Failure{Code: 139}, Tally{}, Tally{Failed: 1}, false, 7 * time.Second,
			false},
		{"crashed again", &child.Failure{Code: 139}, Tally{Failed: 1}, Tally{Failed: 2}, false,
			14 * time.Second, false},
		{"crashed too often", &child.Failure{Code: 139}, Tally{Failed: 2}, Tally{Failed: 3}, true,
			0, true},
		{"wrong data", &child.Failure{Text: "bad photo", Causes: []error{fault.ErrData}}, Tally{}, Tally{},
			true, 0, true},
		{"lost device", &child.Failure{Code: 75, Causes: []error{fault.ErrDeviceLost}},
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
		last, answer := b.attempt(&Beat{Tally: c.before})
		said, is := b.failureOf(answer)
		if !is || said.final != c.final || said.delay != c.pause {
			t.Errorf("%s: %v (%+v)", c.name, answer, said)
			continue
		}
		if last.Tally != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, last.Tally, c.want)
		}
		if !strings.Contains(said.text, c.err.Error()) {
			t.Errorf("%s: it says %q", c.name, said.text)
		}
		if rests := time.Until(b.place.rested) > 0; rests == c.goesOn {
			t.Errorf("%s: the place rests: %v", c.name, rests)
		}
	}
}

func isDone(answer any) bool {
	_, is := answer.(*completed)
	return is
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
	last, answer := b.attempt(before)
	if want := (Tally{Open: true, Best: 500}); !isDone(answer) || ran != 1 || last.Tally != want {
		t.Errorf("%v after %d runs, %+v", answer, ran, last)
	}
	before.Tally = Tally{Open: true, Best: 500, Failed: 1}
	if last, answer = b.attempt(before); !isDone(answer) || ran != 2 || last.Tally.Failed != 2 {
		t.Errorf("%v after %d runs, %+v", answer, ran, last)
	}
	before.Tally.Failed = 2
	last, answer = b.attempt(before)
	if said, is := b.failureOf(answer); !is || !said.final || ran != 2 || last.Tally.Failed != 3 {
		t.Errorf("%v after %d runs, %+v", answer, ran, last)
	}
}

// TestAway counts no attempt that said nothing in the end because the server was away.
func TestAway(t *testing.T) {
	b := newBench(t)
	b.do = func(context.Context, task.Options) error { return nil }
	b.since = "2"
	b.attempt(nil) // this machine hears it
	before := &Beat{Since: "1", Tally: Tally{Open: true, Failed: 2}}
	last, answer := b.attempt(before)
	if want := (Tally{Open: true, Failed: 2}); !isDone(answer) || last.Tally != want || last.Since != "2" {
		t.Errorf("%v, %+v", answer, last)
	}
	before.Since = "2"
	last, answer = b.attempt(before)
	if said, is := b.failureOf(answer); !is || !said.final || last.Tally.Failed != 3 {
		t.Errorf("%v, %+v", answer, last)
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
		last, answer := b.attempt(nil)
		if said, is := b.failureOf(answer); !is || said.final || last.Tally != (Tally{}) {
			t.Errorf("%s: %v, %+v", name, answer, last.Tally)
		}
		if time.Until(b.place.rested) <= 0 {
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
	root := must.Get(b.w.Roots.Open("outputs"))(t)
	b.in.Document = put(t, root, key, text)
	last, answer := b.attempt(nil)
	if said, is := b.failureOf(answer); !is || said.final || last.Tally != (Tally{}) ||
		!strings.Contains(said.text, "another version") {
		t.Errorf("%v, %+v", answer, last.Tally)
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
	last, answer := b.attempt(&Beat{Tally: Tally{Failed: 2}})
	if said, is := b.failureOf(answer); !is || said.final || said.delay > time.Second ||
		last.Tally != (Tally{Failed: 2}) {
		t.Errorf("%v, %+v", answer, last.Tally)
	}
}

// TestTakenBack does not count an attempt that the server wants no more. It saves, and says so to the next one, where
// the server still listens.
func TestTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		heard *heard
		err   error
	}{
		"canceled":                {&heard{CancelRequested: true}, nil},
		"paused":                  {&heard{ActivityPaused: true}, nil},
		"reset":                   {&heard{ActivityReset: true}, nil},
		"given to another worker": {&heard{}, serviceerror.NewNotFound("no such activity")},
		"refused":                 {&heard{}, serviceerror.NewPermissionDenied("the task is not one of one", "")},
	} {
		b := newBench(t)
		b.beat = 100 * time.Millisecond
		b.reply = func(_ string, n int) (*heard, error) {
			if n < 3 {
				return &heard{}, nil
			}
			return c.heard, c.err
		}
		b.do = func(ctx context.Context, o task.Options) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), task.ErrStopped) {
				t.Errorf("%s: %v", name, context.Cause(ctx))
			}
			return task.ErrStopped
		}
		last, answer := b.attempt(&Beat{Tally: Tally{Failed: 1}})
		if last.Tally.Failed != 1 {
			t.Errorf("%s: %+v", name, last)
		}
		said, is := b.failureOf(answer)
		stop, isStop := answer.(*stopped)
		switch {
		case c.err != nil && answer != nil, c.heard.CancelRequested != isStop,
			c.err == nil && !isStop && (!is || said.final || said.delay != time.Millisecond || last.Tally.Open),
			isStop && string(stop.GetDetails().GetPayloads()[0].GetData()) != "1":
			t.Errorf("%s: %v", name, answer)
		}
	}
}

// TestPanics takes a fault of this program for an attempt that has failed: other tasks of the worker go on.
func TestPanics(t *testing.T) {
	b := newBench(t)
	b.do = func(context.Context, task.Options) error { panic("nobody has thought of it") }
	last, answer := b.attempt(nil)
	if said, is := b.failureOf(answer); !is || said.final || !strings.Contains(said.text, "nobody has thought of it") ||
		last.Tally.Failed != 1 {
		t.Errorf("%v, %+v", answer, last.Tally)
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
	ended := make(chan any)
	go func() { _, answer := b.attempt(nil); ended <- answer }()
	select {
	case <-ran:
		t.Error("two attempts at a task at once")
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if answer := <-ended; !isDone(answer) {
		t.Error(answer)
	}
}

func put(t *testing.T, root store.Root, key, text string) flow.Document {
	t.Helper()
	must.Do(t, root.Put(key, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
	sum := sha256.Sum256([]byte(text))
	return flow.Document{Root: "outputs", Key: key, SHA256: hex.EncodeToString(sum[:])}
}

// TestPreview puts the small picture of a task into the store, for the job's page.
func TestPreview(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "preview.jpg")
	must.Do(t, os.WriteFile(file, []byte("picture"), 0o666))
	b.beat = 40 * time.Millisecond
	b.do = func(_ context.Context, o task.Options) error {
		o.Report(task.Progress{Task: "a", Step: 7, Preview: file})
		time.Sleep(200 * time.Millisecond) // a heartbeat tells it
		return nil
	}
	last, answer := b.attempt(nil)
	if !isDone(answer) || last.Preview != "" || last.Step != 7 {
		t.Errorf("%v, %+v", answer, last)
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

// TestGather has a table be made of the models that there are where the farm says that others have failed.
func TestGather(t *testing.T) {
	b := newBench(t)
	for _, gather := range []bool{false, true} {
		b.in.Gather = gather
		b.do = func(_ context.Context, o task.Options) error {
			if o.Gather != gather {
				t.Errorf("the task is told %v, want %v", o.Gather, gather)
			}
			return nil
		}
		if _, answer := b.attempt(nil); answer == nil {
			t.Error("it has no end")
		}
	}
}
