package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

const chain = "[[task]]\nkind = \"demo\"\nid = \"a\"\n[[task]]\nkind = \"train\"\nid = \"b\"\nsource = \"@a\"\n" +
	"[[task]]\nkind = \"convert\"\nid = \"c\"\nmodel = \"@b\"\nto = \"spz\"\n"

// seeds are so many small tasks.
func seeds(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(i))
	}
	return "matrix.seed = [" + strings.Join(list, ", ") + "]\n"
}

// TestChain runs tasks behind those that they need, each in the queue of its class, and none again that has results.
func TestChain(t *testing.T) {
	r := newRig(t, chain)
	r.do = func(_ context.Context, in flow.TaskInput) error { return r.commit(in) }
	s, err := r.run(flow.Settings{})
	r.want(s, 3, 0, 0, 0)
	if err != nil || !slices.Equal(r.began, []string{"a", "b", "c"}) || s.Before != 0 {
		t.Errorf("%v, %q, %+v", err, r.began, s)
	}
	for _, queue := range []string{"pool/any/cpu/demo", "pool/any/gpu", "pool/any/cpu/convert"} {
		if !r.queues[queue] || len(r.queues) != 3 {
			t.Errorf("queues %v, want %s among them", r.queues, queue)
		}
	}
	r.begin()
	s, err = r.run(flow.Settings{})
	r.want(s, 3, 0, 0, 0)
	if err != nil || len(r.began) != 0 || s.Before != 3 {
		t.Errorf("%v, again %q, %+v", err, r.began, s)
	}
}

// TestFailure skips what needs a failed task, does the rest, and says why.
func TestFailure(t *testing.T) {
	r := newRig(t, chain+"[[task]]\nkind = \"demo\"\nid = \"d\"\n")
	r.do = func(_ context.Context, in flow.TaskInput) error {
		if in.Task == "b" {
			return final("bad photos")
		}
		return nil
	}
	s, err := r.run(flow.Settings{})
	r.want(s, 2, 1, 1, 0)
	if len(s.Failures) != 1 || s.Failures[0] != (flow.Failure{Index: 1, Task: "b", Error: "bad photos",
		Hint: "look there"}) {
		t.Errorf("%+v", s.Failures)
	}
	if text, _, _ := failureOf(err); text != "1 of 4 tasks failed: b" {
		t.Errorf("%q", text)
	}
}

// onlyQueued has an activity be one that no worker has begun, until it is taken back.
func (r *rig) onlyQueued(ctx context.Context) error {
	r.lock.Lock()
	delete(r.running, activity.GetInfo(ctx).ActivityID)
	r.lock.Unlock()
	return taken(ctx)
}

// taken waits until the activity is taken back.
func taken(ctx context.Context) error {
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx)
		time.Sleep(time.Millisecond)
	}
	return temporal.NewCanceledError()
}

// TestHalt queues nothing more after a failure where keep_going is false, in all chunks. What runs comes to its end.
func TestHalt(t *testing.T) {
	r := newRig(t, "retry.keep_going = false\n[[task]]\nkind = \"demo\"\nid = \"d\"\n"+seeds(600)+
		"[[task]]\nkind = \"convert\"\nid = \"c\"\nmodel = \"x\"\nto = \"spz\"\nneeds = [\"d\"]\n")
	r.do = func(ctx context.Context, in flow.TaskInput) error {
		switch in.Index {
		case 550:
			if err := r.until(func() bool { return len(r.began) == 600 && len(r.running) == 2 }); err != nil {
				return err
			}
			return final("bad")
		case 3:
			return r.until(func() bool { return r.back == 598 }) // all others
		}
		return r.onlyQueued(ctx)
	}
	s, err := r.run(flow.Settings{})
	if r.want(s, 1, 1, 1, 598); err == nil || !s.Halted {
		t.Errorf("%v, %+v", err, s)
	}
}

