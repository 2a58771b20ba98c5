package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/scene"
)

func (s *steps) head() Head {
	s.t.Helper()
	head, _, err := s.q.head(s.t.Context(), "j")
	s.must(err)
	return head
}

func (s *steps) entry(i int) *Entry {
	s.t.Helper()
	e, _, err := s.q.entry(s.t.Context(), "j", i)
	s.must(err)
	return e
}

// nothing wants no task to be claimed.
func (s *steps) nothing() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second/2)
	defer cancel()
	if lease, _ := s.w.Claim(ctx, Slot{}); lease != nil {
		s.t.Fatalf("claimed %q", lease.Task.Name)
	}
}

// mayClaim gives a task, or nil where there is none now.
func (s *steps) mayClaim() *Lease {
	s.t.Helper()
	p, err := s.w.newPuller()
	s.must(err)
	defer p.close()
	lease, err := p.sweep(s.t.Context(), Slot{}) // a claim that a deadline cuts off would count as an attempt
	s.must(err)
	return lease
}

// cutOff ends what is done behind its first n writes, each of which is logged.
func (s *steps) cutOff(n int, do func(context.Context) error) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	quiet := s.q.log
	s.q.log = slog.New(&countdown{slog.DiscardHandler, n, stop})
	err := do(ctx)
	s.q.log = quiet
	if err == nil {
		s.t.Fatal("nothing was interrupted")
	}
}

// countdown calls a function when so much was logged.
type countdown struct {
	slog.Handler
	left int
	stop func()
}

func (c *countdown) Enabled(context.Context, slog.Level) bool { return true }

func (c *countdown) Handle(context.Context, slog.Record) error {
	if c.left--; c.left == 0 {
		c.stop()
	}
	return nil
}

// TestRetryInterrupted ends a Retry right before its last step: the job, which has ended, has tasks that nobody is called to. The same command, or fsck, goes on.
func TestRetryInterrupted(t *testing.T) {
	for what, again := range map[string]func(s *steps){
		"retry": func(s *steps) { s.must(s.q.Retry(s.t.Context(), "j", Selection{})) },
		"redo":  func(s *steps) { s.must(s.q.Retry(s.t.Context(), "j", Selection{Redo: true})) },
		"fsck": func(s *steps) {
			for _, repair := range []bool{false, true} {
				found, err := s.q.Fsck(s.t.Context(), nil, repair)
				if err != nil || len(found) == 0 || found[0].Job != "j" || found[0].Repaired != repair {
					s.t.Fatal(found, err)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSteps(t, Task{Name: "a"})
			s.must(s.claim("a").Fail(t.Context(), errors.New("no photos")))
			s.round(false)
			if head := s.head(); head.Ended != JobFailed {
				t.Fatal(head)
			}
			s.must(s.q.updateEntries(t.Context(), "j", []int{0}, Selection{}.queueAgain))
			s.round(false)
			again(s)
			s.round(false)
			s.succeed("a")
			if head := s.head(); head.Ended != JobSucceeded {
				t.Error(head)
			}
		})
	}
}

// TestRedoInterrupted ends a Retry of what succeeded after each of its writes. The next retry of any kind, fsck or the reconciler goes on with it: what was made from the old
// results is made again, and nothing twice.
func TestRedoInterrupted(t *testing.T) {
	const writes = 4 // the head, then a task after the other
	redo := Selection{Tasks: []string{"a"}, Redo: true}
	for n := 1; n <= writes; n++ {
		for what, again := range map[string]func(s *steps) error{
			"retry":      func(s *steps) error { return s.q.Retry(s.t.Context(), "j", Selection{}) },
			"redo":       func(s *steps) error { return s.q.Retry(s.t.Context(), "j", redo) },
			"reconciler": func(s *steps) error { return nil },
			"fsck": func(s *steps) error {
				for _, repair := range []bool{false, true} {
					found, err := s.q.Fsck(s.t.Context(), nil, repair)
					if err != nil || len(found) == 0 || found[0].Job != "j" || found[0].Repaired != repair {
						return fmt.Errorf("%+v, %v", found, err)
					}
				}
				return nil
			},
		} {
			for _, done := range []bool{false, true} { // the first task again, meanwhile
				if done && n < 2 {
					continue
				}
				t.Run(fmt.Sprintf("%d writes, %s, %v", n, what, done), func(t *testing.T) {
					t.Parallel()
					lease := patience // in which the reconciler leaves the redo to whoever began it
					if what == "reconciler" {
						lease = time.Second
					}
					s := newStepsOf(t, Farm{Lease: Duration(lease)}, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}}, Task{Name: "c", Needs: []int{1}})
					for _, name := range []string{"a", "b", "c"} {
						s.succeed(name)
						s.round(false)
					}
					s.cutOff(n, func(ctx context.Context) error { return s.q.Retry(ctx, "j", redo) })
					s.round(false)
					if done { // by a message of before: nobody calls workers now
						b, _, err := s.q.open(t.Context(), "j")
						s.must(err)
						s.must(s.q.call(t.Context(), place{b, 0}))
						s.succeed("a")
						s.round(false)
					}
					s.must(again(s))
					if what == "reconciler" {
						time.Sleep(1100 * time.Millisecond)
					}
					for end := time.Now().Add(patience); s.head().Ended == ""; time.Sleep(10 * time.Millisecond) {
						s.round(false)
						if time.Now().After(end) {
							t.Fatalf("the job does not end: %+v", s.head())
						}
						if lease := s.mayClaim(); lease != nil {
							s.must(lease.Succeed(t.Context(), "new"))
						}
					}
					for i := range 3 {
						if e := s.entry(i); e.Generation != 1 || e.State != Succeeded || e.Attempt != 2 {
							t.Errorf("task %d: %+v", i, e)
						}
					}
					if head := s.head(); head.Ended != JobSucceeded || head.Redo != nil {
						t.Errorf("%+v", head)
					}
				})
			}
		}
	}
}

