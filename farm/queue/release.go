package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// quarantineAfter is how many different tasks must fail on a node, none succeeding in between.
const quarantineAfter = 3

// settle does what a job's states ask for: stops what was canceled, takes tasks from silent owners, ends the job.
func (r *reconciler) settle(ctx context.Context, token string, b *board) error {
	if b.counts[Running]+b.counts[Verifying]+b.counts[Canceling] > 0 {
		for i := range b.cells {
			if err := r.settleTask(ctx, b, i); err != nil {
				return err
			}
		}
	}
	if b.head.Redo != nil {
		return r.settleRedo(ctx, b)
	}
	state := b.state()
	if !state.Ended() {
		return nil
	}
	// A claim that was not heard of yet would go on in a job that has ended.
	changed, err := r.q.readEntries(ctx, b)
	if err == nil {
		err = r.judgeNodes(ctx, b, changed)
	}
	if err != nil {
		return err
	}
	if state = b.state(); !state.Ended() {
		return r.settle(ctx, token, b)
	}
	if err := r.noteEnding(ctx, token, b.head.Name); err != nil {
		return err
	}
	wrote := false
	err = r.q.updateHead(ctx, b.head.Name, func(head *Head) bool {
		// A head that was written since, as by Retry, is judged when it has been read.
		wrote = head.Ended == "" && head.Redo == nil && head.Generation == b.head.Generation && head.Canceled == b.head.Canceled
		head.Ended, head.Counts = state, b.countsCopy()
		return wrote
	})
	if errors.Is(err, ErrNoJob) {
		err = nil
		r.close(token)
	}
	if err != nil || !wrote {
		return err
	}
	r.close(token)
	select {
	case r.ends <- struct{}{}:
	default:
	}
	return nil
}

// settleRedo finishes what somebody began to have done again and was interrupted at. Until then the job does not end.
func (r *reconciler) settleRedo(ctx context.Context, b *board) error {
	if time.Since(b.opened) < time.Duration(r.q.farm.Lease) {
		return nil
	}
	now, _, err := r.q.open(ctx, b.head.Name)
	if err == nil && now.head.Redo != nil {
		r.q.log.Info("a retry that was interrupted is finished", "job", b.head.Name)
		err = r.q.finishRedo(ctx, now)
	}
	if err != nil && ctx.Err() == nil && !isTransient(err) { // the job is gone, or such
		r.q.log.Error("a retry that was interrupted cannot be finished", "job", b.head.Name, "cause", err)
		return nil
	}
	return err
}

func (r *reconciler) settleTask(ctx context.Context, b *board, i int) error {
	c := &b.cells[i]
	if c.entry == nil || !c.entry.State.owned() {
		return nil
	}
	if b.head.Canceled && c.entry.State != Canceling {
		return r.q.updateEntry(ctx, b.head.Name, i, func(e *Entry) bool { return e.State.owned() && cancelEntry(e) })
	}
	// Workers find silent owners sooner, by their messages. This is for messages that were lost, and for clocks of servers that went back.
	lease := time.Duration(r.q.farm.Lease)
	silence := max(lease, b.tasks[i].Lease) + lease
	if time.Since(c.seen) < silence || r.q.writable(ctx) < silence {
		return nil
	}
	known := *c.entry
	c.called = false // or not any more, as it seems
	return r.q.updateEntry(ctx, b.head.Name, i, func(e *Entry) bool {
		silent := e.Claim == known.Claim && e.Beat == known.Beat && e.State.owned()
		if silent {
			e.giveUp(&b.tasks[i])
			e.Beat++
		}
		return silent
	})
}

// judgeNodes counts on which nodes tasks fail, and puts nodes into quarantine. Each failure counts once, when it is first seen: entries keep theirs when tasks move on.
func (r *reconciler) judgeNodes(ctx context.Context, b *board, changed []int) error {
	for _, i := range changed {
		e := b.cells[i].entry
		done := e != nil && e.State == Succeeded
		if done {
			delete(r.failing, e.Node)
		}
		if e == nil || len(e.Failures) == 0 {
			continue
		}
		key := entryKey(b.head.Name, i)
		seen := r.judged[key]
		r.judged[key] = e.lastFailure()
		for _, f := range e.Failures {
			if done || f.Attempt <= seen || f.Permanent || f.Lost {
				continue
			}
			if err := r.countFailure(ctx, key, &f); err != nil {
				r.judged[key] = seen
				return err
			}
		}
	}
	return nil
}

