package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// call is a message of stream JOBS: a task that may be claimed. Whether it may, its entry says.
type call struct {
	Job   string `json:"job"`
	Index int    `json:"index"`
}

func callSubject(head Head, task *Task, i int) string {
	return "jobs." + string(task.priority(head)) + "." + tokenOf(task.pool()) + "." + entryKey(head.Name, i)
}

// puller gets messages. They come under their own subjects, so that the connection could not tell which of several requests they answer: each puller has a
// subscription of its own.
type puller struct {
	w     *Worker
	inbox string
	sub   *nats.Subscription
	due   bool // one answer, of a request that was given up: each request gets one, unless the connection is lost
}

const answerFor = 2 * time.Second // how long a worker that stops waits for the answer that is due

func (w *Worker) newPuller() (*puller, error) {
	inbox := w.q.nc.NewInbox()
	sub, err := w.q.nc.SubscribeSync(inbox)
	return &puller{w: w, inbox: inbox, sub: sub}, err
}

// close hands back what comes too late: nobody else would see it before the consumer stops waiting for an answer.
func (p *puller) close() {
	defer func() { _ = p.sub.Unsubscribe() }()
	for {
		most := time.Nanosecond // what is there
		if p.due && p.w.q.nc.IsConnected() {
			most = answerFor
		}
		p.due = false
		msg, err := p.sub.NextMsg(most)
		if err != nil {
			return
		}
		if isCall(msg) {
			p.w.reply(msg, nak(0))
		}
	}
}

// isCall tells a task's message from what the server says where there is none.
func isCall(msg *nats.Msg) bool {
	return msg != nil && msg.Reply != "" && msg.Header.Get("Status") == ""
}

// sweep asks every consumer once, the highest priority first, until a task could be claimed.
func (p *puller) sweep(ctx context.Context, slot Slot) (*Lease, error) {
	began := time.Now()
	for _, priority := range Priorities {
		for _, pool := range p.w.info.Pools {
			for ctx.Err() == nil && (slot.Pools == nil || slices.Contains(slot.Pools, pool)) {
				msg := p.next(ctx, consumerOf(priority, pool))
				if msg == nil {
					break
				}
				lease, err := p.w.take(ctx, msg, slot, began)
				if lease != nil || errors.Is(err, ErrFormat) {
					return lease, err
				}
				if err != nil {
					p.w.q.log.Warn("task not claimed", "cause", err)
				}
			}
		}
	}
	return nil, context.Cause(ctx)
}

// next gets a message, or nil where there is none or the server is away.
func (p *puller) next(ctx context.Context, consumer string) (msg *nats.Msg) {
	err := p.w.q.try(ctx, func(ctx context.Context) (err error) {
		if msg, err = p.late(ctx); msg != nil || err != nil {
			return err
		}
		subject := "$JS.API.CONSUMER.MSG.NEXT." + jobStream + "." + consumer
		if err = p.w.q.nc.PublishRequest(subject, p.inbox, []byte(`{"batch":1,"no_wait":true}`)); err != nil {
			return err
		}
		msg, err = p.sub.NextMsgWithContext(ctx)
		p.due = err != nil && ctx.Err() != nil
		return err
	})
	if errors.Is(err, nats.ErrDisconnected) {
		p.due = false // it does not come any more
	}
	if !isCall(msg) {
		return nil
	}
	return msg
}

// late gets what a request that was given up is answered with, or nil where that is no message or does not come, so that no answer is taken for the next one's.
func (p *puller) late(ctx context.Context) (*nats.Msg, error) {
	for {
		msg, err := p.sub.NextMsg(time.Nanosecond) // what is there
		if err != nil && p.due {
			due, stop := context.WithTimeout(ctx, answerFor)
			msg, err = p.sub.NextMsgWithContext(due)
			stop()
		}
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p.due = false
		if err != nil || isCall(msg) {
			return msg, nil
		}
	}
}