// TestDeleteInterrupted ends a Delete after each of its steps, and submits another job of the name: nothing that the first one did counts for it.
func TestDeleteInterrupted(t *testing.T) {
	const steps = 8
	for n := range steps {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSteps(t, Task{Name: "a"}, Task{Name: "b"})
			s.succeed("a")
			s.succeed("b")
			deleting, stop := context.WithCancel(t.Context())
			defer stop()
			purges := 0
			sub, err := s.q.nc.Subscribe("$JS.API.STREAM.PURGE.>", func(*nats.Msg) {
				if purges++; purges > n {
					stop()
				}
			})
			s.must(err)
			_ = s.q.Delete(deleting, "j")
			s.must(sub.Unsubscribe())
			if _, err := s.q.List(t.Context()); err != nil {
				t.Error("no job can be listed any more:", err)
			}
			other := JobPlan{Name: "j", Document: []byte("other"), Tasks: []Task{{Name: "z"}}}
			if err := s.q.Submit(t.Context(), other); err != nil {
				if !errors.Is(err, ErrForgotten) {
					t.Fatal(err)
				}
				if err := s.q.Retry(t.Context(), "j", Selection{Redo: true}); err == nil {
					t.Error("what is being forgotten is done again")
				}
				if found, err := s.q.Fsck(t.Context(), nil, true); n%2 == 0 && (err != nil || len(found) == 0 || !found[0].Repaired) {
					t.Error(found, err)
				}
				if err := s.q.Delete(t.Context(), "j"); err != nil && !errors.Is(err, ErrNoJob) {
					t.Fatal(err)
				}
				s.must(s.q.Submit(t.Context(), other))
			}
			s.round(false)
			s.round(false)
			if head := s.head(); head.Ended != "" {
				t.Fatalf("a job of which nothing was done has ended: %+v", head)
			}
			if lease := s.claim("z"); lease.Attempt != 1 || lease.Generation != 0 {
				t.Errorf("%+v", lease)
			} else {
				s.must(lease.Succeed(t.Context(), "m"))
			}
		})
	}
}

