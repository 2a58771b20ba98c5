package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// farm is a server with a submitter, a worker and an administrator, for tests that do step by step what those do.
type farm struct {
	t      *testing.T
	server *Server
	user   *queue.Queue
	admin  *queue.Queue
	worker *queue.Worker
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	t.Parallel() // they mostly wait
	s := startServer(t)
	f := &farm{t: t, server: s, user: connect(t, s, Submit), admin: connect(t, s, Admin)}
	f.worker = f.join("one", "gpu24")
	return f
}

func (f *farm) join(node string, pools ...string) *queue.Worker {
	f.t.Helper()
	w, err := connect(f.t, f.server, Work).Join(f.t.Context(), queue.WorkerInfo{Node: node, Pools: pools})
	f.must(err)
	f.t.Cleanup(w.Leave)
	return w
}

func (f *farm) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *farm) submit(plan queue.JobPlan) {
	f.t.Helper()
	f.must(f.user.Submit(f.t.Context(), plan))
}

// claim takes the next task, which must be of that name.
func (f *farm) claim(name string) *queue.Lease {
	f.t.Helper()
	lease := f.claimAny()
	if lease.Task.Name != name {
		f.t.Fatalf("claimed %q, want %q", lease.Task.Name, name)
	}
	return lease
}

// claimAny takes the next task.
func (f *farm) claimAny() *queue.Lease {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	lease, err := f.worker.Claim(ctx, queue.Slot{Device: "cpu", Driver: "none"})
	f.must(err)
	return lease
}

// nothing checks that no task can be claimed for a while.
func (f *farm) nothing() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 400*time.Millisecond)
	defer cancel()
	if lease, err := f.worker.Claim(ctx, queue.Slot{}); lease != nil {
		f.t.Fatalf("claimed %q: %v", lease.Task.Name, err)
	}
}

func (f *farm) succeed(name string) {
	f.t.Helper()
	f.must(f.claim(name).Succeed(f.t.Context(), "manifest"))
}

// states waits until the tasks of a job are in these states.
func (f *farm) states(job string, want ...queue.State) []queue.TaskStatus {
	f.t.Helper()
	var tasks []queue.TaskStatus
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var err error
		_, tasks, err = f.user.Show(f.t.Context(), job)
		f.must(err)
		got := make([]queue.State, len(tasks))
		for i := range tasks {
			got[i] = tasks[i].State
		}
		if slices.Equal(got, want) {
			return tasks
		}
		if time.Now().After(end) {
			f.t.Fatalf("states %v, want %v", got, want)
		}
	}
}

func (f *farm) ends(job string, want queue.JobState) {
	f.t.Helper()
	most := patience
	if os.Getenv(longVariable) == "1" {
		most = 10 * patience // of ten thousand tasks
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), most)
	defer cancel()
	status, err := f.user.Wait(ctx, job)
	if err != nil || status.State != want {
		f.t.Fatalf("job is %q: %v, want %q", status.State, err, want)
	}
}

func cause(t *testing.T, l *queue.Lease, want error) {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(patience):
	}
	if got := context.Cause(l.Context()); got != want {
		t.Fatalf("lease ended by %v, want %v", got, want)
	}
}

func TestRetriesAndAttempts(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a", MaxAttempts: 2, Backoff: 50 * time.Millisecond}, {Name: "b", Needs: []int{0}}}})
	first := f.claim("a")
	f.must(first.Handback(ctx)) // does not count
	second := f.claim("a")
	if second.Attempt != 2 {
		t.Fatalf("%+v", second)
	}
	f.must(second.Retry(ctx, errors.New("device lost"), 0))
	f.states("j", queue.RetryWait, queue.Blocked)
	f.must(f.claim("a").Retry(ctx, errors.New("device lost again"), 0))
	tasks := f.states("j", queue.Failed, queue.Skipped)
	f.ends("j", queue.JobFailed)
	if e := tasks[0].Entry; e.Attempt != 3 || len(e.Failures) != 2 || e.Error != "device lost again" || e.Failures[0].Device != "cpu" || e.Failures[0].Version != "test" {
		t.Errorf("%+v", e)
	}
	f.must(f.user.Retry(ctx, "j", queue.Selection{}))
	again := f.claim("a")
	if again.Generation != 1 || again.Attempt != 4 {
		t.Errorf("%+v", again)
	}
	f.must(again.Fail(ctx, errors.New("no such scene")))
	f.ends("j", queue.JobFailed)
	f.must(f.user.Retry(ctx, "j", queue.Selection{Tasks: []string{"a"}}))
	f.succeed("a")
	f.succeed("b")
	f.ends("j", queue.JobSucceeded)
}

