package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/scene"
)

// Errors of Claim.
var (
	ErrDrained     = errors.New("the node is drained")
	ErrQuarantined = errors.New("the node is in quarantine")
)

// WorkerInfo says who works.
type WorkerInfo struct {
	Node     string          // unique in the farm
	Home     string          // of a folder that one worker of this name has at a time: the last one to write of the same home has died; "": not known
	Pools    []string        // whose tasks it takes, beside those of AnyPool
	Devices  []string        // for people
	Roots    []string        // of the store that it knows
	Lacks    []string        // kinds of tasks that it cannot do, for want of a program
	Away     func() []string // asked at each heartbeat: what it lacks beside Lacks for now, as roots; nil for nothing
	DiskFree func() int64    // bytes of room in its work folder, 0 where that is not known; nil for never

	Use func() []DeviceUse // asked at each heartbeat; nil: not known
}

// Slot is what one task at a time runs on. Entries name its device.
type Slot struct {
	Device string
	Driver string
	Pools  []string // whose tasks it asks for, of the worker's; nil: all
}

// Order is what an administrator or the reconciler wants of a node.
type Order struct {
	Drain      bool   `json:"drain,omitempty"`      // claim nothing more
	Now        bool   `json:"now,omitempty"`        // and hand back what runs
	Quarantine string `json:"quarantine,omitempty"` // claim nothing more, because of this
}

// Worker is a node that has joined the farm. Any number of goroutines may Claim, one for each device.
type Worker struct {
	q      *Queue
	info   WorkerInfo
	stop   context.CancelFunc
	ended  sync.WaitGroup
	silent func() // unsubscribes

	claim    string // of the node's record, unique to this worker
	revision uint64 // of the record; owned by Join, then by live, then by Leave
	fate     context.Context
	lose     context.CancelCauseFunc

	lock   sync.Mutex
	order  Order
	leases map[string]*Lease
	wake   chan struct{} // closed when there may be something to claim, then replaced
	plans  map[string][]Task
	left   map[string]map[string]*refusal // by device and task: what was declined
}

const (
	nodeBeat  = nodeLife / 3
	mostPolls = 2 * time.Second
	keptPlans = 8
)

// Join enters the node in the farm's list and keeps it there until Leave. It waits to see whether another worker of this name lives.
func (q *Queue) Join(ctx context.Context, info WorkerInfo) (*Worker, error) {
	const op = "join farm"
	if !isName(info.Node) {
		return nil, failure(op, info.Node, errors.New("a node's name has 1 to 255 bytes of UTF-8 without control characters"), "", scene.ErrUsage)
	}
	for _, pool := range info.Pools {
		if !isPool(pool) {
			return nil, failure(op, info.Node, poolError(pool), "", scene.ErrUsage)
		}
	}
	info.Pools = slices.Clone(info.Pools)
	if !slices.Contains(info.Pools, AnyPool) {
		info.Pools = append(info.Pools, AnyPool)
	}
	w := &Worker{q: q, info: info, leases: map[string]*Lease{}, wake: make(chan struct{}), plans: map[string][]Task{}, left: map[string]map[string]*refusal{}}
	w.fate, w.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	q.strict.Store(true) // else a token that may not do this would be tried for ever
	defer q.strict.Store(q.options.Patience > 0)
	told := make(chan struct{}, 1)
	stopTelling, err := q.tell(told, nil, "ev.ctl.node."+tokenOf(info.Node))
	if err != nil {
		return nil, failure(op, info.Node, err, "", scene.ErrTryAgain)
	}
	var subs []*nats.Subscription
	w.silent = func() {
		stopTelling()
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}
	for _, pool := range info.Pools {
		sub, err := q.nc.Subscribe("wake."+tokenOf(pool), func(*nats.Msg) { w.wakeAll() })
		if err != nil {
			w.silent()
			return nil, failure(op, info.Node, err, "", scene.ErrTryAgain)
		}
		subs = append(subs, sub)
	}
	_, _, clockErr := w.q.serverTime(ctx) // from now on this process sees when that is moved
	if err := errors.Join(w.sit(ctx), w.readOrder(ctx), clockErr); err != nil {
		w.silent()
		return nil, joinError(info.Node, err)
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	w.ended.Go(func() { w.live(living, told) })
	w.ended.Go(func() { w.guard(living) })
	return w, nil
}

// Leave ends the heartbeats. Leases that are still held go on without it.
func (w *Worker) Leave() {
	w.stop()
	w.silent()
	w.ended.Wait()
	if w.fate.Err() == nil {
		w.stand()
	}
}

// Order is what is wanted of the node now.
func (w *Worker) Order() Order {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.order
}

// live writes heartbeats and reads orders.
func (w *Worker) live(ctx context.Context, told <-chan struct{}) {
	for ctx.Err() == nil && w.fate.Err() == nil {
		_ = wait(ctx, told, nodeBeat)
		if err := errors.Join(w.beat(ctx), w.readOrder(ctx)); err != nil && ctx.Err() == nil {
			w.q.log.Warn("heartbeat failed", "node", w.info.Node, "cause", err)
		}
	}
}

func (w *Worker) readOrder(ctx context.Context) error {
	order, err := w.q.order(ctx, w.info.Node)
	if err != nil {
		return err
	}
	w.lock.Lock()
	changed := order != w.order
	w.order = order
	leases := make([]*Lease, 0, len(w.leases))
	for _, lease := range w.leases {
		leases = append(leases, lease)
	}
	w.lock.Unlock()
	if changed {
		w.wakeAll()
	}
	if order.Drain && order.Now {
		for _, lease := range leases {
			lease.end(ErrDrained)
		}
	}
	return nil
}

func (w *Worker) wakeAll() {
	w.lock.Lock()
	defer w.lock.Unlock()
	close(w.wake)
	w.wake = make(chan struct{})
}

// Claim waits for a task and takes its lease. It gives ErrDrained or ErrQuarantined at once where the node may take none; Await waits for the end of that.
func (w *Worker) Claim(ctx context.Context, slot Slot) (*Lease, error) {
	p, err := w.newPuller()
	if err != nil {
		return nil, failure("claim task", "", err, "", scene.ErrTryAgain)
	}
	defer p.close()
	for {
		w.lock.Lock()
		order, wake := w.order, w.wake
		w.lock.Unlock()
		if err := order.err(); err != nil {
			return nil, err
		}
		lease, err := p.sweep(ctx, slot)
		if lease != nil || err != nil {
			return lease, err
		}
		poll := min(mostPolls, time.Duration(w.q.farm.Lease)/8)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-wake:
		case <-time.After(poll/2 + rand.N(poll/2+1)):
		}
	}
}

// Await returns once the node may claim.
func (w *Worker) Await(ctx context.Context) error {
	for {
		w.lock.Lock()
		order, wake := w.order, w.wake
		w.lock.Unlock()
		if order.err() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-wake:
		}
	}
}

func (o Order) err() error {
	switch {
	case o.Quarantine != "":
		return fmt.Errorf("%w: %s", ErrQuarantined, o.Quarantine)
	case o.Drain:
		return ErrDrained
	}
	return nil
}