// TestRetired has somebody want a job again whose leavings are being removed.
func TestRetired(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	if err := s.q.Retire(t.Context(), "j"); !errors.Is(err, ErrNotEnded) {
		t.Error(err)
	}
	s.must(s.claim("a").Fail(t.Context(), errors.New("no photos")))
	s.round(false)
	s.must(s.q.Retire(t.Context(), "j"))
	if err := s.q.Retry(t.Context(), "j", Selection{}); !errors.Is(err, ErrForgotten) {
		t.Error(err)
	}
	s.must(s.q.Delete(t.Context(), "j"))
	if _, err := s.q.Head(t.Context(), "j"); !errors.Is(err, ErrNoJob) {
		t.Error(err)
	}
}

// TestRedoUnderWhatRuns refuses to make anew what a running task was begun with, and says what can be done.
func TestRedoUnderWhatRuns(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}})
	s.succeed("a")
	lease := s.claim("b")
	err := s.q.Retry(t.Context(), "j", Selection{Tasks: []string{"a"}, Redo: true})
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), `"b"`) || !strings.Contains(scene.Hint(err), "wait for its end") {
		t.Errorf("%v, hint %q", err, scene.Hint(err))
	}
	s.must(lease.Succeed(t.Context(), ""))
	s.must(s.q.Retry(t.Context(), "j", Selection{Tasks: []string{"a"}, Redo: true}))
}

// TestRedoHasNothingDone wants tasks that succeeded, and are wanted anew, to show nothing of how far they were: the one that waits for a worker, and the one that waits for it.
func TestRedoHasNothingDone(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}})
	for _, name := range []string{"a", "b"} {
		s.round(false)
		lease := s.claim(name)
		lease.Pace(2, "steps")
		lease.Progress(60, 60, "done")
		s.must(lease.Succeed(t.Context(), name))
	}
	s.round(false)
	if e := s.entry(1); e.Step != 60 || e.Message != "done" {
		t.Fatalf("%+v", e)
	}
	s.must(s.q.Retry(t.Context(), "j", Selection{Tasks: []string{"a"}, Redo: true}))
	_, tasks, err := s.q.Show(t.Context(), "j")
	s.must(err)
	for i, want := range []State{Queued, Blocked} {
		if e := tasks[i].Entry; tasks[i].State != want || e.Step != 0 || e.Of != 0 || e.Message != "" || e.Rate != 0 || e.Took != 0 {
			t.Errorf("%s: %+v", tasks[i].State, e)
		}
	}
}

// TestRedoOfWaiting wants a task anew while one that needs it waits for its next attempt: that attempt begins once the need is done again, and not at all where it fails.
func TestRedoOfWaiting(t *testing.T) {
	for _, works := range []bool{true, false} {
		s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}, Backoff: time.Millisecond}, Task{Name: "c"})
		first, c := s.claim("a"), s.claim("c") // which keeps the job from its end
		s.must(first.Succeed(t.Context(), "m"))
		s.round(false)
		s.must(s.claim("b").Retry(t.Context(), errors.New("device lost"), 0))
		s.round(false)
		s.must(s.q.Retry(t.Context(), "j", Selection{Tasks: []string{"a"}, Redo: true}))
		if _, answer, err := s.w.decide(t.Context(), call{"j", 1}, Slot{}); err != nil || answer != nak(2*time.Second) {
			t.Errorf("%q, %v", answer, err)
		}
		s.round(false)
		time.Sleep(10 * time.Millisecond)
		s.round(true)
		if works {
			s.succeed("a")
			s.round(true)
			s.succeed("b")
			s.must(c.Succeed(t.Context(), "m"))
			continue
		}
		s.must(s.claim("a").Fail(t.Context(), errors.New("no photos")))
		s.round(false)
		s.must(c.Succeed(t.Context(), "m"))
		s.round(false)
		if head := s.head(); head.Ended != JobFailed || head.Counts[Skipped] != 1 {
			t.Errorf("%+v", head)
		}
	}
}