// until waits for what other activities do.
func (r *rig) until(is func() bool) error {
	for {
		r.lock.Lock()
		ok := is()
		r.lock.Unlock()
		if ok {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// TestOtherPriority queues tasks again with another priority, or in another pool, while the job runs. Those that run
// go on for a priority, and move to other machines for a pool.
func TestOtherPriority(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"d\"\n"+seeds(6))
	begun, low, big := 0, "low", "big"
	r.do = func(ctx context.Context, in flow.TaskInput) error {
		info := activity.GetInfo(ctx)
		r.lock.Lock()
		if begun++; in.Index > 0 {
			delete(r.running, info.ActivityID)
		}
		n := begun
		r.lock.Unlock()
		switch {
		case info.TaskQueue == "pool/big/cpu/demo":
			return nil
		case n == 6:
			r.env.SignalWorkflow(flow.SetSignal, flow.Change{Priority: &low})
		case n == 11: // all but one are queued again
			r.env.SignalWorkflow(flow.SetSignal, flow.Change{Pool: &big})
		}
		return taken(ctx)
	}
	s, err := r.run(flow.Settings{})
	if r.want(s, 6, 0, 0, 0); err != nil {
		t.Error(err)
	}
	counts := map[string]int{}
	for _, q := range r.asked {
		counts[q.at]++
	}
	if fmt.Sprint(counts) != "map[pool/any/cpu/demo 3 anna:6 pool/any/cpu/demo 5 anna:5 pool/big/cpu/demo 5 anna:6]" {
		t.Error(counts)
	}
}

// TestLessMax takes tasks back when fewer may be queued.
func TestLessMax(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"d\"\n"+seeds(20))
	begun, two := 0, 2
	r.do = func(ctx context.Context, in flow.TaskInput) error {
		runs := in.Index == 0 || in.Index == 5
		r.lock.Lock()
		begun++
		n := begun
		if n <= 20 && !runs {
			delete(r.running, activity.GetInfo(ctx).ActivityID)
		}
		r.lock.Unlock()
		if n == 20 {
			r.env.SignalWorkflow(flow.SetSignal, flow.Change{Max: &two})
		}
		switch {
		case n > 20:
			return r.until(func() bool {
				if len(r.running) > 2 {
					t.Errorf("%d are queued, want 2", len(r.running))
				}
				return true
			})
		case runs:
			return r.until(func() bool { return r.back == 18 }) // all others
		}
		return taken(ctx)
	}
	s, err := r.run(flow.Settings{})
	if r.want(s, 20, 0, 0, 0); err != nil || begun != 38 {
		t.Errorf("%v after %d activities", err, begun)
	}
}

func (r *rig) names() []string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.began)
}

// TestChunks cuts 1,200 tasks into three chunks at most 500 long. Tasks that need some of an earlier chunk wait for its
// end, and are skipped where these have failed; others run at once.
func TestChunks(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "[[task]]\nkind = \"demo\"\nid = \"d\"\n%s", seeds(1100))
	b.WriteString("[[task]]\nkind = \"train\"\nid = \"m\"\nsource = \"x\"\n" + seeds(98))
	r := newRig(t,
		b.String()+"[[task]]\nkind = \"eval\"\nid = \"table\"\nmodels = [\"@m\"]\n[[task]]\nkind = \"demo\"\n"+
			"id = \"last\"\nneeds = [\"d\"]\n")
	r.env.SetTestTimeout(3 * time.Minute)
	o, err := r.e.outlineOf(t.Context(), r.document, owner)
	if err != nil || len(o.Chunks) != 3 {
		t.Fatalf("%v, %+v", err, o)
	}
	r.do = func(_ context.Context, in flow.TaskInput) error {
		if in.Index == 7 {
			return final("bad")
		}
		return nil
	}
	s, err := r.run(flow.Settings{})
	if err == nil {
		t.Error("nothing has failed")
	}
	r.want(s, len(r.plan.Tasks)-2, 1, 1, 0)
	if slices.Contains(r.began, "last") || !slices.Contains(r.began, "table") {
		t.Error("what needs the failed task began, or other tasks did not")
	}
}

// TestCut checks chunks: each task is in one, behind what it needs, and small groups are not cut.
func TestCut(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b,
			"[[task]]\nkind = \"demo\"\nid = \"d%d\"\n[[task]]\nkind = \"train\"\nid = \"m%d\"\nsource = \"@d%d\"\n"+
				"[[task]]\nkind = \"convert\"\nid = \"c%d\"\nmodel = \"@m%d\"\nto = \"spz\"\n", i, i, i, i, i)
	}
	_, plan := spectest.Job(t, "version = 1\nname = \"j\"\n"+b.String())
	seen, at := map[int]int{}, 0
	for k, span := range cut(plan, inOrder(plan)) {
		list, err := span.Tasks.list(MostTasks)
		if err != nil || len(list) != span.Count || len(span.Needs) > 0 || len(list)%3 != 0 {
			t.Errorf("chunk %d: %v, %d of %d tasks, needs %v", k, err, len(list), span.Count, span.Needs)
		}
		for _, i := range list {
			for _, need := range plan.Tasks[i].Needs {
				if _, there := seen[need]; !there {
					t.Errorf("task %d comes before %d, which it needs", i, need)
				}
			}
			seen[i], at = at, at+1
		}
	}
	if len(seen) != len(plan.Tasks) || seen[1] != 1 || seen[2] != 2 {
		t.Errorf("%d tasks of %d, the first model at %d", len(seen), len(plan.Tasks), seen[1])
	}
}