func TestCancel(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b"}, {Name: "c", Needs: []int{1}}}})
	running := f.claim("a")
	f.must(f.user.Cancel(ctx, "j", queue.Selection{Tasks: []string{"b"}}))
	f.states("j", queue.Running, queue.Canceled, queue.Skipped)
	f.must(f.user.Cancel(ctx, "j", queue.Selection{}))
	cause(t, running, queue.ErrCanceled)
	if err := running.Verify(ctx); !errors.Is(err, queue.ErrCanceled) {
		t.Error("a canceled task may commit:", err)
	}
	f.states("j", queue.Canceling, queue.Canceled, queue.Canceled)
	f.must(running.Handback(ctx))
	f.ends("j", queue.JobCanceled)
	f.nothing()
	// Only what is retried comes back.
	f.must(f.user.Retry(ctx, "j", queue.Selection{Tasks: []string{"a"}}))
	f.succeed("a")
	f.ends("j", queue.JobCanceled)
	f.must(f.user.Retry(ctx, "j", queue.Selection{}))
	f.succeed("b")
	f.succeed("c")
	f.ends("j", queue.JobSucceeded)
}

func TestCancelOfSilentWorker(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a", Stall: time.Millisecond}}})
	stuck := f.claim("a")
	cause(t, stuck, queue.ErrStalled)
	f.must(f.user.Cancel(t.Context(), "j", queue.Selection{}))
	f.ends("j", queue.JobCanceled) // though the worker never answers
	if err := stuck.Succeed(t.Context(), "late"); !errors.Is(err, queue.ErrLost) {
		t.Error("a task that was given up succeeds:", err)
	}
}

func TestStalledAndLateAttempts(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "b", Timeout: time.Millisecond}, {Name: "a", Stall: time.Millisecond}}})
	late, stalled := f.claim("b"), f.claim("a") // in this order: that of a stalled task is soon nobody's
	cause(t, stalled, queue.ErrStalled)
	cause(t, late, queue.ErrTimeout)
	f.must(late.Retry(t.Context(), queue.ErrTimeout, time.Hour))
	again := f.claim("a") // its owner is silent now
	if again.Attempt != 2 {
		t.Errorf("%+v", again)
	}
	if err := stalled.Verify(t.Context()); !errors.Is(err, queue.ErrLost) {
		t.Error("a lost lease ends work:", err)
	}
	cause(t, stalled, queue.ErrStalled)
}

func TestPauseAndInspect(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "first", Inspect: true}, {Name: "rest", Needs: []int{0}}}})
	f.must(f.user.Pause(ctx, "j"))
	f.nothing()
	f.must(f.user.Resume(ctx, "j"))
	f.succeed("first")
	f.states("j", queue.Succeeded, queue.Blocked)
	f.nothing()
	if status, tasks, err := f.user.Show(ctx, "j"); err != nil || status.State != queue.JobInspect || !tasks[1].Inspect || status.Changed.Before(status.Submitted) {
		t.Error(status, tasks, err)
	}
	f.must(f.user.Resume(ctx, "j"))
	f.succeed("rest")
	f.ends("j", queue.JobSucceeded)
}

func TestRedoFrames(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "fly/0001-0050"}, {Name: "fly/0051-0100"}, {Name: "video", Needs: []int{0, 1}}}})
	f.succeed("fly/0001-0050")
	f.succeed("fly/0051-0100")
	f.succeed("video")
	f.ends("j", queue.JobSucceeded)
	frames, err := queue.ParseFrames("60-70x2")
	f.must(err)
	f.must(f.user.Retry(ctx, "j", queue.Selection{Frames: &frames, Redo: true}))
	f.states("j", queue.Succeeded, queue.Queued, queue.Blocked)
	if again := f.claim("fly/0051-0100"); again.Generation != 1 {
		t.Errorf("%+v", again)
	} else {
		f.must(again.Succeed(ctx, "new"))
	}
	f.succeed("video")
	f.ends("j", queue.JobSucceeded)
}