// TestRedoOfClaimed has a worker claim a task right before what it needs is wanted anew: it is done again, after that.
func TestRedoOfClaimed(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}}, Task{Name: "c", Needs: []int{1}})
	s.succeed("a")
	b, _, err := s.q.open(t.Context(), "j")
	s.must(err)
	lease := s.claim("b") // after Retry has looked
	s.must(s.q.redo(t.Context(), b, []int{0, 1, 2}, &Redo{Number: 1, Selection: Selection{Redo: true}}))
	if err := lease.Succeed(t.Context(), "of the old a"); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if e := s.entry(1); e.State != Queued || e.Generation != 1 {
		t.Errorf("%+v", e)
	}
	s.round(true)
	s.succeed("a")
	s.succeed("b")
	s.succeed("c")
}

// TestRetryOfCanceling wants a task again that its worker has not stopped yet: it is done once it has stopped, or its worker is silent.
func TestRetryOfCanceling(t *testing.T) {
	for what, c := range map[string]struct {
		ends func(s *steps, l *Lease)
		want State
	}{
		"handed back": {func(s *steps, l *Lease) { s.must(l.Handback(s.t.Context())) }, Queued},
		"failed":      {func(s *steps, l *Lease) { s.must(l.Fail(s.t.Context(), errors.New("no photos"))) }, Queued},
		"tried again": {func(s *steps, l *Lease) { s.must(l.Retry(s.t.Context(), errors.New("device lost"), 0)) }, Queued},
		"done":        {func(s *steps, l *Lease) { s.must(l.Succeed(s.t.Context(), "m")) }, Succeeded},
		"canceled again": {func(s *steps, l *Lease) {
			s.must(s.q.Cancel(s.t.Context(), "j", Selection{Tasks: []string{"a"}}))
			s.must(l.Handback(s.t.Context()))
		}, Canceled},
		"silent": {func(s *steps, l *Lease) {
			s.must(s.q.updateEntry(s.t.Context(), "j", 0, func(e *Entry) bool { e.giveUp(&l.Task); return true }))
		}, Queued},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSteps(t, Task{Name: "a"})
			lease := s.claim("a")
			s.must(s.q.Cancel(t.Context(), "j", Selection{}))
			s.round(false)
			s.must(s.q.Retry(t.Context(), "j", Selection{}))
			s.round(false)
			if e := s.entry(0); e.State != Canceling {
				t.Fatalf("%+v", e)
			}
			c.ends(s, lease)
			s.round(false)
			e := s.entry(0)
			if e.State != c.want || e.Again || e.Generation != map[bool]int{true: 1}[c.want == Queued] {
				t.Fatalf("%+v", e)
			}
			if c.want == Queued && what != "silent" { // whose message comes when its time is up
				s.round(true)
				s.succeed("a")
			}
			if head := s.head(); head.Ended == "" && what != "silent" {
				t.Error(head)
			}
		})
	}
}

