package queue

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var schedules = flag.Int("schedules", 4, "random schedules of TestSchedules, from -schedule on")
var firstSchedule = flag.Uint64("schedule", 118, "seed of the first")

// made is a task's results in the store of a schedule.
type made struct {
	generation int
	value      int         // unlike that of any other results
	of         map[int]int // values of what it was made from, by task
}

// plot is a farm in which everything happens in a random order: each step is one of a worker, a user, an administrator, a reconciler, or a mishap.
type plot struct {
	*steps
	random  *rand.Rand
	plan    JobPlan
	pullers []*puller
	alive   []*working
	gone    []*working // whose lease was taken from them: they may yet wake
	results map[int]*made
	redone  map[int]int // generation below which results do not count, by task
	values  int
	highest []int // attempt, by task
	limited bool  // there are limits, and no task is declined
	limit   int   // of tasks at once, 0: none
	said    []string
}

// working is an attempt.
type working struct {
	*Lease
	of map[int]int
}

func newPlot(t *testing.T, seed uint64) *plot {
	p := &plot{random: rand.New(rand.NewPCG(seed, 2)), results: map[int]*made{}, redone: map[int]int{}, limited: seed%2 == 0}
	tasks := make([]Task, 3+p.random.IntN(5))
	for i := range tasks {
		tasks[i] = Task{Name: fmt.Sprint(i), Backoff: time.Millisecond, BackoffMax: time.Millisecond, MaxAttempts: 3}
		for need := range i {
			if p.random.IntN(3) == 0 {
				tasks[i].Needs = append(tasks[i].Needs, need)
			}
		}
	}
	p.steps = newStepsOf(t, Farm{Lease: Duration(time.Second)}, tasks...)
	p.plan = JobPlan{Name: "j", Document: []byte("{}"), Tasks: tasks}
	p.highest = make([]int, len(tasks))
	for i := range 2 {
		w, err := p.q.Join(t.Context(), WorkerInfo{Node: fmt.Sprint("w", i)})
		p.must(err)
		t.Cleanup(w.Leave)
		puller, err := w.newPuller()
		p.must(err)
		t.Cleanup(puller.close)
		p.pullers = append(p.pullers, puller)
	}
	return p
}

func (p *plot) say(format string, args ...any) { p.said = append(p.said, fmt.Sprintf(format, args...)) }

func (p *plot) failed(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s, after %q", fmt.Sprintf(format, args...), p.said)
}

// begin claims a task, if there is one, and does what run-task and its worker do before the work.
func (p *plot) begin() {
	lease, err := p.pullers[p.random.IntN(len(p.pullers))].sweep(p.t.Context(), Slot{})
	p.must(err)
	if lease == nil {
		return
	}
	i := lease.Index
	p.say("claim %d attempt %d generation %d", i, lease.Attempt, lease.Generation)
	if lease.Attempt <= p.highest[i] {
		p.failed("attempt %d of task %d after %d", lease.Attempt, i, p.highest[i])
	}
	p.highest[i] = lease.Attempt
	if lease.Generation > p.redone[i] {
		p.redone[i] = lease.Generation
	}
	if r := p.results[i]; r != nil && r.generation < p.redone[i] {
		delete(p.results, i)
	}
	w := &working{lease, map[int]int{}}
	for _, need := range lease.Task.Needs {
		if p.results[need] == nil {
			p.failed("task %d is claimed, and there are no results of %d", i, need)
		}
		w.of[need] = p.results[need].value
	}
	p.alive = append(p.alive, w)
	if n := p.running(); p.limit > 0 && n > p.limit {
		p.failed("%d tasks run, %d may", n, p.limit)
	}
}

// running counts tasks that are worked on.
func (p *plot) running() (n int) {
	for i := range p.plan.Tasks {
		if p.entry(i).State.owned() {
			n++
		}
	}
	return n
}

