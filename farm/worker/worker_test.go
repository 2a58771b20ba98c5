package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"vksplat/farm/task"
)

// words keeps what a worker says.
type words struct {
	mutex sync.Mutex
	list  []string
}

func (w *words) note(text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.list = append(w.list, text)
}

func (w *words) has(text string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return strings.Contains(strings.Join(w.list, "\n"), text)
}

// one is a machine of one device.
var one = []task.Device{card("one")}

// quick shortens pauses.
func quick(t *testing.T) {
	t.Helper()
	before := idleEvery
	idleEvery = 10 * time.Millisecond
	t.Cleanup(func() { idleEvery = before })
}

// TestDevices does every task once, on all devices, never two on one at a time, and tells the server.
func TestDevices(t *testing.T) {
	quick(t)
	f := newFarm(t)
	f.add("gpu", 20)
	f.add("vram-4", 20)
	var mutex sync.Mutex
	on, did := map[string]int{}, map[string]int{}
	places := Options{Devices: []task.Device{card("one"), card("two")}, Others: 1}
	f.work(places, func(_ context.Context, o task.Options) error {
		mutex.Lock()
		if on[o.Device]++; on[o.Device] > 1 || o.Device == "" {
			t.Errorf("%d tasks on the device %q", on[o.Device], o.Device)
		}
		did[o.Device]++
		mutex.Unlock()
		time.Sleep(2 * time.Millisecond)
		mutex.Lock()
		defer mutex.Unlock()
		on[o.Device]--
		return nil
	})
	for _, class := range []string{"gpu", "vram-4"} {
		for i := range 20 {
			token := fmt.Sprint(class, i)
			f.until(token+" is done", func() bool { return len(f.ended(token)) > 0 })
			if ends := f.ended(token); len(ends) != 1 || !isDone(ends[0]) {
				t.Errorf("%s: %v", token, ends)
			}
		}
	}
	if did["one"] == 0 || did["two"] == 0 || did["one"]+did["two"] != 40 {
		t.Errorf("done by devices: %v", did)
	}
}

// TestServerLost goes on with a task while the server is away, tells how it ended once it is back, and takes the next.
func TestServerLost(t *testing.T) {
	quick(t)
	f := newFarm(t)
	f.beat = 200 * time.Millisecond
	f.add("gpu", 2)
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	var said words
	f.work(Options{Devices: one, Note: said.note}, func(ctx context.Context, _ task.Options) error {
		begun <- struct{}{}
		select {
		case <-ctx.Done():
			t.Errorf("the task is stopped: %v", context.Cause(ctx))
		case <-finish:
		}
		return nil
	})
	<-begun
	f.Down()
	f.until("the worker says that the farm is away", func() bool { return said.has("does not respond") })
	time.Sleep(3 * f.beat) // the server would have given it up
	close(finish)
	time.Sleep(300 * time.Millisecond) // the first answer is lost
	f.Up()
	for _, token := range []string{"gpu0", "gpu1"} {
		f.until(token+" is done", func() bool { return len(f.ended(token)) == 1 && isDone(f.ended(token)[0]) })
	}
	if !said.has("the farm responds again") {
		t.Error(said.list)
	}
}

// TestAnswerAgain gives an answer again that the server could not take, and none that it does not want.
func TestAnswerAgain(t *testing.T) {
	quick(t)
	for name, c := range map[string]struct {
		err  error
		want int // tries
	}{
		"starting": {serviceerror.NewUnavailable("starting"), 3},
		"slow":     {serviceerror.NewDeadlineExceeded("busy"), 3},
		"gone":     {serviceerror.NewNotFound("no such activity"), 1},
		"refused":  {serviceerror.NewPermissionDenied("not one of one", ""), 1},
	} {
		f := newFarm(t)
		var ran atomic.Bool
		var tries atomic.Int64
		began := time.Now()
		f.refuse = func() error { // of polls too, but there is no second one before
			if ran.Load() && tries.Add(1) < 3 {
				return c.err
			}
			return nil
		}
		f.add("gpu", 1)
		stop := f.work(Options{Devices: one}, func(context.Context, task.Options) error {
			ran.Store(true)
			return nil
		})
		f.until("the answer", func() bool { return int(tries.Load()) >= c.want })
		stop()
		if done := len(f.ended("gpu0")) == 1; done != (c.want == 3) || int(tries.Load()) != c.want {
			t.Errorf("%s: after %d tries it is done: %v", name, tries.Load(), done)
		}
		if name == "slow" && time.Since(began) < 2*reportEvery {
			t.Errorf("a server with too much to do was asked three times within %v", time.Since(began))
		}
	}
}