// TestPause stops what runs, and goes on when it is resumed.
func TestPause(t *testing.T) {
	r := newRig(t, chain+"[[task]]\nkind = \"demo\"\nid = \"d\"\n")
	yes, no := true, false
	r.do = func(ctx context.Context, in flow.TaskInput) error {
		switch n := len(slices.DeleteFunc(r.names(), func(s string) bool { return s != in.Task })); {
		case in.Task == "a" && n == 1:
			r.env.SignalWorkflow(flow.SetSignal, flow.Change{Paused: &yes})
			for ctx.Err() == nil {
				activity.RecordHeartbeat(ctx)
				time.Sleep(time.Millisecond)
			}
			return temporal.NewCanceledError()
		}
		return nil
	}
	r.env.SetOnActivityCanceledListener(func(info *activity.Info) {
		if info.ActivityID == flow.ActivityID(0, 1) {
			r.env.SignalWorkflow(flow.SetSignal, flow.Change{Paused: &no})
		}
	})
	s, err := r.run(flow.Settings{})
	r.want(s, 4, 0, 0, 0)
	if err != nil || len(r.began) < 5 || s.Paused {
		t.Errorf("%v, %q, %+v", err, r.began, s)
	}
}

// TestStopped counts the attempts of an activity that was stopped, and takes a failure that came just then for none:
// what it says is final is.
func TestStopped(t *testing.T) {
	r := &chunkJob{in: &chunkInput{KeepGoing: true}, tasks: make([]taskRun, 2), gone: map[int]bool{}}
	for _, c := range []struct {
		err    error
		phase  phase
		failed int
	}{
		{temporal.NewCanceledError(2), waiting, 2},
		{temporal.NewCanceledError(), waiting, 2},
		{temporal.NewApplicationError("crashed", "task"), waiting, 2},
		{final("bad"), failed, 2},
	} {
		r.tasks[0].phase, r.tasks[0].stopped = queued, true
		if r.take(nil, 0, c.err); r.tasks[0].phase != c.phase || r.tasks[0].failed != c.failed {
			t.Errorf("%v: %+v", c.err, r.tasks[0])
		}
	}
}

// TestBeginsPaused queues nothing until the job is resumed.
func TestBeginsPaused(t *testing.T) {
	r := newRig(t, chain)
	no := false
	r.env.RegisterDelayedCallback(func() {
		if len(r.names()) > 0 {
			t.Errorf("%q began", r.names())
		}
		v, err := r.env.QueryWorkflowByID(flow.ChunkID(flow.JobID(owner, "j"), 0), flow.StateQuery)
		var s flow.State
		if err == nil {
			err = v.Get(&s)
		}
		if err != nil || s.Waiting != 3 || !s.Paused {
			t.Errorf("%v, %+v", err, s)
		}
		r.env.SignalWorkflow(flow.SetSignal, flow.Change{Paused: &no})
	}, time.Hour)
	s, err := r.run(flow.Settings{Paused: true})
	if r.want(s, 3, 0, 0, 0); err != nil {
		t.Error(err)
	}
}

// TestCancel ends what runs, and the job as canceled.
func TestCancel(t *testing.T) {
	for _, paused := range []bool{false, true} {
		r := newRig(t, chain)
		r.do = func(ctx context.Context, in flow.TaskInput) error {
			if in.Task == "a" {
				return nil
			}
			r.env.CancelWorkflow()
			for ctx.Err() == nil {
				activity.RecordHeartbeat(ctx)
				time.Sleep(time.Millisecond)
			}
			return temporal.NewCanceledError(0)
		}
		want := 1
		if paused {
			want = 0
			r.env.RegisterDelayedCallback(r.env.CancelWorkflow, time.Hour)
		}
		s, err := r.run(flow.Settings{Paused: paused})
		if !temporal.IsCanceledError(err) {
			t.Errorf("paused %v: %v", paused, err)
		}
		_ = s
		if len(r.began) != 2*want {
			t.Errorf("paused %v: %q", paused, r.began)
		}
	}
}