// lastFailure is the last attempt that failed, 0 where none did.
func (e *Entry) lastFailure() int {
	if e == nil || len(e.Failures) == 0 {
		return 0
	}
	return e.Failures[len(e.Failures)-1].Attempt
}

// countFailure counts a failure of a task against the node.
func (r *reconciler) countFailure(ctx context.Context, task string, f *Failure) error {
	if r.failing[f.Node] == nil {
		r.failing[f.Node] = map[string]bool{}
	}
	r.failing[f.Node][task] = true
	if len(r.failing[f.Node]) < quarantineAfter {
		return nil
	}
	reason := fmt.Sprintf("%d different tasks failed there, the last with: %s", quarantineAfter, f.Error)
	if err := r.q.setOrder(ctx, "quarantine node", f.Node, func(o *Order) { o.Quarantine = reason }); err != nil {
		return err
	}
	delete(r.failing, f.Node)
	return nil
}

// lane is what workers ask for by one consumer.
type lane struct {
	priority Priority
	pool     string
}

// mostDeclined is how many windows full of tasks that workers declined wait in a lane without taking anything from others. Workers look at them again and again.
const mostDeclined = 8

// load is how much is handed out already. Tasks that every worker there is declines may wait for long: they count for their own jobs, and not against others.
type load struct {
	limits   Limits
	waiting  map[lane]int   // tasks in front of workers, but for those declined
	declined map[lane]int   // tasks in front of workers that were declined
	users    map[string]int // tasks that run or are in front of workers
	pools    map[string]int // likewise, by the name under which they count
}

func newLoad(limits Limits) load {
	return load{limits: limits, waiting: map[lane]int{}, declined: map[lane]int{}, users: map[string]int{}, pools: map[string]int{}}
}

// release calls workers to the tasks that may run next: the highest priority first, of each priority and pool the oldest jobs' first, as many as the farm's window,
// within the limits.
func (r *reconciler) release(ctx context.Context) error {
	boards := slices.SortedFunc(maps.Values(r.boards), func(a, b *board) int { return int(int64(a.head.Age) - int64(b.head.Age)) })
	if !slices.ContainsFunc(boards, (*board).waits) {
		return nil
	}
	limits, err := r.q.Limits(ctx)
	if err != nil {
		return err
	}
	l := newLoad(limits)
	for _, b := range boards {
		l.count(b, r.q.farm.Window)
	}
	if err := r.recall(ctx, l.excess(boards)); err != nil {
		return err
	}
	var calls []place
	for _, p := range Priorities {
		for _, b := range boards {
			if b.levels[p] {
				calls = append(calls, b.calls(p, &l, r.q.farm.Window)...)
			}
		}
	}
	err = r.q.callAll(ctx, calls)
	pools := map[string]bool{}
	for _, n := range calls {
		pools[n.b.tasks[n.i].pool()] = true
	}
	for pool := range pools {
		err = errors.Join(err, r.q.nc.Publish("wake."+tokenOf(pool), nil))
	}
	return err
}

// calls lists the tasks of a priority that are to be called, and counts them. Of one job no more than a window is in front of workers, declined or not.
func (b *board) calls(p Priority, l *load, window int) (list []place) {
	there := map[lane]int{}
	for i := range b.cells {
		if b.cells[i].waits() {
			there[b.lane(i)]++
		}
	}
	for i := range b.cells {
		if b.mayCall(i) && b.tasks[i].priority(b.head) == p && (b.cells[i].state == RetryWait || there[b.lane(i)] < window) && l.take(b, i, window) {
			there[b.lane(i)]++
			list = append(list, place{b, i})
		}
	}
	return list
}

