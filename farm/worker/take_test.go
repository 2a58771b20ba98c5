package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vksplat/farm/wire"
)

// queues play a server's, in the time of synctest.
type queues struct {
	t     *testing.T
	place *place
	took  time.Duration // a task
	blind bool          // nobody may ask how many tasks there are
	leave time.Duration // after so long a task needs its slot no more; 0: it does until its end

	mutex   sync.Mutex
	tasks   map[string][]int // priorities of tasks that are queued
	began   []string         // queues of tasks that began
	using   int              // tasks that use a slot
	running int
	most    int
	mostRun int
	polls   map[string]int // that gave nothing
	asked   int            // queues
}

// emptyPoll is how long a poll without a task holds its slot.
const emptyPoll = 3 * time.Second

func newQueues(t *testing.T, n int, took time.Duration) *queues {
	q := &queues{t: t, took: took, tasks: map[string][]int{}, polls: map[string]int{}}
	q.place = newPlace(&worker{}, nil, n, many())
	q.place.backlog, q.place.ask, q.place.begin = q.backlog, q.poll, q.begin
	return q
}

func (q *queues) backlog(_ context.Context, names []string) ([]int, error) {
	if q.blind {
		return nil, errBlind
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.asked += len(names)
	urgency := make([]int, len(names))
	for i, name := range names {
		if len(q.tasks[name]) > 0 {
			urgency[i] = slices.Min(q.tasks[name])
		}
	}
	return urgency, nil
}

func (q *queues) poll(ctx context.Context, name string) (*wire.Given, error) {
	pause(ctx, time.Millisecond, nil) // the way there and back
	q.mutex.Lock()
	if len(q.tasks[name]) == 0 {
		q.polls[name]++
		q.mutex.Unlock()
		pause(ctx, emptyPoll, nil)
		return nil, nil
	}
	defer q.mutex.Unlock()
	q.tasks[name] = q.tasks[name][1:]
	q.began = append(q.began, name)
	q.using++
	q.running++
	q.most, q.mostRun = max(q.most, q.using), max(q.mostRun, q.running)
	return &wire.Given{Token: []byte(name)}, nil
}

func (q *queues) begin(_ *wire.Given, leave func()) {
	free := func() {
		q.mutex.Lock()
		q.using--
		q.mutex.Unlock()
		leave()
	}
	if q.leave > 0 {
		time.Sleep(q.leave)
		free()
		free = func() {}
	}
	time.Sleep(q.took - q.leave)
	free()
	q.mutex.Lock()
	q.running--
	q.mutex.Unlock()
}

func (q *queues) add(name string, n, priority int) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.tasks[name] = append(q.tasks[name], slices.Repeat([]int{priority}, n)...)
}

// run has the place take tasks until check, which is called again and again, says that it is enough.
func (q *queues) run(check func(began []string) bool) {
	ctx, cancel := context.WithCancel(q.t.Context())
	var group sync.WaitGroup
	for range q.place.slots {
		group.Go(func() { q.place.serve(ctx) })
	}
	for {
		time.Sleep(time.Millisecond)
		q.mutex.Lock()
		began := slices.Clone(q.began)
		q.mutex.Unlock()
		if check(began) {
			break
		}
	}
	cancel()
	group.Wait()
	q.place.running.Wait()
	if q.using != 0 || q.running != 0 || len(q.place.polling) > 0 {
		q.t.Errorf("at the end %d slots are used, %d tasks run, and polled is %v", q.using, q.running, q.place.polling)
	}
}

// many are the queues of a device.
func many() (names []string) {
	for i := range 15 {
		names = append(names, fmt.Sprint("class ", i))
	}
	return names
}

// TestOtherClass begins the only task of a class next, whatever number of another class waits, and never two on a
// device.
func TestOtherClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, time.Second)
		q.add("class 3", 300, 3)
		added := -1
		q.run(func(began []string) bool {
			if len(began) == 10 && added < 0 {
				added = len(began)
				q.add("class 7", 1, 3)
			}
			return slices.Contains(began, "class 7") || len(began) > 20
		})
		if at := slices.Index(q.began, "class 7"); at != added {
			t.Errorf("the only task of its class began after %d others, want %d", at, added)
		}
		if q.most != 1 {
			t.Errorf("%d tasks ran on one device", q.most)
		}
		if len(q.polls) > 0 {
			t.Errorf("polls without a task: %v", q.polls)
		}
	})
}

// TestTurns gives queues of the same urgency their turns, and more urgent ones go first.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, time.Second)
		q.add("class 1", 4, 3)
		q.add("class 2", 4, 3)
		q.add("class 3", 2, 1)
		q.run(func(began []string) bool { return len(began) == 10 })
		counts := map[string]int{}
		for i, name := range q.began {
			counts[name]++
			if i < 2 && name != "class 3" {
				t.Errorf("task %d is of %s, less urgent than others", i, name)
			}
			if d := counts["class 1"] - counts["class 2"]; d < -1 || d > 1 {
				t.Errorf("no turns: %q", q.began)
			}
		}
	})
}

