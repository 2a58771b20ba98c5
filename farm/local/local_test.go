package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/child"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	must "vksplat/internal/musttest"
)

// rig runs jobs with tasks that only pretend, on two devices.
type rig struct {
	t    *testing.T
	dir  string
	root store.Root
	doc  string
	o    Options
	do   func(ctx context.Context, o task.Options, name string) error // of a task; nil: it succeeds

	made func(o task.Options, made *store.Made) // of results; nil: as they are

	lock  sync.Mutex
	began []string // names of tasks, in the order in which they began
	notes []string
	noted func() // called after each

	reported func(t TaskStatus) // called of each change
}

func newRig(t *testing.T, tasks string) *rig {
	r := &rig{t: t, dir: t.TempDir(), noted: func() {}, doc: "version = 1\nname = \"j\"\n" + tasks}
	for _, name := range []string{"outputs", "inputs"} {
		must.Do(t, os.Mkdir(filepath.Join(r.dir, name), 0o777))
	}
	r.root = must.Get(store.Open(store.Options{URL: filepath.Join(r.dir, "outputs")}))(t)
	r.o = Options{KeepGoing: true, Others: 1, Roots: store.Roots{"inputs": {URL: filepath.Join(r.dir, "inputs")},
		"outputs": {URL: filepath.Join(r.dir, "outputs")}},
		Locks: filepath.Join(r.dir, "locks"), Devices: []task.Device{{Name: "one", UUID: "1"}, {Name: "two",
			UUID: "2"}}}
	return r
}

func (r *rig) call(o task.Options) string { return o.Plan.Tasks[o.Index].Name }