func (b *board) lane(i int) lane { return lane{b.tasks[i].priority(b.head), b.tasks[i].pool()} }

// waits says whether the task is in front of workers.
func (c *cell) waits() bool { return c.state == Queued && c.called }

// declined says whether the task waits because nobody who saw it could do it.
func (c *cell) declined() bool { return c.waits() && c.entry != nil && len(c.entry.Declined) > 0 }

// rests says whether the task waits after a failed attempt, and is not due yet.
func (c *cell) rests() bool {
	return c.state == RetryWait && time.Since(c.seen) <= time.Duration(c.entry.Delay)
}

// waits says whether a task of the board might be called.
func (b *board) waits() bool { return b.counts[Queued]+b.counts[RetryWait] > 0 && !b.head.Paused }

// mayCall says whether a task is to be called: it is queued, or has waited long enough after a failed attempt, and no message of it is there. While tasks are queued
// again, some at a time, nothing is: the first to be seen would run before those in front of it.
func (b *board) mayCall(i int) bool {
	c := &b.cells[i]
	if c.called || b.head.Paused || b.head.Redo != nil {
		return false
	}
	return c.state == Queued || c.state == RetryWait && !c.rests()
}

func (l *load) count(b *board, window int) {
	for i := range b.cells {
		c := &b.cells[i]
		if !c.waits() && !c.state.owned() && (c.state != RetryWait || !c.called || c.rests()) {
			continue // what rests takes nobody's place
		}
		if in := b.lane(i); c.declined() && l.declined[in] < mostDeclined*window {
			l.declined[in]++
			continue
		} else if c.waits() {
			l.waiting[in]++
		}
		l.users[b.head.Owner]++
		l.pools[b.tasks[i].limit()]++
	}
}

// excess lists tasks in front of workers that are too many, since a limit was lowered or they failed elsewhere and are due again, and counts them no more: the lowest
// priority first, of each the youngest jobs'. With them come tasks that rest and of which there may be too many once they are due: they are called then.
func (l *load) excess(boards []*board) (list []place) {
	if len(l.limits.Users)+len(l.limits.Pools) == 0 {
		return nil
	}
	for _, p := range slices.Backward(Priorities) {
		for _, b := range slices.Backward(boards) {
			for i := len(b.cells) - 1; i >= 0; i-- {
				c, owner, name := &b.cells[i], b.head.Owner, b.tasks[i].limit()
				if b.tasks[i].priority(b.head) != p || !c.called {
					continue
				}
				if c.rests() {
					if !allows(l.limits.Users, owner, math.MaxInt) || !allows(l.limits.Pools, name, math.MaxInt) {
						list = append(list, place{b, i})
					}
					continue
				}
				if !c.waits() && c.state != RetryWait || c.declined() || allows(l.limits.Users, owner, l.users[owner]-1) && allows(l.limits.Pools, name, l.pools[name]-1) {
					continue
				}
				if c.waits() {
					l.waiting[b.lane(i)]--
				}
				l.users[owner]--
				l.pools[name]--
				list = append(list, place{b, i})
			}
		}
	}
	return list
}