// take decides about a message of a sweep: claim its task, or answer the message so that it comes again when it should.
func (w *Worker) take(ctx context.Context, msg *nats.Msg, slot Slot, began time.Time) (*Lease, error) {
	var c call
	if err := json.Unmarshal(msg.Data, &c); err != nil {
		w.reply(msg, "+TERM")
		return nil, fmt.Errorf("a message of stream %s: %w", jobStream, err)
	}
	if w.refresh(c, msg) {
		return nil, nil
	}
	if delay := w.leaves(slot.Device, entryKey(c.Job, c.Index), began); delay > 0 {
		w.reply(msg, nak(delay))
		return nil, nil
	}
	lease, answer, err := w.decide(ctx, c, slot)
	if err != nil {
		answer = nak(2 * time.Second)
	}
	if lease == nil {
		w.reply(msg, answer)
		return nil, err
	}
	lease.reply, lease.kept = msg.Reply, true
	w.lock.Lock()
	w.leases[entryKey(c.Job, c.Index)] = lease
	order := w.order
	w.lock.Unlock()
	if order.Drain && order.Now { // since the sweep began
		lease.end(ErrDrained)
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	lease.stop = stop
	lease.ended.Go(func() { lease.keep(living) })
	return lease, nil
}

func (w *Worker) reply(msg *nats.Msg, text string) { _ = w.q.nc.Publish(msg.Reply, []byte(text)) }

// refresh keeps the newer message where it is of a task whose lease this worker holds: a server that restarted gave it out again.
func (w *Worker) refresh(c call, msg *nats.Msg) bool {
	w.lock.Lock()
	lease := w.leases[entryKey(c.Job, c.Index)]
	w.lock.Unlock()
	if lease == nil {
		return false
	}
	lease.lock.Lock()
	kept := lease.kept
	lease.reply = msg.Reply
	lease.lock.Unlock()
	if !kept {
		return false
	}
	w.reply(msg, "+WPI")
	return true
}

// decide claims the task where it may be, and says how to answer the message otherwise.
func (w *Worker) decide(ctx context.Context, c call, slot Slot) (lease *Lease, answer string, err error) {
	head, _, err := w.q.head(ctx, c.Job)
	if err != nil {
		return nil, "", err // a job that is not there may be on its way to the replica that was asked
	}
	if head.Canceled || head.Paused || head.Ended != "" {
		return nil, "+ACK", nil // the reconciler calls again when that changes
	}
	tasks, err := w.plan(ctx, head)
	if err != nil {
		return nil, "", err
	}
	if c.Index < 0 || c.Index >= len(tasks) {
		return nil, "+TERM", nil
	}
	for {
		e, r, err := w.q.entry(ctx, c.Job, c.Index)
		if err != nil {
			return nil, "", err
		}
		before := e.State
		var age time.Duration // of the entry, where that matters
		if before == RetryWait || before.owned() {
			now, _, err := w.q.serverTime(ctx)
			if err != nil {
				return nil, "", err
			}
			age = w.q.clock.age(now, r.at)
		}
		if before.owned() && age >= time.Duration(w.q.farm.Lease) {
			age = min(age, w.q.writable(ctx))
		}
		if answer := e.judge(age, time.Duration(w.q.farm.Lease), &tasks[c.Index]); answer != "" {
			return nil, answer, nil
		}
		if e.State == Queued { // also one that was tried before: what it needs may be made anew since
			if ready, err := w.q.needsDone(ctx, c.Job, &tasks[c.Index]); err != nil || !ready {
				return nil, nak(2 * time.Second), err // the reconciler removes the message, or the replica that was asked is behind
			}
			e.claim(w, slot)
		}
		revision, err := w.q.writeEntry(ctx, c.Job, c.Index, e, r.revision)
		if errors.Is(err, errConflict) {
			continue
		}
		if err != nil {
			w.disclaim(ctx, c, e, r.revision)
			return nil, "", err
		}
		w.q.logEdge(c.Job, c.Index, before, e)
		if e.State != Running {
			return nil, "+ACK", nil
		}
		if answer := w.lookBack(ctx, head, c, &tasks[c.Index]); answer != "" {
			return nil, answer, w.unclaim(ctx, c, e.Claim)
		}
		return w.newLease(c, tasks[c.Index], *e, revision), "", nil
	}
}

// lookBack says how to answer the message of a task that has just been claimed and is not wanted, "" where it is. Whoever cancels a job, or wants anew what the task
// needs, writes that and then looks who works: either they see the claim, or this sees what they wrote.
func (w *Worker) lookBack(ctx context.Context, before Head, c call, task *Task) (answer string) {
	head, _, err := w.q.head(ctx, c.Job)
	if err == nil && head.Document == before.Document && !head.Canceled && !head.Paused && head.Ended == "" {
		if ready, err := w.q.needsDone(ctx, c.Job, task); err != nil || ready {
			return "" // the queue may be away: that is no reason to hand the task back
		}
		return nak(2 * time.Second)
	}
	switch {
	case errors.Is(err, ErrNoJob), err == nil && head.Document != before.Document:
		return nak(2 * time.Second) // the message may be that of another job of the name
	case err != nil:
		return ""
	}
	return "+ACK"
}

// disclaim takes back a claim that was perhaps written, behind an entry of that revision, when this worker was to end: nobody would work on it until the lease is over.
func (w *Worker) disclaim(ctx context.Context, c call, claimed *Entry, revision uint64) {
	if claimed.State != Running {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), answerFor)
	defer stop()
	e := *claimed
	e.handBack()
	e.Beat++
	if _, err := w.q.writeEntry(ctx, c.Job, c.Index, &e, revision); errors.Is(err, errConflict) { // else the claim, if it comes yet, is refused
		_ = w.unclaim(ctx, c, claimed.Claim)
	}
}

