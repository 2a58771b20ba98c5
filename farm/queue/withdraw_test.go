package queue

import (
	"context"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const patience = time.Minute // for machines that do much else

// startServer gives the address of a bare server.
func startServer(t *testing.T, jetstream bool) string {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: jetstream, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

func dial(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// steps is a farm whose reconciler, worker and user do one step at a time.
type steps struct {
	t *testing.T
	q *Queue
	r *reconciler
	w *Worker
}

func newSteps(t *testing.T, tasks ...Task) *steps {
	t.Helper()
	return newStepsOf(t, Farm{}, tasks...)
}

func newStepsOf(t *testing.T, farm Farm, tasks ...Task) *steps {
	t.Helper()
	url := startServer(t, true)
	if err := Setup(t.Context(), dial(t, url), farm, Options{}); err != nil {
		t.Fatal(err)
	}
	s := &steps{t: t}
	var err error
	s.q, err = Connect(t.Context(), dial(t, url), Options{})
	s.must(err)
	s.r = newReconciler(s.q, ReconcileOptions{})
	s.w, err = s.q.Join(t.Context(), WorkerInfo{Node: "w"})
	s.must(err)
	t.Cleanup(s.w.Leave)
	s.must(s.q.Submit(t.Context(), JobPlan{Name: "j", Document: []byte("{}"), Tasks: tasks}))
	s.round(false)
	return s
}

func (s *steps) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *steps) round(count bool) {
	s.t.Helper()
	s.must(s.r.round(s.t.Context(), true, count, false))
}

// claim takes the task of that name, which must be there at once: not only when a lease of the length that farms have by default is over.
func (s *steps) claim(name string) *Lease {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience/4)
	defer cancel()
	lease, err := s.w.Claim(ctx, Slot{})
	if err != nil {
		s.t.Fatalf("claim %s: %v", name, err)
	}
	if lease.Task.Name != name {
		s.t.Fatalf("claimed %q, want %q", lease.Task.Name, name)
	}
	return lease
}

func (s *steps) succeed(name string) {
	s.t.Helper()
	s.must(s.claim(name).Succeed(s.t.Context(), "m"))
	s.round(false)
}

// meets has another slot get the message that is there, and answer it when late is called, as if it may not be claimed.
func (s *steps) meets() (late func()) {
	s.t.Helper()
	p, err := s.w.newPuller()
	s.must(err)
	var msg *nats.Msg
	for end := time.Now().Add(patience); msg == nil; { // a busy server may know of it a little later
		if msg = p.next(s.t.Context(), consumerOf(Normal, AnyPool)); msg == nil && time.Now().After(end) {
			s.t.Fatal("there is no message")
		}
	}
	return func() {
		s.t.Helper()
		s.must(s.q.nc.Publish(msg.Reply, []byte("+ACK")))
		s.must(s.q.nc.Flush())
		p.close()
	}
}

// TestLateAnswers has a worker answer the message of a task that might not be claimed when it looked, after it may be again: the task is called all the same.
func TestLateAnswers(t *testing.T) {
	t.Run("a needed task is made anew", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}})
		s.succeed("a")
		late := s.meets()
		s.must(s.q.Retry(t.Context(), "j", Selection{Tasks: []string{"a"}, Redo: true}))
		s.round(false)
		s.succeed("a")
		late()
		s.succeed("b")
	})
	t.Run("a needed task is redone, entries first", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}})
		s.succeed("a")
		late := s.meets()
		s.must(s.q.updateEntry(t.Context(), "j", 0, func(e *Entry) bool { e.State = Queued; return true }))
		s.round(false)
		late()
		s.succeed("a")
		s.succeed("b")
	})
	t.Run("pause", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"})
		late := s.meets()
		s.must(s.q.Pause(t.Context(), "j"))
		s.round(false)
		s.must(s.q.Resume(t.Context(), "j"))
		s.round(false)
		late()
		s.succeed("a")
	})
	t.Run("pause that the reconciler does not see", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"})
		late := s.meets()
		s.must(s.q.Pause(t.Context(), "j"))
		s.must(s.q.Resume(t.Context(), "j"))
		s.round(false)
		late()
		s.succeed("a")
	})
	t.Run("handed back in a pause", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"})
		lease := s.claim("a")
		s.must(s.q.Pause(t.Context(), "j"))
		s.round(false)
		s.must(lease.Handback(t.Context()))
		s.round(false)
		if s.r.boards["j"].cells[0].called {
			t.Error("a paused task is in front of workers")
		}
		s.must(s.q.Resume(t.Context(), "j"))
		s.round(false)
		s.succeed("a")
	})
	for _, alone := range []bool{true, false} {
		t.Run("retry", func(t *testing.T) {
			tasks := []Task{{Name: "a"}, {Name: "b", Needs: []int{0}}}
			if !alone {
				tasks = append(tasks, Task{Name: "c", Pool: "other"}) // the job has not ended
			}
			s := newSteps(t, tasks...)
			late := s.meets()
			s.must(s.q.updateEntry(t.Context(), "j", 0, func(e *Entry) bool { e.State = Failed; return true }))
			s.round(false)
			s.must(s.q.Retry(t.Context(), "j", Selection{}))
			s.round(false)
			late()
			s.succeed("a")
			s.succeed("b")
		})
	}
}

