package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.temporal.io/sdk/worker"
)

// server plays Temporal's queues, and the pollers that the SDK has for each of them.
type server struct {
	t     *testing.T
	slots *slots
	took  time.Duration // a task
	blind bool          // nobody may ask how many tasks there are

	mutex   sync.Mutex
	tasks   map[string][]int // priorities of tasks that are queued
	began   []string         // queues of tasks that began
	running int
	most    int
	polls   map[string]int // that gave nothing
}

// emptyPoll is how long a poll without a task holds its slot.
const emptyPoll = 3 * time.Second

type reservation struct {
	sdk.SlotReservationInfo
	queue string
}

func (r *reservation) TaskQueue() string { return r.queue }

type mark struct {
	sdk.SlotMarkUsedInfo
	permit *sdk.SlotPermit
}

func (m *mark) Permit() *sdk.SlotPermit { return m.permit }

type release struct {
	sdk.SlotReleaseInfo
	permit *sdk.SlotPermit
}

func (r *release) Permit() *sdk.SlotPermit { return r.permit }

func newServer(t *testing.T, n int, took time.Duration) *server {
	s := &server{t: t, slots: newSlots(n), took: took, tasks: map[string][]int{}, polls: map[string]int{}}
	s.slots.backlog = func(_ context.Context, queues []string) ([]int, error) {
		if s.blind {
			return nil, errBlind
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		urgency := make([]int, len(queues))
		for i, q := range queues {
			if len(s.tasks[q]) > 0 {
				urgency[i] = slices.Min(s.tasks[q])
			}
		}
		return urgency, nil
	}
	return s
}

func (s *server) add(queue string, n, priority int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.tasks[queue] = append(s.tasks[queue], slices.Repeat([]int{priority}, n)...)
}

// poll is what the SDK does for a queue.
func (s *server) poll(ctx context.Context, queue string) {
	for ctx.Err() == nil {
		permit, err := s.slots.ReserveSlot(ctx, &reservation{queue: queue})
		if err != nil {
			return
		}
		s.mutex.Lock()
		if len(s.tasks[queue]) == 0 {
			s.polls[queue]++
			s.mutex.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(emptyPoll):
			}
			s.slots.ReleaseSlot(&release{permit: permit})
			continue
		}
		s.tasks[queue] = s.tasks[queue][1:]
		s.began = append(s.began, queue)
		s.running++
		s.most = max(s.most, s.running)
		s.mutex.Unlock()
		s.slots.MarkSlotUsed(&mark{permit: permit})
		go func() {
			time.Sleep(s.took)
			s.mutex.Lock()
			s.running--
			s.mutex.Unlock()
			s.slots.ReleaseSlot(&release{permit: permit})
		}()
	}
}

// run runs all queues until check, which is called again and again, says that it is enough.
func (s *server) run(queues []string, check func(began []string) bool) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.slots.serve(ctx) })
	for _, q := range queues {
		group.Go(func() { s.poll(ctx, q) })
	}
	for {
		time.Sleep(time.Millisecond)
		s.mutex.Lock()
		began := slices.Clone(s.began)
		s.mutex.Unlock()
		if check(began) {
			break
		}
	}
	cancel()
	group.Wait()
	time.Sleep(s.took + time.Second) // what runs ends
	s.slots.mutex.Lock()
	defer s.slots.mutex.Unlock()
	if s.slots.free != s.slots.most || s.slots.out != 0 {
		s.t.Errorf("%d slots of %d are free, %d are out", s.slots.free, s.slots.most, s.slots.out)
	}
}

// many are the queues of a device.
func many() (queues []string) {
	for i := range 15 {
		queues = append(queues, fmt.Sprint("class ", i))
	}
	return queues
}

// TestOtherClass begins the only task of a class next, whatever number of another class waits, and never two on a
// device.
func TestOtherClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1, time.Second)
		s.add("class 3", 300, 3)
		added := -1
		s.run(many(), func(began []string) bool {
			if len(began) == 10 && added < 0 {
				added = len(began)
				s.add("class 7", 1, 3)
			}
			return slices.Contains(began, "class 7") || len(began) > 20
		})
		if at := slices.Index(s.began, "class 7"); at != added {
			t.Errorf("the only task of its class began after %d others, want %d", at, added)
		}
		if s.most != 1 {
			t.Errorf("%d tasks ran on one device", s.most)
		}
		if len(s.polls) > 0 {
			t.Errorf("polls without a task: %v", s.polls)
		}
	})
}