// unclaim takes back a claim of which nothing was begun.
func (w *Worker) unclaim(ctx context.Context, c call, claim string) error {
	return w.q.updateEntry(ctx, c.Job, c.Index, func(e *Entry) bool {
		if e.Claim != claim || !e.State.owned() {
			return false
		}
		e.handBack()
		e.Beat++
		return true
	})
}

// judge says how to answer the message of a task that may not be claimed, "" where it may be. It changes an entry to what it must become first. A clock
// that went back makes an entry younger than nothing: then a wait is as long as it can be, and the reconciler's own clock decides.
func (e *Entry) judge(age, lease time.Duration, task *Task) (answer string) {
	switch {
	case e.State.Ended():
		return "+ACK"
	case e.State == Queued:
		return ""
	case e.State == RetryWait:
		if left := time.Duration(e.Delay) - max(age, 0); left > time.Second {
			return nak(left)
		}
		e.State = Queued
		return ""
	}
	// Steal from a silent owner only.
	silence := max(lease, task.Lease)
	if age < silence {
		return nak(silence - max(age, 0))
	}
	e.giveUp(task)
	return ""
}

// giveUp takes the task away from a silent owner.
func (e *Entry) giveUp(task *Task) {
	e.addFailure(errors.New("its worker fell silent"), func(f *Failure) { f.Lost = true })
	switch {
	case e.State == Canceling:
		e.stop()
	case e.Used >= task.maxAttempts():
		e.State = Failed
	default:
		e.State = Queued
	}
}

// claim makes the entry this worker's.
func (e *Entry) claim(w *Worker, slot Slot) {
	e.State, e.Claim, e.Delay = Running, rand.Text(), 0
	e.Node, e.Device, e.Driver, e.Version = w.info.Node, slot.Device, slot.Driver, w.q.options.Version
	e.clearProgress()
	e.Attempt++
	e.Used++
	e.Beat++
}

func (w *Worker) newLease(c call, task Task, e Entry, revision uint64) *Lease {
	// The work outlives the call of Claim: only the lease's end stops it.
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Lease{
		Job: c.Job, Index: c.Index, Task: task, Attempt: e.Attempt, Generation: e.Generation,
		w: w, used: e.Used, ctx: ctx, cancel: cancel, entry: e, revision: revision,
		progress: Progress{Job: c.Job, Index: c.Index, Attempt: e.Attempt}, began: time.Now(), moved: time.Now(),
	}
}

// needsDone says whether all that the task needs has succeeded. The message says so too, but what is needed may be made anew since.
func (q *Queue) needsDone(ctx context.Context, job string, task *Task) (bool, error) {
	const fewer = 16 // questions than one about all
	if len(task.Needs) > fewer {
		done := map[string]bool{}
		_, err := q.tasks.scan(ctx, tokenOf(job)+".*", 0, func(r record) {
			if e, err := parseEntry(r); err == nil {
				done[r.key] = e.State == Succeeded
			}
		})
		return err == nil && !slices.ContainsFunc(task.Needs, func(need int) bool { return !done[entryKey(job, need)] }), err
	}
	for _, need := range task.Needs {
		if e, _, err := q.entry(ctx, job, need); err != nil || e.State != Succeeded {
			return false, err
		}
	}
	return true, nil
}

// plan reads the tasks of a job, or remembers them: they never change.
func (w *Worker) plan(ctx context.Context, head Head) ([]Task, error) {
	w.lock.Lock()
	tasks, ok := w.plans[head.Plan]
	w.lock.Unlock()
	if ok {
		return tasks, nil
	}
	tasks, err := w.q.plan(ctx, head)
	if err != nil {
		return nil, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(w.plans) >= keptPlans {
		clear(w.plans)
	}
	w.plans[head.Plan] = tasks
	return tasks, nil
}

// serverTime asks the clock that stamps entries, and says whether it went back since it was asked last.
func (q *Queue) serverTime(ctx context.Context) (now time.Time, back bool, err error) {
	err = q.retry(ctx, "ask for the time", func(ctx context.Context) error {
		before := time.Now()
		msg, err := q.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+q.tasks.stream, nil)
		after := time.Now()
		if err != nil {
			return err
		}
		var info struct {
			Time time.Time `json:"ts"`
		}
		if err := json.Unmarshal(msg.Data, &info); err != nil {
			return err
		}
		if info.Time.IsZero() {
			return nats.ErrNoResponders
		}
		now = info.Time
		back = q.clock.take(now, before, after)
		return nil
	})
	return now, back, err
}