// called waits until so many tasks are in the stream that workers take them from.
func (f *farm) called(n int) {
	f.t.Helper()
	var info struct{ State struct{ Messages int } }
	for end := time.Now().Add(patience); info.State.Messages != n; time.Sleep(10 * time.Millisecond) {
		answer, err := f.server.nc.Request("$JS.API.STREAM.INFO.JOBS", nil, patience)
		f.must(err)
		f.must(json.Unmarshal(answer.Data, &info))
		if time.Now().After(end) {
			f.t.Fatalf("%d tasks are called, want %d", info.State.Messages, n)
		}
	}
}

func TestOrder(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.must(f.admin.Drain(ctx, "one", false))
	if _, err := f.worker.Claim(ctx, queue.Slot{}); !errors.Is(err, queue.ErrDrained) {
		for end := time.Now().Add(patience); !errors.Is(err, queue.ErrDrained) && time.Now().Before(end); {
			_, err = f.worker.Claim(ctx, queue.Slot{})
		}
	}
	for _, plan := range []queue.JobPlan{
		{Name: "low", Priority: queue.Low, Tasks: []queue.Task{{Name: "l"}}},
		{Name: "old", Tasks: []queue.Task{{Name: "o1"}, {Name: "o2"}}},
		{Name: "new", Tasks: []queue.Task{{Name: "n"}}},
		{Name: "high", Priority: queue.High, Tasks: []queue.Task{{Name: "h", Pool: "gpu24"}}},
		{Name: "other", Priority: queue.High, Tasks: []queue.Task{{Name: "x", Pool: "a100"}}},
		{Name: "mixed", Tasks: []queue.Task{{Name: "m1", Priority: queue.Low}, {Name: "m2", Priority: queue.High}, {Name: "m3"}}},
	} {
		f.submit(plan)
	}
	f.called(9)
	f.must(f.admin.Undrain(ctx, "one"))
	f.must(f.worker.Await(ctx))
	var got []string
	for range 8 {
		lease, err := f.worker.Claim(ctx, queue.Slot{})
		f.must(err)
		f.must(lease.Succeed(ctx, "m"))
		got = append(got, lease.Task.Name)
	}
	if want := "h m2 o1 o2 n m3 l m1"; strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
	f.nothing()
	jobs, err := f.user.List(ctx)
	f.must(err)
	var list []string
	for _, job := range jobs {
		list = append(list, fmt.Sprintf("%s %s", job.Name, job.State))
	}
	if want := "low succeeded, old succeeded, new succeeded, high succeeded, other active, mixed succeeded"; strings.Join(list, ", ") != want {
		t.Errorf("list %v, want %s", list, want)
	}
}

func TestLimits(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.limit(queue.Limits{Users: map[string]int{"ann": 2}, Pools: map[string]int{"gpu24": 1}})
	f.submit(queue.JobPlan{Name: "bob", Owner: "bob", Tasks: []queue.Task{{Name: "b1", Pool: "gpu24"}, {Name: "b2", Pool: "gpu24"}}})
	f.submit(queue.JobPlan{Name: "ann", Owner: "ann", Tasks: []queue.Task{{Name: "a1"}, {Name: "a2"}, {Name: "a3"}}})
	f.called(3) // else that of the other pool may come first
	b1 := f.claim("b1")
	a1 := f.claim("a1")
	f.claim("a2")
	f.nothing()
	f.must(b1.Succeed(ctx, "m"))
	f.claim("b2")
	f.must(a1.Succeed(ctx, "m"))
	f.claim("a3")
}

func TestFailFast(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", FailFast: true, Tasks: []queue.Task{{Name: "a"}, {Name: "b"}}})
	f.must(f.claim("a").Fail(t.Context(), errors.New("bad")))
	f.states("j", queue.Failed, queue.Skipped)
	f.ends("j", queue.JobFailed)
	f.nothing()
}

func TestQuarantine(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}})
	f.must(f.claim("a").Fail(ctx, errors.New("the task's own fault")))
	for _, name := range []string{"b", "c", "d"} {
		f.must(f.claim(name).Retry(ctx, errors.New("no device"), time.Hour))
	}
	f.quarantined("no device")
	f.must(f.admin.Undrain(ctx, "one"))
	f.must(f.worker.Await(ctx))
	// What becomes of these tasks later is no new failure of the node.
	f.must(f.user.Cancel(ctx, "j", queue.Selection{Tasks: []string{"b", "c", "d"}}))
	f.ends("j", queue.JobFailed)
	if nodes, err := f.user.Nodes(ctx); err != nil || len(nodes) != 1 || nodes[0].Quarantine != "" {
		t.Error("in quarantine again:", nodes, err)
	}
}