// run runs the job, and returns the states of its tasks and how that ended.
func (r *rig) run(ctx context.Context) (*Status, error) {
	r.t.Helper()
	o := r.o
	o.Job, o.Plan = spectest.Job(r.t, r.doc)
	for i := range o.Plan.Tasks {
		for _, key := range o.Plan.Tasks[i].Keys() {
			if strings.HasPrefix(key, "missing") {
				continue
			}
			if err := os.MkdirAll(filepath.Join(r.dir, "inputs", key), 0o777); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	o.Note = func(text string) {
		r.notes = append(r.notes, text)
		r.noted()
	}
	if r.reported != nil {
		o.Report = func(s *Status, i int) { r.reported(s.Tasks[i]) }
	}
	r.began, r.notes = nil, nil
	return run(ctx, o, func(ctx context.Context, o task.Options) (*store.Manifest, error) {
		r.lock.Lock()
		r.began = append(r.began, r.call(o))
		r.lock.Unlock()
		if r.do != nil {
			if err := r.do(ctx, o, r.call(o)); err != nil {
				return nil, err
			}
		}
		return r.commit(o)
	})
}

// commit puts results of a task into the store.
func (r *rig) commit(o task.Options) (*store.Manifest, error) {
	made := r.t.TempDir()
	if err := os.WriteFile(filepath.Join(made, "f"), []byte(r.call(o)), 0o666); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(made)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	key := task.KeyOf(o.Job, &o.Plan.Tasks[o.Index])
	generation, err := store.Generation(r.root, key)
	if err != nil {
		return nil, err
	}
	m := store.Made{Hash: o.Plan.Hash(o.Index), Attempt: 1, Generation: generation}
	if r.made != nil {
		r.made(o, &m)
	}
	committed, _, err := store.Commit(context.Background(), r.root, key, dir, []string{"f"}, m)
	return committed, err
}

// want compares the states of tasks, as in "a done, b failed", and which tasks began.
func (r *rig) want(s *Status, err error, states string, began ...string) {
	r.t.Helper()
	var words []string
	for _, t := range s.Tasks {
		words = append(words, fmt.Sprintf("%s %s", t.Task, t.State))
	}
	if got := strings.Join(words, ", "); err != nil || got != states {
		r.t.Errorf("%v, %s, want %s", err, got, states)
	}
	slices.Sort(r.began) // those that begin at once do so in any order
	slices.Sort(began)
	if !slices.Equal(r.began, began) {
		r.t.Errorf("began %q, want %q", r.began, began)
	}
}

const chain = "[[task]]\nkind = \"demo\"\nid = \"a\"\n[[task]]\nkind = \"train\"\nid = \"b\"\nsource = " +
	"\"@a\"\n[[task]]\nkind = \"convert\"\nid = \"c\"\nmodel = \"@b\"\nto = \"spz\"\n"

func dataError(text string) error {
	return &fault.Error{Op: "train", Err: errors.New(text), Hint: "mend it", Kind: fault.ErrData}
}

// TestOrder runs each task once, behind those that it needs; the same call again runs none.
func TestOrder(t *testing.T) {
	r := newRig(t, chain)
	s, err := r.run(t.Context())
	if !slices.Equal(r.began, []string{"a", "b", "c"}) {
		t.Errorf("began %q", r.began)
	}
	r.want(s, err, "a done, b done, c done", "a", "b", "c")
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b done, c done")
	if !s.Tasks[0].Before() {
		t.Error("it does not say that the task was done before")
	}
	r.o.Redo, r.o.Only = true, []string{"b"}
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b done, c done", "b", "c")
}

// TestFailure has a task fail for good: what needs it is skipped, the rest goes on. The next run does not try it again,
// says what it said, and does with Retry, or once the task was edited.
func TestFailure(t *testing.T) {
	r := newRig(t, chain+"[[task]]\nkind = \"demo\"\nid = \"d\"\n")
	r.do = func(_ context.Context, _ task.Options, name string) error {
		if name == "b" {
			return dataError("bad photos")
		}
		return nil
	}
	s, err := r.run(t.Context())
	r.want(s, err, "a done, b failed, c skipped, d done", "a", "d", "b")
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b failed, c skipped, d done")
	if b := &s.Tasks[1]; !b.Before() || !strings.Contains(b.Error, "bad photos") || b.Hint != "mend it" {
		t.Errorf("of the failure it says %+v", b)
	}
	before := r.doc
	r.doc = strings.Replace(r.doc, "source = \"@a\"", "source = \"@a\"\nset.iterations = 5", 1)
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b failed, c skipped, d done", "b")
	r.doc = before
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b failed, c skipped, d done", "b")
	r.do, r.o.Retry = nil, true
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b done, c done, d done", "b", "c")
}

// TestOtherTask names --redo for results of another task, which no worker can run.
func TestOtherTask(t *testing.T) {
	r := newRig(t, chain)
	r.do = func(context.Context, task.Options, string) error { return (&store.Manifest{}).Of("a", "other") }
	s, err := r.run(t.Context())
	r.want(s, err, "a failed, b skipped, c skipped", "a")
	if hint := s.Tasks[0].Hint; !strings.Contains(hint, "--redo") || !strings.Contains(hint, "another name") {
		t.Errorf("hint %q", hint)
	}
}

// TestKeepGoing begins nothing more once a task has failed.
func TestKeepGoing(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"a\"\n[[task]]\nkind = \"demo\"\nid = \"b\"\n")
	r.o.KeepGoing = false
	r.do = func(context.Context, task.Options, string) error { return dataError("bad") }
	s, err := r.run(t.Context())
	r.want(s, err, "a failed, b ready", "a")
}

// TestAttempts tries again what may pass, as often as the job says, and not what a store that is away has held up.
func TestAttempts(t *testing.T) {
	r := newRig(t,
		"retry.max_attempts = 3\nretry.backoff = \"1ms\"\n[[task]]\nkind = \"train\"\nid = \"a\"\nsource = \"x\"\n")
	r.do = func(context.Context, task.Options, string) error {
		return &child.Failure{Code: 139}
	}
	s, err := r.run(t.Context())
	r.want(s, err, "a failed", "a", "a", "a")
	if s.Tasks[0].Attempts != 3 {
		t.Errorf("%d attempts", s.Tasks[0].Attempts)
	}
	defer func(before time.Duration) { awayPause = before }(awayPause)
	awayPause = time.Millisecond
	r.do = func(context.Context, task.Options, string) error {
		if len(r.began) <= 5 {
			return fmt.Errorf("commit results: %w", syscall.ENOSPC)
		}
		return nil
	}
	r.o.Retry = true
	s, err = r.run(t.Context())
	r.want(s, err, "a done", "a", "a", "a", "a", "a", "a")
	if s.Tasks[0].Attempts != 1 {
		t.Errorf("%d attempts count", s.Tasks[0].Attempts)
	}
	for _, c := range []struct {
		err  error
		away bool
	}{{syscall.ENOSPC, true}, {&child.Failure{Code: 75, Causes: []error{syscall.ENOSPC}},
		true}, {&child.Failure{Code: 75, Text: "no space left on device"}, false},
		{dataError("no space left on device"), false}} {
		if task.IsAway(c.err) != c.away {
			t.Errorf("%v: away is %v", c.err, !c.away)
		}
	}
}

func TestBackoff(t *testing.T) {
	retry := &spec.Retry{Backoff: time.Second, BackoffMax: 5 * time.Second}
	for attempts, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second,
		4: 5 * time.Second, 1000: 5 * time.Second} {
		if got := retry.Pause(attempts); got != want {
			t.Errorf("after %d attempts %v, want %v", attempts, got, want)
		}
	}
}