// TestTurns gives queues of the same urgency their turns, and more urgent ones go first.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1, time.Second)
		s.add("class 1", 4, 3)
		s.add("class 2", 4, 3)
		s.add("class 3", 2, 1)
		s.run(many(), func(began []string) bool { return len(began) == 10 })
		counts := map[string]int{}
		for i, q := range s.began {
			counts[q]++
			if i < 2 && q != "class 3" {
				t.Errorf("task %d is of %s, less urgent than others", i, q)
			}
			if d := counts["class 1"] - counts["class 2"]; d < -1 || d > 1 {
				t.Errorf("no turns: %q", s.began)
			}
		}
	})
}

// TestSlots runs as many tasks at a time as there are slots, and no more.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 3, time.Second)
		s.add("class 1", 20, 3)
		s.add("class 2", 20, 3)
		s.run(many(), func(began []string) bool { return len(began) == 40 })
		if s.most != 3 {
			t.Errorf("%d tasks at a time, want 3", s.most)
		}
	})
}

// TestBlind polls queues in turn where the server does not say how many tasks there are: none starves.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1, 100*time.Millisecond)
		s.blind = true
		s.add("class 3", 300, 3)
		s.add("class 7", 1, 3)
		s.run(many(), func(began []string) bool { return slices.Contains(began, "class 7") })
		if at := slices.Index(s.began, "class 7"); at > 1 {
			t.Errorf("the only task of its class began after %d others", at)
		}
	})
}

// TestIdle asks seldom where there is nothing to do, and begins soon what comes; in queues that had tasks at once.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1, time.Second)
		var asked atomic.Int64
		ask := s.slots.backlog
		s.slots.backlog = func(ctx context.Context, queues []string) ([]int, error) {
			asked.Add(int64(len(queues)))
			return ask(ctx, queues)
		}
		from, came := time.Now(), time.Time{}
		s.run(many(), func(began []string) bool {
			n := len(began)
			switch {
			case came.IsZero() && time.Since(from) > time.Minute:
				looks := int(time.Minute / idleEvery)
				if most := looks + (looks/allEvery+2)*len(many()); asked.Load() > int64(most) {
					t.Errorf("asked for %d queues in a minute, want at most %d", asked.Load(), most)
				}
				came = time.Now()
				s.add("class 9", 1, 3)
			case n > 0 && !came.IsZero():
				late, most := time.Since(came), (allEvery+1)*idleEvery // the class is new
				if n == 2 {
					most = idleEvery + time.Second
				}
				if late > most {
					t.Errorf("task %d began after %v", n, late)
				}
				from, came = time.Now(), time.Time{}
				asked.Store(0)
			}
			return n == 2
		})
	})
}

// TestNotNow grants nothing while the device is another process's, while the place rests, and once it is closed.
func TestNotNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 1, time.Second)
		from := time.Now()
		var taken atomic.Bool
		taken.Store(true)
		s.slots.ready = func() (func(), bool) { return func() {}, !taken.Load() }
		s.slots.rest(10 * time.Second)
		s.add("class 1", 3, 3)
		s.run(many(), func(began []string) bool {
			switch since := time.Since(from); {
			case since > 20*time.Second && len(began) == 0:
				taken.Store(false)
			case len(began) > 0 && since < 20*time.Second:
				t.Errorf("begun after %v", since)
			case len(began) == 1:
				s.slots.close()
			}
			return time.Since(from) > time.Minute
		})
		if len(s.began) != 1 {
			t.Errorf("%d tasks began, want 1", len(s.began))
		}
	})
}

// TestLeaves lets the next task begin while results of the last go to the store, but not of too many.
func TestLeaves(t *testing.T) {
	s := newSlots(1)
	s.backlog = func(_ context.Context, q []string) ([]int, error) { return slices.Repeat([]int{1}, len(q)), nil }
	released := 0
	s.ready = func() (func(), bool) { return func() { released++ }, true }
	go s.serve(t.Context())
	var out []*sdk.SlotPermit
	for range 1 + mostLeft {
		p, err := s.ReserveSlot(t.Context(), &reservation{queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		s.MarkSlotUsed(&mark{permit: p})
		s.leaves(s.current())
		out = append(out, p)
	}
	got := make(chan *sdk.SlotPermit)
	go func() { p, _ := s.ReserveSlot(t.Context(), &reservation{queue: "q"}); got <- p }()
	select {
	case <-got:
		t.Fatal("too many tasks have left their device")
	case <-time.After(50 * time.Millisecond):
	}
	s.ReleaseSlot(&release{permit: out[0]})
	<-got
	if released != 1+mostLeft {
		t.Errorf("the device was given back %d times, want %d", released, 1+mostLeft)
	}
}