// TestStop hands tasks back that have saved, and takes no other.
func TestStop(t *testing.T) {
	quick(t)
	f := newFarm(t)
	f.pollFor = time.Hour
	f.add("gpu", 1)
	begun := make(chan struct{})
	stop := f.work(Options{Devices: []task.Device{card("one"), card("idle")}, Others: 2},
		func(ctx context.Context, o task.Options) error {
			o.Report(task.Progress{Free: true}) // its results go to the store
			close(begun)
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // it saves
			f.add("gpu", 1)
			return context.Cause(ctx)
		})
	<-begun
	stop()
	ends := f.ended("gpu0")
	if len(ends) != 1 {
		t.Fatalf("%d answers", len(ends))
	}
	if said, is := f.failureOf(ends[0]); !is || said.final || said.delay != time.Millisecond || said.last.Tally.Open ||
		said.text != task.ErrStopped.Error() {
		t.Errorf("%+v", ends[0])
	}
	if list := f.queues["pool/any/gpu"]; len(list) != 1 {
		t.Error("a worker that is to end took another task")
	}
}

// TestBeats tells the server how far the task is, often enough that it does not give the worker up, before it begins
// and not after its end.
func TestBeats(t *testing.T) {
	quick(t)
	f := newFarm(t)
	f.beat = 400 * time.Millisecond
	f.add("gpu", 1)
	from := time.Now()
	f.work(Options{Devices: one}, func(_ context.Context, o task.Options) error {
		f.mutex.Lock()
		if len(f.beats["gpu0"]) == 0 {
			t.Error("it runs before the server has heard of it")
		}
		f.mutex.Unlock()
		for step := range 100 {
			o.Report(task.Progress{Task: "a", Step: step})
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	f.until("the task is done", func() bool { return len(f.ended("gpu0")) > 0 })
	took := time.Since(from)
	f.mutex.Lock()
	n, last := len(f.beats["gpu0"]), f.beats["gpu0"][len(f.beats["gpu0"])-1]
	f.mutex.Unlock()
	if most := int(4*took/f.beat) + 2; n < 3 || n > most || last.Step < 50 || last.Host == "" || last.Device != "one" || !last.Tally.Open {
		t.Errorf("%d heartbeats in %v, the last %+v", n, took, last)
	}
	time.Sleep(3 * f.beat / 4)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if more := len(f.beats["gpu0"]); more != n {
		t.Errorf("%d heartbeats after the end", more-n)
	}
}

// TestRefusedToken stops a task whose token the server does not take, says nothing of its end, and takes the next one.
func TestRefusedToken(t *testing.T) {
	quick(t)
	f := newFarm(t)
	f.beat = 200 * time.Millisecond
	f.reply = func(token string, _ int) (*heard, error) {
		if token == "gpu0" {
			return nil, serviceerror.NewPermissionDenied("the task is not one of one", "")
		}
		return &heard{}, nil
	}
	f.add("gpu", 2)
	var said words
	f.work(Options{Devices: one, Note: said.note}, func(ctx context.Context, _ task.Options) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(f.beat):
			return nil
		}
	})
	f.until("the second is done", func() bool { return len(f.ended("gpu1")) == 1 })
	if ends := f.ended("gpu0"); len(ends) != 0 || said.has("does not respond") || said.has("refuses") {
		t.Errorf("%v, %q", ends, said.list)
	}
}

// TestRefusedMachine says that the farm refuses this machine, once, and goes on asking.
func TestRefusedMachine(t *testing.T) {
	quick(t)
	f := newFarm(t)
	var refused atomic.Bool
	refused.Store(true)
	f.refuse = func() error {
		if refused.Load() {
			return serviceerror.NewPermissionDenied("Request unauthorized.", "the pass of one was revoked")
		}
		return nil
	}
	f.add("gpu", 1)
	var said words
	f.work(Options{Devices: one, Note: said.note}, func(context.Context, task.Options) error {
		return nil
	})
	f.until("it says so", func() bool { return said.has("the farm refuses this machine: the pass of one was revoked") })
	refused.Store(false)
	f.until("the task is done", func() bool { return len(f.ended("gpu0")) == 1 })
}

// TestPlaces wants a worker to have one.
func TestPlaces(t *testing.T) {
	f := newFarm(t)
	err := Run(t.Context(), Options{Roots: f.roots, Locks: t.TempDir()})
	if err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestUnknownClass asks a server that refuses one of the queues, as its version does not know the class, for tasks of
// the others, and polls only those that have some.
func TestUnknownClass(t *testing.T) {
	quick(t)
	f := newFarm(t)
	f.unknown = "vram-"
	f.add("gpu", 1)
	stop := f.work(Options{Devices: one}, func(context.Context, task.Options) error { return nil })
	defer stop()
	f.until("the task is done", func() bool { return len(f.ended("gpu0")) == 1 })
	time.Sleep(3 * f.pollFor)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for queue := range f.polls {
		if !strings.HasSuffix(queue, "/gpu") {
			t.Errorf("%s was polled", queue)
		}
	}
}