func TestDrainNow(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
	lease := f.claim("a")
	f.must(f.admin.Drain(ctx, "one", true))
	cause(t, lease, queue.ErrDrained)
	f.must(lease.Handback(ctx))
	f.worker = f.join("two")
	if lease = f.claim("a"); lease.Attempt != 2 {
		t.Errorf("%+v", lease)
	}
}

func TestSubmitTwice(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	plan := queue.JobPlan{Name: "j", Document: []byte("1"), Tasks: []queue.Task{{Name: "a"}}}
	f.submit(plan)
	f.submit(plan)
	other := plan
	other.Document = []byte("2")
	if err := f.user.Submit(ctx, other); !errors.Is(err, queue.ErrExists) {
		t.Error(err)
	}
	if doc, err := f.user.Document(ctx, "j"); err != nil || string(doc) != "1" {
		t.Errorf("%q, %v", doc, err)
	}
	if err := f.admin.Delete(ctx, "j"); !errors.Is(err, queue.ErrNotEnded) {
		t.Error(err)
	}
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
	f.must(f.admin.Delete(ctx, "j"))
	if _, _, err := f.user.Show(ctx, "j"); !errors.Is(err, queue.ErrNoJob) {
		t.Error(err)
	}
	f.submit(other)
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
}

func TestLogsAndProgress(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
	lease := f.claim("a")
	if err := f.user.Logs(ctx, "j", 7, nil, func(queue.LogLine) error { return errors.New("a line") }); err != nil {
		t.Error(err)
	}
	heard := make(chan queue.Progress, 1)
	watching, stop := context.WithTimeout(ctx, patience)
	go func() {
		for watching.Err() == nil { // the first ones may be said before anybody listens
			time.Sleep(10 * time.Millisecond)
			lease.Progress(time.Now().UnixNano(), 100, "lossy")
		}
	}()
	go func() {
		_ = f.user.Progress(watching, "j", func(p queue.Progress) {
			select {
			case heard <- p:
			default:
			}
		})
	}()
	if p := receive(t, heard); p.Job != "j" || p.Attempt != 1 || p.Message != "lossy" {
		t.Errorf("%+v", p)
	}
	stop()
	lease.Log("one")
	lease.Log("two")
	var got []string
	enough := errors.New("enough")
	err := f.user.Logs(ctx, "j", -1, make(chan struct{}), func(line queue.LogLine) error {
		if got = append(got, line.Text); len(got) == 1 {
			go lease.Log("three")
		}
		if len(got) == 3 {
			return enough
		}
		return nil
	})
	if err != enough || strings.Join(got, " ") != "one two three" {
		t.Error(got, err)
	}
	// It ends when it is told to, with what was said before.
	until := make(chan struct{})
	got = nil
	err = f.user.Logs(ctx, "j", -1, until, func(line queue.LogLine) error {
		if got = append(got, line.Text); len(got) == 3 {
			lease.Log("four")
			f.must(lease.Handback(ctx)) // behind it on the same connection
			close(until)
		}
		return nil
	})
	if err != nil || strings.Join(got, " ") != "one two three four" {
		t.Error(got, err)
	}
}

// TestOtherFormat has a newer program write into the farm.
func TestOtherFormat(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
	nc, err := f.server.Connect("newer")
	f.must(err)
	defer nc.Close()
	f.called(1)
	_, err = nc.Request("$KV.job.j", []byte(`{"format":2,"name":"j"}`), patience)
	f.must(err)
	if lease, err := f.worker.Claim(ctx, queue.Slot{}); !errors.Is(err, queue.ErrFormat) {
		t.Error(lease, err)
	}
	_, err = nc.Request("$KV.ctl.farm", []byte(`{"format":2}`), patience)
	f.must(err)
	if _, err := queue.Connect(ctx, nc, queue.Options{}); !errors.Is(err, queue.ErrFormat) || scene.Hint(err) == "" {
		t.Error(err)
	}
}
