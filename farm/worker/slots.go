package worker

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	sdk "go.temporal.io/sdk/worker"
)

// slots are the places for tasks of a device, or of those without one, which all queues share. Each queue's poller
// waits in ReserveSlot. serve grants a slot to the queue that has the most urgent tasks, and among such queues to the
// one that had a slot the longest time ago: a class of which there is one task does not wait for a class of which there
// are hundreds. Queues without tasks are not polled: an empty poll would hold the slot for seconds.
type slots struct {
	// backlog says how urgent the first task of each queue is, Temporal's keys of priorities; 0: there is none
	backlog func(ctx context.Context, queues []string) ([]int, error)
	ready   func() (release func(), ok bool) // takes what a task needs beside a slot, the device's lock; ok: it is free
	idle    int                              // looks in a row that found no task; serve's own
	wake    chan struct{}                    // holds one while something has changed
	more    chan struct{}                    // likewise: a queue that had a task asks for another slot

	mutex   sync.Mutex
	free    int
	out     int // tasks and polls that have not ended
	most    int
	rests   time.Time // nothing is granted before
	closed  bool      // nothing is granted any more
	waiting []*waiter
	granted map[string]int // by queue, the count of grants when it had one last
	grants  int
	using   *permit         // that of the task which began last
	busy    map[string]bool // queues that had a task with their last slot
}

type waiter struct {
	queue string
	got   chan *sdk.SlotPermit // holds one
}

// permit is what a slot that is out knows.
type permit struct {
	queue   string
	release func()
	left    bool // the task needs the slot no more, though it has not ended
}

func newSlots(n int) *slots {
	return &slots{free: n, most: n, granted: map[string]int{}, wake: make(chan struct{}, 1),
		more: make(chan struct{}, 1), busy: map[string]bool{},
		ready: func() (func(), bool) { return func() {}, true }}
}

// errBlind is of a server that does not say how many tasks queues have.
var errBlind = errors.New("the server does not say how many tasks there are")

const (
	mostLeft    = 2 // tasks of a device beside the one that uses it, whose results go to the store
	untilChange = time.Hour
)

// Pauses. Tests do not wait.
var (
	idleEvery  = 2 * time.Second // between questions for tasks, where there are none
	takenEvery = time.Second     // between looks at a device that another process uses
)

// allEvery is how many such questions are of the queues alone that had tasks here, before one is of all: a device has
// some 20 queues, most of which nobody ever uses.
const allEvery = 5

// ReserveSlot implements worker.SlotSupplier.
func (s *slots) ReserveSlot(ctx context.Context, info sdk.SlotReservationInfo) (*sdk.SlotPermit, error) {
	w := &waiter{queue: info.TaskQueue(), got: make(chan *sdk.SlotPermit, 1)}
	s.mutex.Lock()
	s.waiting = append(s.waiting, w)
	if s.busy[w.queue] {
		s.busy[w.queue] = false
		tell(s.more)
	}
	s.mutex.Unlock()
	tell(s.wake)
	select {
	case p := <-w.got:
		return p, nil
	case <-ctx.Done():
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(o *waiter) bool { return o == w })
	select {
	case p := <-w.got: // it was granted just then
		s.out--
		s.giveBack(p.UserData.(*permit))
	default:
	}
	return nil, ctx.Err()
}

// TryReserveSlot implements worker.SlotSupplier. It is of activities that skip their queue.
func (s *slots) TryReserveSlot(sdk.SlotReservationInfo) *sdk.SlotPermit { return nil }

// MarkSlotUsed implements worker.SlotSupplier.
func (s *slots) MarkSlotUsed(info sdk.SlotMarkUsedInfo) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.using = info.Permit().UserData.(*permit)
	s.busy[s.using.queue] = true
}

// ReleaseSlot implements worker.SlotSupplier.
func (s *slots) ReleaseSlot(info sdk.SlotReleaseInfo) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.out--
	s.giveBack(info.Permit().UserData.(*permit))
	tell(s.wake)
}

// MaxSlots implements worker.SlotSupplier.
func (s *slots) MaxSlots() int { return 0 }

// giveBack frees a slot, once. The caller holds mutex.
func (s *slots) giveBack(p *permit) {
	if p.left {
		return
	}
	p.left = true
	p.release()
	s.free++
	tell(s.wake)
}

// leaves frees the slot of a task that goes on without its device.
func (s *slots) leaves(p *permit) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.giveBack(p)
}

// current is the permit of the task that has just begun. Of a device that is the one that uses it.
func (s *slots) current() *permit {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.using
}

// rest grants nothing for a while.
func (s *slots) rest(d time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if until := time.Now().Add(d); until.After(s.rests) {
		s.rests = until
	}
}

// close grants nothing any more.
func (s *slots) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed = true
}

func tell(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default:
	}
}

// serve grants slots until ctx ends.
func (s *slots) serve(ctx context.Context) {
	for ctx.Err() == nil {
		pause := s.grant(ctx)
		if pause == 0 {
			continue
		}
		wake := s.more
		if pause == untilChange { // else the server is not asked more often
			wake = s.wake
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// grant grants one slot, or says how long to wait before the next look.
func (s *slots) grant(ctx context.Context) (pause time.Duration) {
	s.mutex.Lock()
	rests := time.Until(s.rests)
	able := s.free > 0 && s.out < s.most+mostLeft && len(s.waiting) > 0 && !s.closed
	all := s.idle%allEvery == 0
	var queues []string
	for _, w := range s.waiting {
		if all || s.granted[w.queue] > 0 {
			queues = append(queues, w.queue)
		}
	}
	s.mutex.Unlock()
	switch {
	case !able:
		return untilChange
	case rests > 0:
		return rests
	}
	urgency, err := s.urgency(ctx, queues)
	if err != nil {
		return idleEvery
	}
	switch found := slices.ContainsFunc(urgency, func(n int) bool { return n > 0 }); {
	case !found:
		s.idle++
		return idleEvery
	case !all: // one in another queue may be more urgent
		s.idle = 0
		return 0
	}
	s.idle = 0
	release, ok := s.ready()
	if !ok {
		return takenEvery
	}
	if !s.give(queues, urgency, release) {
		release()
	}
	return 0
}

// urgency is backlog; where the server does not say, each queue is polled in turn.
func (s *slots) urgency(ctx context.Context, queues []string) ([]int, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	urgency, err := s.backlog(ctx, queues)
	if errors.Is(err, errBlind) {
		return slices.Repeat([]int{1}, len(queues)), nil
	}
	return urgency, err
}

// give grants a slot to the best of queues.
func (s *slots) give(queues []string, urgency []int, release func()) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	rank := func(w *waiter) (rank int) { // first by urgency, then by the last grant
		n := urgency[slices.Index(queues, w.queue)]
		if n == 0 {
			return math.MaxInt
		}
		return n<<48 + s.granted[w.queue]
	}
	list := slices.DeleteFunc(slices.Clone(s.waiting), func(w *waiter) bool {
		return !slices.Contains(queues,
			w.queue)
	})
	if len(list) == 0 || s.free == 0 || s.closed {
		return false
	}
	best := slices.MinFunc(list, func(a, b *waiter) int { return cmp.Compare(rank(a), rank(b)) })
	if rank(best) == math.MaxInt {
		return false
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool { return w == best })
	s.free--
	s.out++
	s.grants++
	s.granted[best.queue] = s.grants
	best.got <- &sdk.SlotPermit{UserData: &permit{queue: best.queue, release: release}}
	return true
}