// commit puts results to the store as store.Commit does.
func (p *plot) commit(w *working) bool {
	i := w.Index
	if p.redone[i] > w.Generation {
		return false
	}
	if p.results[i] == nil {
		p.values++
		p.results[i] = &made{w.Generation, p.values, w.of}
	}
	return true
}

// end ends an attempt in some way; one whose lease another has taken may not.
func (p *plot) end(list *[]*working, lost bool) {
	if len(*list) == 0 {
		return
	}
	at := p.random.IntN(len(*list))
	w := (*list)[at]
	*list = slices.Delete(*list, at, at+1)
	ctx := p.t.Context()
	how := p.random.IntN(8)
	p.say("end %d attempt %d how %d lost %v", w.Index, w.Attempt, how, lost)
	var err error
	switch how {
	case 0:
		err = w.Fail(ctx, errors.New("no photos"))
	case 1:
		err = w.Retry(ctx, errors.New("device lost"), 0)
	case 2:
		err = w.Handback(ctx)
	case 3: // tasks that were declined do not count against limits
		if p.limited {
			err = w.Handback(ctx)
			break
		}
		err = w.Decline(ctx, "no root", time.Millisecond)
	case 4: // its results are there, and nobody hears of it
		if p.commit(w) {
			p.must(p.q.updateEntry(ctx, "j", w.Index, func(e *Entry) bool {
				mine := e.Claim == w.entry.Claim && e.State.owned()
				if mine {
					e.giveUp(&w.Task)
				}
				return mine
			}))
		}
		err = w.Handback(ctx)
	default:
		if !p.commit(w) {
			err = w.Retry(ctx, errors.New("out of date"), 0)
		} else {
			err = w.Succeed(ctx, fmt.Sprint(p.results[w.Index].value))
		}
	}
	if lost && err == nil {
		p.failed("a task that was given up is ended by its old owner")
	}
	if err != nil && !errors.Is(err, ErrLost) {
		p.failed("%v", err)
	}
}

// silence takes a task from an owner that may wake later.
func (p *plot) silence() {
	if len(p.alive) == 0 {
		return
	}
	at := p.random.IntN(len(p.alive))
	w := p.alive[at]
	p.say("silence %d attempt %d", w.Index, w.Attempt)
	p.must(p.q.updateEntry(p.t.Context(), "j", w.Index, func(e *Entry) bool {
		mine := e.Claim == w.entry.Claim && e.State.owned()
		if mine {
			e.giveUp(&w.Task)
			e.Beat++
		}
		return mine
	}))
	p.alive = slices.Delete(p.alive, at, at+1)
	p.gone = append(p.gone, w)
}

// ask is a command of a user: it may be refused for what the job is, and for nothing else.
func (p *plot) ask(what string, err error) {
	if !errors.Is(err, ErrNothing) {
		p.say("%s: %v", what, err)
	}
	if err != nil && !errors.Is(err, ErrNothing) && !errors.Is(err, ErrNoTask) && !slices.Contains([]string{"retry", "redo"}, what) {
		p.failed("%s: %v", what, err)
	}
}

func (p *plot) some() Selection {
	if p.random.IntN(2) == 0 {
		return Selection{}
	}
	return Selection{Tasks: []string{fmt.Sprint(p.random.IntN(len(p.plan.Tasks)))}}
}