// TestClaimAsJobChanges has a worker claim a task after it has looked at the job, and others change that in between: either they see the claim, or it is given up.
func TestClaimAsJobChanges(t *testing.T) {
	t.Run("the reconciler sees it", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"})
		lease := s.claim("a") // of which the reconciler has not heard when the job is canceled
		s.must(s.q.Cancel(t.Context(), "j", Selection{}))
		s.must(s.r.readHeads(t.Context()))
		s.must(s.r.settle(t.Context(), "j", s.r.boards["j"]))
		if head, e := s.head(), s.entry(0); head.Ended != "" || e.State != Canceling {
			t.Errorf("the job has ended, %q, with a task that is %s", head.Ended, e.State)
		}
		s.must(lease.Handback(t.Context()))
		s.round(false)
		if head := s.head(); head.Ended != JobCanceled {
			t.Errorf("%+v", head)
		}
	})
	ctx := t.Context()
	for what, c := range map[string]struct {
		change func(s *steps) error
		answer string
	}{
		"nothing":  {func(*steps) error { return nil }, ""},
		"canceled": {func(s *steps) error { return s.q.Cancel(ctx, "j", Selection{}) }, "+ACK"},
		"paused":   {func(s *steps) error { return s.q.Pause(ctx, "j") }, "+ACK"},
		"redone":   {func(s *steps) error { return s.q.Retry(ctx, "j", Selection{Tasks: []string{"a"}, Redo: true}) }, nak(2 * time.Second)},
		"gone":     {func(s *steps) error { return s.q.purge(ctx, s.q.jobs.stream, s.q.jobs.subject("j")) }, nak(2 * time.Second)},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}})
			s.succeed("a")
			before := s.head()
			s.must(c.change(s))
			e, r, err := s.q.entry(ctx, "j", 1)
			s.must(err)
			e.claim(s.w, Slot{})
			_, err = s.q.writeEntry(ctx, "j", 1, e, r.revision)
			s.must(err)
			answer := s.w.lookBack(ctx, before, call{"j", 1}, &Task{Needs: []int{0}})
			if answer != c.answer {
				t.Fatalf("%q, want %q", answer, c.answer)
			}
			if answer == "" {
				return
			}
			s.must(s.w.unclaim(ctx, call{"j", 1}, "another"))
			s.must(s.w.unclaim(ctx, call{"j", 1}, e.Claim))
			if e := s.entry(1); e.State != Queued || e.Used != 0 || e.Attempt != 1 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestLimitsLowered lowers limits while many tasks are in front of workers: no more of them run than the limits say, and raised again they all do.
func TestLimitsLowered(t *testing.T) {
	tasks := make([]Task, 20)
	for i := range tasks {
		tasks[i].Name = fmt.Sprint(i)
	}
	for what, limits := range map[string]Limits{"user": {Users: map[string]int{"*": 2}}, "pool": {Pools: map[string]int{AnyPool: 2}}} {
		t.Run(what, func(t *testing.T) {
			s := newSteps(t, tasks...)
			first := s.claim("0")
			limit := func(now Limits) {
				_, err := s.q.ChangeLimits(t.Context(), func(old *Limits) error { *old = now; return nil })
				s.must(err)
				s.round(false)
			}
			limit(limits)
			second := s.claim("1")
			s.round(true)
			s.nothing()
			s.must(first.Succeed(t.Context(), "m"))
			s.round(false)
			third := s.claim("2")
			s.round(false)
			limit(Limits{})
			s.must(second.Succeed(t.Context(), "m"))
			s.must(third.Succeed(t.Context(), "m"))
			for i := 3; i < len(tasks); i++ {
				s.succeed(fmt.Sprint(i))
			}
		})
	}
}

// TestDrainAsTaskComes drains a node at once while one of its slots claims a task.
func TestDrainAsTaskComes(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	p, err := s.w.newPuller()
	s.must(err)
	defer p.close()
	var msg *nats.Msg
	for end := time.Now().Add(patience); msg == nil && time.Now().Before(end); {
		msg = p.next(t.Context(), consumerOf(Normal, AnyPool))
	}
	s.must(s.q.Drain(t.Context(), "w", true))
	for !s.w.Order().Now {
		time.Sleep(time.Millisecond)
	}
	lease, err := s.w.take(t.Context(), msg, Slot{}, time.Now())
	s.must(err)
	if cause := context.Cause(lease.Context()); !errors.Is(cause, ErrDrained) {
		t.Errorf("the task goes on: %v", cause)
	}
	s.must(lease.Handback(t.Context()))
}
