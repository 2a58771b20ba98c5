package worker

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"vksplat/farm/task"
	"vksplat/farm/wire"
)

// place is where tasks run: a device, or those without one. It has slots for tasks, and many queues to take them from.
// A free slot polls the queue that has the most urgent tasks, and among such queues the one that was polled the longest
// time ago: a class of which there is one task does not wait for a class of which there are hundreds. Queues without
// tasks are not polled: an empty poll would hold the slot for seconds.
type place struct {
	*worker
	device *task.Device // nil: none
	slots  int
	queues []string
	// backlog says how urgent the first task of each queue is, Temporal's keys of priorities; 0: there is none
	backlog func(ctx context.Context, queues []string) ([]int, error)
	// ready takes what a task needs beside a slot, the device's lock; ok says that it was free
	ready func() (release func(), ok bool)
	ask   func(ctx context.Context, queue string) (*wire.Given, error) // poll
	begin func(given *wire.Given, leave func())                        // perform

	turn chan struct{} // holds one: slots look for tasks one at a time
	room chan struct{} // holds one for each task that has not ended
	more chan struct{} // holds one while a queue that gave a task can be polled again

	mutex    sync.Mutex // guards what follows
	rested   time.Time  // nothing is taken before
	polling  map[string]bool
	polled   map[string]int // by queue, the count of polls when it was polled last
	polls    int
	failures int // that may be this machine's fault, in a row
	lost     int // likewise, losses of the device
}

func newPlace(w *worker, device *task.Device, slots int, queues []string) *place {
	p := &place{worker: w, device: device, slots: slots, queues: queues, backlog: w.backlog,
		ready: func() (func(), bool) { return func() {}, true },
		turn:  make(chan struct{}, 1), room: make(chan struct{}, slots+mostLeft), more: make(chan struct{}, 1),
		polling: map[string]bool{}, polled: map[string]int{}}
	p.ask, p.begin = p.poll, p.perform
	return p
}

// errBlind is of a server that does not say how many tasks queues have.
var errBlind = errors.New("the server does not report the number of tasks")

// mostLeft is how many tasks of a device may be beside the one that uses it, whose results go to the store.
const mostLeft = 2

// Pauses. Tests do not wait.
var (
	idleEvery  = 2 * time.Second  // between looks for tasks, where there are none
	takenEvery = time.Second      // between looks at a device that another process uses
	wrongMost  = 10 * time.Second // between polls that end with errors, at most
)

// serve has one slot take tasks, one after another, until ctx ends. A task that needs its slot no more ends by itself.
func (p *place) serve(ctx context.Context) {
	wrong := time.Duration(0)
	for {
		select {
		case p.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		queue, release := p.next(ctx)
		if queue == "" {
			return
		}
		given, err := p.ask(ctx, queue)
		p.ended(queue, given != nil)
		if given == nil {
			release()
			<-p.room
			if wrong = min(2*wrong+100*time.Millisecond, wrongMost); err == nil {
				wrong = 0
			}
			pause(ctx, wrong, nil)
			continue
		}
		wrong = 0
		free := make(chan struct{})
		leave := sync.OnceFunc(func() { release(); close(free) })
		p.running.Go(func() {
			p.begin(given, leave)
			leave()
			<-p.room
		})
		<-free
	}
}

// pause waits for a while, or until there is news, or ctx ends.
func pause(ctx context.Context, d time.Duration, news <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-news:
	case <-timer.C:
	}
}

// next waits for a queue that has a task, and for what the task needs. The queue is empty when ctx has ended.
func (p *place) next(ctx context.Context) (queue string, release func()) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", nil
	}
	for ctx.Err() == nil {
		queue, release, wait := p.look(ctx)
		if queue != "" {
			return queue, release
		}
		pause(ctx, wait, p.more)
	}
	return "", nil
}

// look is next that does not wait, but says for how long.
func (p *place) look(ctx context.Context) (queue string, release func(), wait time.Duration) {
	p.mutex.Lock()
	queues := slices.DeleteFunc(slices.Clone(p.queues), func(q string) bool { return p.polling[q] })
	wait = time.Until(p.rested)
	p.mutex.Unlock()
	if wait > 0 {
		return "", nil, wait
	}
	var urgency []int
	var err error
	if len(queues) > 0 {
		urgency, err = p.backlog(ctx, queues)
	}
	if errors.Is(err, errBlind) { // each is polled in turn
		urgency = slices.Repeat([]int{1}, len(queues))
	} else if err != nil {
		return "", nil, idleEvery
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	best := math.MaxInt // first by urgency, then by the last poll
	for i, q := range queues {
		if rank := urgency[i]<<48 + p.polled[q]; urgency[i] > 0 && rank < best {
			best, queue = rank, q
		}
	}
	if queue == "" {
		return "", nil, idleEvery
	}
	release, ok := p.ready()
	if !ok {
		return "", nil, takenEvery
	}
	p.polls++
	p.polling[queue], p.polled[queue] = true, p.polls
	return queue, release, 0
}

// ended notes that a queue is not being polled any more, and whether it gave a task.
func (p *place) ended(queue string, gave bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.polling, queue)
	if gave {
		select {
		case p.more <- struct{}{}:
		default:
		}
	}
}

// pollFor bounds a poll, which holds its slot: only a queue is polled that has had a task just before. Servers want 10
// seconds at least, and end polls one before ours are over.
const pollFor = 15 * time.Second

// poll asks a queue for a task, and gives nil where there is none.
func (p *place) poll(ctx context.Context, queue string) (*wire.Given, error) {
	within, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	var given wire.Given
	err := p.Conn.Once(within, &wire.Poll{Queue: wire.QueueOf(queue)}, &given)
	if ctx.Err() == nil {
		p.hear(err)
	}
	if err != nil || len(given.Token) == 0 {
		return nil, err
	}
	return &given, nil
}

// rest takes nothing for a while. The caller holds mutex.
func (p *place) rest(d time.Duration) {
	if until := time.Now().Add(d); until.After(p.rested) {
		p.rested = until
	}
}

// rests is rest after an end that may be this machine's fault: others take the task.
func (p *place) rests() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	d := min(restFirst<<min(p.failures, 10), restMost)
	p.failures++
	p.rest(cmp.Or(d, restFirst))
}