func (p *plot) step() {
	ctx := p.t.Context()
	switch n := p.random.IntN(100); {
	case n < 30:
		p.begin()
	case n < 50:
		p.end(&p.alive, false)
	case n < 53:
		p.end(&p.gone, true)
	case n < 57:
		p.silence()
	case n < 75:
		p.say("round")
		p.round(p.random.IntN(2) == 0)
	case n < 78:
		p.say("reconciler changes")
		p.r = newReconciler(p.q, ReconcileOptions{})
	case n < 80:
		p.ask("cancel", p.q.Cancel(ctx, "j", p.some()))
	case n < 84:
		p.ask("retry", p.q.Retry(ctx, "j", p.some()))
	case n < 88:
		s := p.some()
		s.Redo = true
		p.ask("redo", p.q.Retry(ctx, "j", s))
	case n < 90:
		p.say("retry is interrupted")
		p.must(p.q.updateEntries(ctx, "j", []int{p.random.IntN(len(p.plan.Tasks))}, Selection{}.queueAgain))
	case n < 92:
		p.ask("pause", p.q.Pause(ctx, "j"))
	case n < 94:
		p.ask("resume", p.q.Resume(ctx, "j"))
	case n < 96:
		p.say("messages are lost")
		p.must(p.q.purge(ctx, jobStream, "jobs.>"))
	case n < 98:
		p.check(true)
	case p.limited:
		p.limits(p.random.IntN(3))
	}
}

// limits bounds how many tasks run. What runs goes on.
func (p *plot) limits(n int) {
	_, err := p.q.ChangeLimits(p.t.Context(), func(l *Limits) error {
		*l = Limits{}
		if n > 0 {
			l.Users = map[string]int{"*": n}
		}
		return nil
	})
	p.must(err)
	p.round(true)
	p.limit = n
	if n > 0 {
		p.limit = max(n, p.running())
	}
	p.say("limit %d", p.limit)
}

// check is fsck.
func (p *plot) check(repair bool) []Finding {
	p.t.Helper()
	found, err := p.q.Fsck(p.t.Context(), p, repair)
	p.must(err)
	p.say("fsck %+v", found)
	return found
}

// Jobs implements Inventory.
func (p *plot) Jobs(_ context.Context, fn func(JobPlan, error) error) error { return fn(p.plan, nil) }

// Add implements Inventory.
func (p *plot) Add([]byte) error { return nil }

// Manifest implements Inventory.
func (p *plot) Manifest(_ context.Context, _ string, i int, _ Task) (string, int, error) {
	if r := p.results[i]; r != nil && r.generation >= p.redone[i] {
		return fmt.Sprint(r.value), r.generation, nil
	}
	return "", 0, nil
}

// Attempts implements Inventory.
func (p *plot) Attempts(_ context.Context, _ string, i int) (int, error) { return p.highest[i], nil }

// finish lets the farm have rest until the job has ended, and looks at what came of it.
func (p *plot) finish() {
	ctx := p.t.Context()
	p.say("rest")
	p.limits(0)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for len(p.alive) > 0 {
			p.end(&p.alive, false)
		}
		p.ask("resume", p.q.Resume(ctx, "j"))
		p.round(true)
		if head := p.head(); head.Ended == JobSucceeded {
			break
		} else if head.Ended != "" {
			p.ask("retry", p.q.Retry(ctx, "j", Selection{}))
		}
		p.begin()
	}
	if head := p.head(); head.Ended != JobSucceeded {
		for i := range p.plan.Tasks {
			p.say("%d needs %v: %+v, in front of workers: %v", i, p.plan.Tasks[i].Needs, *p.entry(i), p.r.boards["j"].cells[i].called)
		}
		p.failed("the job does not end: %+v", head)
	}
	for i := range p.plan.Tasks {
		e, r := p.entry(i), p.results[i]
		if r == nil || e.Manifest != fmt.Sprint(r.value) || r.generation < p.redone[i] {
			p.failed("task %d has succeeded with %q, and the store has %+v", i, e.Manifest, r)
		}
		for need, value := range r.of {
			if p.results[need].value != value {
				p.failed("task %d was made from results of %d that were wanted anew: %v", i, need, maps.Collect(maps.All(r.of)))
			}
		}
	}
}

// TestSchedules has workers, users, administrators and reconcilers do their steps in random orders: every task ends with results that the queue and the store agree on,
// and that were made from those of what it needs; no attempt has the number of another; limits hold.
func TestSchedules(t *testing.T) {
	for i := range *schedules {
		seed := *firstSchedule + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPlot(t, seed)
			for range 150 {
				p.step()
			}
			p.finish()
		})
	}
}