// TestDevices runs a task on each device at a time, also where results still go to the store when the next one has
// begun, and those that are pinned where they are.
func TestDevices(t *testing.T) {
	r := newRig(t,
		"[[task]]\nkind = \"train\"\nid = \"t\"\nmatrix.source = [\"a\", \"b\", \"c\", \"d\", \"e\", "+
			"\"f\"]\n[[task]]\nkind = \"train\"\nid = \"pinned\"\nsource = \"a\"\npriority = \"high\"\npin.device = "+
			"\"two\"\n")
	var lock sync.Mutex
	users, most := map[string]int{}, 0
	both := make(chan struct{}, 2)
	r.do = func(_ context.Context, o task.Options, name string) error {
		lock.Lock()
		users[o.Device]++
		if users[o.Device] > 1 {
			t.Errorf("%s runs on %s beside another task", name, o.Device)
		}
		most = max(most, users["1"]+users["2"])
		lock.Unlock()
		if name == "pinned" && o.Device != "2" {
			t.Errorf("it is pinned to the other device than %s", o.Device)
		}
		if name == "pinned" || name == "t/source=a" { // the first two are there at the same time
			both <- struct{}{}
			for len(both) < 2 {
				time.Sleep(time.Millisecond)
			}
		}
		lock.Lock()
		users[o.Device]--
		lock.Unlock()
		for range 3 { // it says so again and again
			o.Report(task.Progress{Task: name, Free: true})
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	}
	s, err := r.run(t.Context())
	if err != nil || s.Counts()[Done] != 7 || most != 2 || !slices.Contains(r.began[:2], "pinned") {
		t.Errorf("%v, %v, %d at a time, began %q", err, s.Counts(), most, r.began)
	}
}

// TestTakenDevice waits for a device that another run of this machine uses.
func TestTakenDevice(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"train\"\nid = \"a\"\nsource = \"x\"\n")
	r.o.Devices = r.o.Devices[:1]
	must.Do(t, os.MkdirAll(r.o.Locks, 0o777))
	unlock, err := lockfile.Wait(t.Context(), LockFile(r.o.Locks, &r.o.Devices[0]), lockfile.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	var free atomic.Bool
	r.do = func(context.Context, task.Options, string) error {
		if !free.Load() {
			t.Error("it runs on a device that another run has")
		}
		return nil
	}
	r.noted = func() {
		free.Store(true)
		unlock()
	}
	s, err := r.run(t.Context())
	r.want(s, err, "a done", "a")
	if len(r.notes) != 1 || !strings.Contains(r.notes[0], "which another run on this machine uses") {
		t.Errorf("it says %q", r.notes)
	}
}

// TestStop stops a job: what runs is told why, does not count as failed, and the next run goes on.
func TestStop(t *testing.T) {
	r := newRig(t, chain)
	ctx, stop := context.WithCancel(t.Context())
	r.do = func(ctx context.Context, _ task.Options, name string) error {
		if name == "b" {
			stop()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}
	s, err := r.run(ctx)
	r.want(s, err, "a done, b ready, c waiting", "a", "b")
	r.do = nil
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b done, c done", "b", "c")
}

// TestLostDevice rests after a device was lost, and gives up once all were lost again and again. The task has not
// failed: the next run does it.
func TestLostDevice(t *testing.T) {
	defer func(before time.Duration) { coolDown = before }(coolDown)
	coolDown = time.Millisecond
	r := newRig(t,
		"retry.backoff = \"1ms\"\n[[task]]\nkind = \"train\"\nid = \"a\"\nsource = \"x\"\n")
	r.do = func(context.Context, task.Options, string) error {
		return &child.Failure{Code: 75, Causes: []error{fault.ErrDeviceLost}}
	}
	s, err := r.run(t.Context())
	if !errors.Is(err, errLost) || len(r.began) != 2*mostLost || s.Tasks[0].State == Failed {
		t.Errorf("%v after %d attempts, %+v", err, len(r.began), s.Tasks[0])
	}
	r.do = nil
	s, err = r.run(t.Context())
	r.want(s, err, "a done", "a")
}

// TestFirstFrames waits for approval of the first frames, and remembers that.
func TestFirstFrames(t *testing.T) {
	r := newRig(t,
		"[[task]]\nkind = \"render\"\nid = \"fly\"\nmodel = \"m\"\ntrajectory = \"orbit\"\nframes = \"0-3\"\nchunk = "+
			"4\nfirst = [0]\n")
	s, err := r.run(t.Context())
	if err != nil || s.Counts()[Done] != 1 || s.Counts()[Waiting] != 1 || !slices.Equal(r.began,
		[]string{"fly/first-0000"}) {
		t.Fatalf("%v, %v, %q", err, s.Counts(), r.began)
	}
	r.o.Inspected = true
	r.do = func(context.Context, task.Options, string) error { return dataError("bad") }
	if _, err = r.run(t.Context()); err != nil || len(r.began) != 1 {
		t.Fatalf("%v, %q", err, r.began)
	}
	r.o.Inspected, r.o.Retry, r.do = false, true, nil
	if s, err = r.run(t.Context()); err != nil || s.Counts()[Done] != 2 {
		t.Errorf("%v, %v", err, s.Counts())
	}
}

// TestOnly runs what is named and what that needs.
func TestOnly(t *testing.T) {
	r := newRig(t, chain+"[[task]]\nkind = \"demo\"\nid = \"d\"\n")
	r.o.Only = []string{"b*"}
	s, err := r.run(t.Context())
	r.want(s, err, "a done, b done, c excluded, d excluded", "a", "b")
	r.o.Only = []string{"nobody"}
	if _, err = r.run(t.Context()); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("of a task that is not there: %v", err)
	}
	r.o.Only = []string{"a", "nobody"}
	if _, err = r.run(t.Context()); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("of two, one of which does not exist: %v", err)
	}
}