// heldCalls asks the consumers how many messages each of them has given out or will give out.
func (r *reconciler) heldCalls(ctx context.Context) (map[lane]uint64, error) {
	held := map[lane]uint64{}
	for _, b := range r.boards {
		for i := range b.cells {
			in := b.lane(i)
			if _, known := held[in]; known || !b.cells[i].waits() {
				continue
			}
			err := r.q.retry(ctx, "look at consumer", func(ctx context.Context) error {
				c, err := r.q.js.Consumer(ctx, jobStream, consumerOf(in.priority, in.pool))
				if err == nil {
					info := c.CachedInfo()
					held[in] = info.NumPending + uint64(info.NumAckPending)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return held, nil
}

// stuckCalls lists the tasks in front of workers of those consumers that hold fewer messages than there are: the server (2.15, for one) forgets a message that was put
// back where another one is purged at the same moment, and gives it to nobody any more. Called anew, they are new messages.
func (r *reconciler) stuckCalls(held map[lane]uint64) (list []place) {
	there := map[lane]uint64{}
	for _, b := range r.boards {
		for i := range b.cells {
			if b.cells[i].called {
				there[b.lane(i)]++
			}
		}
	}
	for _, b := range r.boards {
		for i := range b.cells {
			in := b.lane(i)
			if n, known := held[in]; known && n < there[in] && b.cells[i].waits() {
				list = append(list, place{b, i})
			}
		}
	}
	return list
}

// recall takes tasks back that nobody has claimed yet.
func (r *reconciler) recall(ctx context.Context, list []place) error {
	err := atOnce(list, func(at place) error {
		return r.q.uncall(ctx, callSubject(at.b.head, &at.b.tasks[at.i], at.i))
	})
	if err != nil {
		return err
	}
	for _, at := range list {
		at.b.cells[at.i].called = false
	}
	return nil
}

// uncall removes the message of a task by its number: where one is purged by its subject, the server (2.15) keeps every other one that was put back to itself for a lease.
func (q *Queue) uncall(ctx context.Context, subject string) error {
	return q.retry(ctx, "remove "+subject, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, jobStream)
		if err != nil {
			return err
		}
		for before := uint64(0); ; {
			m, err := s.GetLastMsgForSubject(ctx, subject)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil
			}
			if err != nil || m.Sequence == before { // it could not be removed
				return cmp.Or(err, errStays)
			}
			before = m.Sequence
			err = s.DeleteMsg(ctx, before)
			var api *jetstream.APIError
			if err == nil || !errors.As(err, &api) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
				return err
			} // else a worker has answered it meanwhile, or somebody called anew
		}
	})
}

var errStays = errors.New("the server does not remove the message")

// take counts one more task, if it may be handed out.
func (l *load) take(b *board, i, window int) bool {
	in, name := b.lane(i), b.tasks[i].limit()
	first := b.cells[i].state == Queued // what was tried before goes beside the window
	if first && l.waiting[in] >= window || !allows(l.limits.Users, b.head.Owner, l.users[b.head.Owner]) || !allows(l.limits.Pools, name, l.pools[name]) {
		return false
	}
	if first {
		l.waiting[in]++
	}
	l.users[b.head.Owner]++
	l.pools[name]++
	return true
}

// alreadyThere is how the server refuses a second message of a task; the error has no number of its own.
const alreadyThere = "maximum messages per subject"

// place is a task of a board.
type place struct {
	b *board
	i int
}

// callAll publishes the messages of tasks in their order, without waiting for each answer.
func (q *Queue) callAll(ctx context.Context, calls []place) error {
	answers := make([]jetstream.PubAckFuture, len(calls))
	for i, at := range calls {
		subject, raw, err := at.message()
		if err != nil {
			return err
		}
		answers[i], _ = q.js.PublishAsync(subject, raw, jetstream.WithRetryAttempts(0)) // nil where the server is away
	}
	for i, at := range calls {
		if !sent(ctx, answers[i]) {
			if err := q.call(ctx, at); err != nil {
				return err
			}
		}
		at.b.cells[at.i].called = true
	}
	return nil
}

// sent says whether the message is in the stream.
func sent(ctx context.Context, answer jetstream.PubAckFuture) bool {
	if answer == nil {
		return false
	}
	select {
	case <-answer.Ok():
		return true
	case err := <-answer.Err():
		return strings.Contains(err.Error(), alreadyThere)
	case <-time.After(tryFor):
	case <-ctx.Done():
	}
	return false
}

func (at place) message() (subject string, raw []byte, err error) {
	raw, err = json.Marshal(call{at.b.head.Name, at.i})
	return callSubject(at.b.head, &at.b.tasks[at.i], at.i), raw, err
}

// call publishes the message of a task, unless it is there.
func (q *Queue) call(ctx context.Context, at place) error {
	subject, raw, err := at.message()
	if err != nil {
		return err
	}
	return q.retry(ctx, "publish "+subject, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, subject, raw, jetstream.WithRetryAttempts(0))
		if err != nil && strings.Contains(err.Error(), alreadyThere) {
			return nil
		}
		return err
	})
}