// TestSlots runs as many tasks at a time as there are slots, and no more: as soon as the first is given, also where all
// are of one queue.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 3, time.Second)
		from := time.Now()
		q.add("class 1", 40, 3)
		took := time.Duration(0)
		q.run(func(began []string) bool {
			if len(began) == 40 && took == 0 {
				took = time.Since(from)
			}
			return took > 0 && time.Since(from) > took+time.Minute
		})
		if q.most != 3 {
			t.Errorf("%d tasks at a time, want 3", q.most)
		}
		if took > 14*time.Second {
			t.Errorf("40 tasks of a second began within %v in 3 slots", took)
		}
		if len(q.polls) > 0 {
			t.Errorf("polls without a task: %v", q.polls)
		}
	})
}

// TestBlind polls queues in turn where the server does not report the number of tasks: none starves, and slots poll
// different ones.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{1, 3} {
			q := newQueues(t, n, 100*time.Millisecond)
			q.blind = true
			q.add("class 3", 300, 3)
			q.add("class 7", 1, 3)
			from := time.Now()
			q.run(func(began []string) bool { return slices.Contains(began, "class 7") })
			if at := slices.Index(q.began, "class 7"); n == 1 && at > 1 {
				t.Errorf("the only task of its class began after %d others", at)
			}
			if took := time.Since(from); took > 30*time.Second/time.Duration(n) {
				t.Errorf("with %d slots it began after %v", n, took)
			}
		}
	})
}

// TestIdle asks seldom where there is nothing to do, and begins soon what comes, in whatever queue.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, time.Second)
		from, came := time.Now(), time.Time{}
		q.run(func(began []string) bool {
			n := len(began)
			switch {
			case came.IsZero() && time.Since(from) > time.Minute:
				looks := int(time.Minute / idleEvery)
				if most := (looks + 2) * len(many()); q.asked > most {
					t.Errorf("asked for %d queues in a minute, want at most %d", q.asked, most)
				}
				came = time.Now()
				q.add("class 9", 1, 3)
			case n > 0 && !came.IsZero():
				if late := time.Since(came); late > idleEvery+time.Second {
					t.Errorf("task %d began after %v", n, late)
				}
				from, came = time.Now(), time.Time{}
				q.mutex.Lock()
				q.asked = 0
				q.mutex.Unlock()
			}
			return n == 2
		})
	})
}

// TestNotNow takes nothing while the device is another process's, and while the place rests.
func TestNotNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, 10*time.Second)
		q.blind = true
		from := time.Now()
		held := 0
		q.place.ready = func() (func(), bool) {
			if since := time.Since(from); since < 10*time.Second {
				t.Errorf("it looks at the device after %v", since)
			} else if since < 20*time.Second {
				return nil, false
			}
			held++
			return func() { held-- }, true
		}
		q.place.rest(10 * time.Second)
		q.add("class 1", 1, 3)
		q.run(func(began []string) bool {
			if since := time.Since(from); len(began) > 0 && since < 20*time.Second {
				t.Errorf("begun after %v", since)
			}
			return time.Since(from) > time.Minute
		})
		if len(q.began) != 1 || held != 0 || len(q.polls) == 0 { // an empty poll holds it, too
			t.Errorf("%d tasks began, want 1; the device is held %d times, after polls %v", len(q.began), held, q.polls)
		}
	})
}

// TestLeaves lets the next task begin while results of the last go to the store, but not of too many.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, time.Minute)
		q.leave = time.Second
		q.add("class 1", 20, 3)
		q.run(func(began []string) bool { return len(began) == 12 })
		if q.most != 1 || q.mostRun != 1+mostLeft {
			t.Errorf("%d tasks on a device, want 1; %d with those beside it, want %d", q.most, q.mostRun, 1+mostLeft)
		}
	})
}

// TestWrong asks a server that answers with errors less and less often, and again at once when it is well.
func TestWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, 1, time.Second)
		q.add("class 1", 5, 3)
		asked, from := 0, time.Now()
		q.place.ask = func(ctx context.Context, name string) (*wire.Given, error) {
			if asked++; time.Since(from) < time.Minute {
				return nil, &wire.Error{Code: wire.Unavailable}
			}
			return q.poll(ctx, name)
		}
		q.run(func(began []string) bool { return len(began) == 5 })
		if asked > 20 || time.Since(from) > time.Minute+wrongMost+5*time.Second {
			t.Errorf("asked %d times in %v", asked, time.Since(from))
		}
	})
}