// TestNoPlace refuses what is left to do here and could never be done here, and nothing else.
func TestNoPlace(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"train\"\nid = \"pinned\"\nsource = \"x\"\npin.device = \"three\"\n"+
		"[[task]]\nkind = \"demo\"\nid = \"film\"\n")
	refused := func(what, want string) {
		t.Helper()
		if _, err := r.run(t.Context()); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), want) ||
			len(r.began) > 0 {
			t.Errorf("%s: %v, began %q", what, err, r.began)
		}
	}
	here := r.o.Devices
	refused("a device that is not here", "task pinned (train) can run on none of these devices: it is pinned to")
	r.o.Devices = nil
	refused("no device", "task pinned (train) needs a device")
	r.o.Only, r.o.Others = []string{"film"}, 0
	refused("no place beside devices", "task film (demo) runs alongside tasks with a device")
	r.o.Others = 1
	s, err := r.run(t.Context())
	r.want(s, err, "pinned excluded, film done", "film")

	r.o.Only, r.o.Devices = nil, append(here, task.Device{Name: "three", UUID: "3"})
	s, err = r.run(t.Context())
	r.want(s, err, "pinned done, film done", "pinned")
	r.o.Devices, r.o.Others = nil, 0
	s, err = r.run(t.Context())
	r.want(s, err, "pinned done, film done")
	r.o.Redo = true
	refused("to make it again", "task pinned (train) needs a device")
	r.o.Redo = false
	s, err = r.run(t.Context()) // what was refused has outdated nothing
	r.want(s, err, "pinned done, film done")
}

// TestLacks fails at once what the machine cannot do, and looks again the next time.
func TestLacks(t *testing.T) {
	r := newRig(t, chain)
	r.o.Lacks = map[*spec.Kind]error{spec.KindConvert: errors.New("no such program")}
	s, err := r.run(t.Context())
	r.want(s, err, "a done, b done, c failed", "a", "b")
	r.o.Lacks = nil
	s, err = r.run(t.Context())
	r.want(s, err, "a done, b done, c done", "c")
}

// TestLacksHalts begins nothing behind a task that nothing here can do, where others do not go on.
func TestLacksHalts(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"convert\"\nid = \"a\"\nmodel = \"m\"\nto = \"spz\"\n"+
		"[[task]]\nkind = \"demo\"\nid = \"b\"\n")
	r.o.KeepGoing, r.o.Lacks = false, map[*spec.Kind]error{spec.KindConvert: errors.New("no such program")}
	s, err := r.run(t.Context())
	r.want(s, err, "a failed, b ready")
}