// TestHeldMessages has a head change while a task runs: the message of that task stays, so that another worker gets it when its own falls silent.
func TestHeldMessages(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b"})
	lease := s.claim("a")
	s.round(false)
	s.must(s.q.Pause(t.Context(), "j"))
	s.round(false)
	s.round(true)
	cells := s.r.boards["j"].cells
	if !cells[0].called || cells[1].called {
		t.Errorf("in the stream: %v, %v", cells[0].called, cells[1].called)
	}
	s.must(lease.Succeed(t.Context(), "m"))
	s.must(s.q.Resume(t.Context(), "j"))
	s.round(false)
	s.succeed("b")
}

// TestLostCall loses the message of a task that nobody has taken.
func TestLostCall(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	s.must(s.q.purge(t.Context(), jobStream, "jobs.>"))
	if !s.r.waits() {
		t.Error("nobody would look")
	}
	s.round(true)
	s.succeed("a")
}

// TestStuckCalls has a consumer hold fewer messages than there are: tasks are called anew, but for those that run.
func TestStuckCalls(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b"})
	lease := s.claim("a")
	s.round(true)
	held, err := s.r.heldCalls(t.Context())
	in := lane{Normal, AnyPool}
	if err != nil || held[in] != 2 || len(s.r.stuckCalls(held)) != 0 {
		t.Errorf("%v, %v", held, err)
	}
	list := s.r.stuckCalls(map[lane]uint64{in: 1})
	if len(list) != 1 || list[0].i != 1 {
		t.Fatalf("%+v", list)
	}
	s.must(s.r.recall(t.Context(), list))
	s.round(false)
	s.succeed("b")
	s.must(lease.Succeed(t.Context(), "m"))
}

// TestBehind has a worker ask a replica that does not know yet that a needed task has succeeded: the message is not lost.
func TestBehind(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Needs: []int{0}})
	s.succeed("a")
	s.must(s.q.updateEntry(t.Context(), "j", 0, func(e *Entry) bool { e.State = Verifying; return true }))
	_, answer, err := s.w.decide(t.Context(), call{"j", 1}, Slot{})
	if err != nil || answer != nak(2*time.Second) {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestPlanAway has a plan not be there when the reconciler first reads its job, as on a replica that is behind: the job runs once it is, and is read no more.
func TestPlanAway(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	head, err := s.q.Head(t.Context(), "j")
	s.must(err)
	key := partKey("j", head.Plan, 0)
	part, _, err := s.q.jobs.get(t.Context(), key)
	s.must(err)
	s.must(s.q.purge(t.Context(), s.q.jobs.stream, s.q.jobs.subject(key)))
	s.must(s.q.purge(t.Context(), jobStream, "jobs.>"))
	s.r = newReconciler(s.q, ReconcileOptions{})
	s.round(false)
	s.round(false)
	if len(s.r.broken) != 1 || len(s.r.boards) != 0 {
		t.Fatalf("without its plan: %v, %v", s.r.broken, s.r.boards)
	}
	s.must(s.q.jobs.put(t.Context(), key, part))
	s.round(false)
	s.succeed("a")
	if len(s.r.broken) != 0 {
		t.Error(s.r.broken)
	}
	// A job that is gone is forgotten.
	s.r.broken["nobody"] = 1
	s.round(false)
	if len(s.r.broken) != 0 {
		t.Error(s.r.broken)
	}
}

// TestPutBackBesideRecall puts a message back right before that of another task is removed: it comes at once, not after a lease.
func TestPutBackBesideRecall(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b"}, Task{Name: "c"})
	a := s.claim("a")
	s.must(a.Handback(t.Context()))
	s.must(s.q.nc.Flush())
	b := s.r.boards[tokenOf("j")]
	s.must(s.r.recall(t.Context(), []place{{b, 2}}))
	s.must(s.r.recall(t.Context(), []place{{b, 2}})) // is there no more
	s.claim("a")
	s.claim("b")
	s.nothing()
	s.round(true)
	s.claim("c")
}