// TestMax bounds how many tasks are queued at a time, over all chunks.
func TestMax(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"d\"\n"+seeds(600))
	r.do = func(context.Context, flow.TaskInput) error { time.Sleep(time.Millisecond); return nil }
	s, err := r.run(flow.Settings{Max: 3})
	r.want(s, 600, 0, 0, 0)
	if err != nil || r.most > 3 || r.most < 2 {
		t.Errorf("%v, %d at a time", err, r.most)
	}
}

// TestPriority gives tasks the priority of the document, or that of the job, and the owner as the key of fairness; the
// pool likewise.
func TestPriority(t *testing.T) {
	r := newRig(t,
		"pool = \"big\"\n[[task]]\nkind = \"demo\"\nid = \"a\"\npriority = \"high\"\n[[task]]\nkind = \"demo\"\n"+
			"id = \"b\"\npriority = \"low\"\n[[task]]\nkind = \"demo\"\nid = \"c\"\npool = \"small\"\n")
	for _, c := range []struct {
		settings flow.Settings
		want     string
	}{
		{flow.Settings{}, "[{a pool/big/cpu/demo 1 anna} {b pool/big/cpu/demo 5 anna} {c pool/small/cpu/demo 3 anna}]"},
		{flow.Settings{Priority: "low", Pool: "other"},
			"[{a pool/other/cpu/demo 5 anna} {b pool/other/cpu/demo 5 anna} {c pool/other/cpu/demo 5 anna}]"},
	} {
		_, err := r.run(c.settings)
		slices.SortFunc(r.asked, func(a, b asked) int { return strings.Compare(a.task, b.task) })
		if err != nil || fmt.Sprint(r.asked) != c.want {
			t.Errorf("%v: %v, want %s", err, r.asked, c.want)
		}
		r.begin()
	}
}

// TestFirstFrames waits for approval of the first frames.
func TestFirstFrames(t *testing.T) {
	r := newRig(t,
		"[[task]]\nkind = \"render\"\nid = \"fly\"\nmodel = \"m\"\ntrajectory = \"orbit\"\nframes = \"0-3\"\n"+
			"chunk = 4\nfirst = [0]\n")
	yes := true
	r.env.RegisterDelayedCallback(func() {
		if len(r.names()) != 1 {
			t.Errorf("%q began", r.names())
		}
		r.env.SignalWorkflow(flow.SetSignal, flow.Change{Inspected: &yes})
	}, time.Hour)
	s, err := r.run(flow.Settings{})
	if r.want(s, 2, 0, 0, 0); err != nil {
		t.Error(err)
	}
	r.begin()
	if err := local.NoteInspected(r.root, r.job); err != nil {
		t.Fatal(err)
	}
	if s, err = r.run(flow.Settings{}); err != nil || s.Done != 2 {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestOwners refuses a job of somebody else's name, and touches nothing.
func TestOwners(t *testing.T) {
	r := newRig(t, chain)
	if err := r.root.Put("j/@run/owner", func(w io.Writer) error {
		_, err := io.WriteString(w, "ben")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if s, err := r.run(flow.Settings{}); err == nil || s.Done != 0 || !strings.Contains(err.Error(), `holds results of "ben"`) {
		t.Errorf("anna's job ran over ben's results: %v, %+v", err, s)
	}
}

// TestOneRoot refuses results among the inputs, at the submitter's and at the server, whose roots may be others.
func TestOneRoot(t *testing.T) {
	r := newRig(t, chain)
	apart := r.e.Roots
	one := store.Roots{"outputs": apart["outputs"], "inputs": {URL: apart["outputs"].URL + "/j"}}
	if _, err := flow.Put(t.Context(), one, r.job, owner); !errors.Is(err, fault.ErrSetup) {
		t.Errorf("submitted: %v", err)
	}
	r.e.Roots = one
	if s, err := r.run(flow.Settings{}); err == nil || s.Done != 0 || !strings.Contains(err.Error(),
		"among the inputs") {
		t.Errorf("planned: %v, %+v", err, s)
	}
}
