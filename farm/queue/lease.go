package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

// Why the context of a lease ended, as its context.Cause.
var (
	ErrLost     = errors.New("another worker has taken the task") // throw the work away
	ErrCanceled = errors.New("the task was canceled")             // stop, keep a checkpoint, then Handback
	ErrStalled  = errors.New("the task makes no progress")        // kill it, then Retry
	ErrTimeout  = errors.New("the attempt took too long")         // stop, then Retry
	ErrAway     = errors.New("the queue is away")                 // stop, keep a checkpoint, then Handback, which may fail
)

const (
	maxFailures = 8
	awayLimit   = 10 * time.Minute
	stopping    = 6 * time.Minute // more than run-task takes to save and upload: how long a task that was told to stop keeps its lease
	absentLimit = 2 * time.Second // how long a replica may not know an entry that is there
	maxMessage  = 1 << 10
	maxUnit     = 32
	maxRate     = 1e9
)

// Lease is the right to work on a task. It is kept up in the background while Progress reports progress. One of Succeed, Fail, Retry and Handback ends it.
type Lease struct {
	Job        string
	Index      int
	Task       Task
	Attempt    int // unique for the task
	Generation int // outputs of lower generations do not count; whoever finds outputs of a higher one, which a lost queue knew, raises it before Succeed

	w      *Worker
	used   int // attempts that count, this one included
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // ends the upkeep
	ended  sync.WaitGroup

	writing  sync.Mutex // one write of the entry at a time; guards the four below
	entry    Entry
	revision uint64
	missed   time.Time // since when the entry is not there
	gone     bool

	lock     sync.Mutex
	reply    string // where the message is acknowledged
	kept     bool   // in the background
	progress Progress
	moved    time.Time // when the step last changed
	sent     time.Time // when progress was last published
}

// Progress is what a running task says once a second, on subject prog.<job>.<index>. It may get lost.
type Progress struct {
	Job     string `json:"job"`
	Index   int    `json:"index"`
	Attempt int    `json:"attempt"`
	Step    int64  `json:"step"`
	Of      int64  `json:"of"`
	Message string `json:"message,omitempty"`

	Rate float64 `json:"rate,omitempty"` // steps a second, 0: not known
	Unit string  `json:"unit,omitempty"` // what steps are, for people
}

// Context ends when the work must stop, and says why. It also ends with the lease.
func (l *Lease) Context() context.Context { return l.ctx }

// Progress says how far the work is. A step or message that does not change is no progress; see Alive.
func (l *Lease) Progress(step, of int64, message string) {
	message = message[:min(len(message), maxMessage)]
	l.lock.Lock()
	now := time.Now()
	if step != l.progress.Step || message != l.progress.Message {
		l.moved = now
	}
	l.progress.Step, l.progress.Of, l.progress.Message = step, of, message
	send := now.Sub(l.sent) >= time.Second
	if send {
		l.sent = now
	}
	progress := l.progress
	l.lock.Unlock()
	if raw, err := json.Marshal(progress); err == nil && send {
		_ = l.w.q.nc.Publish("prog."+entryKey(l.Job, l.Index), raw) // lossy by design
	}
}

// Pace says how fast the work is: steps a second, 0 where that is not known, and what steps are. The next Progress tells others.
func (l *Lease) Pace(rate float64, unit string) {
	if !(rate >= 0 && rate <= maxRate) { // a child's mistake, which JSON could not hold
		rate = 0
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.progress.Rate, l.progress.Unit = rate, unit[:min(len(unit), maxUnit)]
}

// Alive says that the work goes on, though no step or message tells: bytes come and go, or the child says something.
func (l *Lease) Alive() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.moved = time.Now()
}

// Verify says that the outputs are committed and will now be looked at. It gives ErrLost where another worker has taken the task, and ErrCanceled where nobody wants
// it: outputs that are there all the same harm nobody, for what keeps those of attempts apart is in the store, by Attempt and Generation.
func (l *Lease) Verify(ctx context.Context) error {
	return l.wrap("verify task", l.write(ctx, func(e *Entry) error {
		if e.State == Canceling {
			return ErrCanceled
		}
		e.State, e.Declined = Verifying, nil
		return nil
	}))
}

// Succeed ends the lease of a task whose outputs are committed under a manifest with this SHA-256.
func (l *Lease) Succeed(ctx context.Context, manifest string) error {
	l.lock.Lock()
	last := l.progress
	l.lock.Unlock()
	return l.finish(ctx, "+ACK", func(e *Entry) {
		e.State, e.Manifest, e.Error, e.Again = Succeeded, manifest, "", false
		e.Step, e.Of, e.Message = last.Step, last.Of, last.Message
		if e.Of > 0 {
			e.Step = e.Of // the last step is seldom said: one progress a second is enough
		}
		e.Generation = max(e.Generation, l.Generation)
	})
}

// Fail ends the lease of a task that no other attempt could do.
func (l *Lease) Fail(ctx context.Context, cause error) error {
	return l.finish(ctx, "+ACK", func(e *Entry) {
		e.addFailure(cause, func(f *Failure) { f.Permanent = true })
		if e.State == Canceling {
			e.stop()
		} else {
			e.State = Failed
		}
	})
}

// Retry ends the lease of an attempt that failed: the next one begins after delay, 0 for the task's backoff. Without attempts left the task fails.
func (l *Lease) Retry(ctx context.Context, cause error, delay time.Duration) error {
	if delay <= 0 {
		delay = l.Task.backoff(l.used)
	}
	return l.finish(ctx, nak(delay), func(e *Entry) {
		e.addFailure(cause, nil)
		switch {
		case e.State == Canceling:
			e.stop()
		case e.Used >= l.Task.maxAttempts():
			e.State = Failed
		default:
			e.State, e.Delay = RetryWait, Duration(delay)
		}
	})
}

// Handback ends the lease of a task that another attempt shall go on with at once; this one does not count. A canceled task is then canceled.
func (l *Lease) Handback(ctx context.Context) error {
	return l.finish(ctx, nak(0), (*Entry).handBack)
}

// handBack gives the task to the next attempt; this one does not count.
func (e *Entry) handBack() {
	if e.State == Canceling {
		e.stop()
		return
	}
	e.State, e.Declined = Queued, nil
	e.Used--
}

// stop ends the attempt at a task that was canceled. One that somebody has wanted again since waits for the next.
func (e *Entry) stop() {
	e.State = Canceled
	if e.Again {
		e.again()
	}
}

// again queues a task anew: what attempts before this have made does not count.
func (e *Entry) again() {
	e.State, e.Used, e.Manifest, e.Claim, e.Again = Queued, 0, "", "", false
	e.clearProgress()
	e.Generation++
}

// clearProgress forgets how far the last attempt was.
func (e *Entry) clearProgress() {
	e.Step, e.Of, e.Message = 0, 0, ""
	e.Rate, e.Unit, e.Took = 0, "", 0
}

func (e *Entry) addFailure(cause error, change func(*Failure)) {
	text := scene.ErrorText(cause)
	e.Error, e.Declined = text[:min(len(text), maxMessage)], nil
	f := Failure{Attempt: e.Attempt, Node: e.Node, Device: e.Device, Driver: e.Driver, Version: e.Version, Error: e.Error}
	if change != nil {
		change(&f)
	}
	e.Failures = append(slices.Clone(e.Failures), f)
	e.Failures = e.Failures[max(0, len(e.Failures)-maxFailures):]
}

func nak(delay time.Duration) string {
	if delay <= 0 {
		return "-NAK"
	}
	return fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
}

func (l *Lease) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return failure(op, l.Job+"/"+l.Task.Name, err, "", scene.ErrTryAgain)
}

// end asks for the work to stop.
func (l *Lease) end(cause error) {
	if l.ctx.Err() == nil {
		l.w.q.log.Info("lease ends", "job", l.Job, "index", l.Index, "attempt", l.Attempt, "cause", cause)
	}
	l.cancel(cause)
}

// finish writes the last entry of the lease, then answers the message. Where that answer gets lost, whoever gets the message again answers it.
func (l *Lease) finish(ctx context.Context, answer string, change func(*Entry)) error {
	l.stop()
	l.ended.Wait()
	err := l.write(ctx, func(e *Entry) error {
		change(e)
		e.Rate = 0
		return nil
	})
	l.w.lock.Lock()
	if key := entryKey(l.Job, l.Index); l.w.leases[key] == l { // another slot may have taken the task again
		delete(l.w.leases, key)
	}
	l.w.lock.Unlock()
	l.cancel(context.Canceled)
	if err != nil {
		return l.wrap("end lease", err)
	}
	l.writing.Lock()
	state := l.entry.State
	l.writing.Unlock()
	switch {
	case state.Ended():
		answer = "+ACK"
	case state == Queued:
		answer = nak(0)
	}
	l.answer(answer)
	return nil
}

func (l *Lease) answer(text string) {
	l.lock.Lock()
	reply := l.reply
	l.lock.Unlock()
	_ = l.w.q.nc.Publish(reply, []byte(text))
}

// write changes the entry, as long as it is this lease's.
func (l *Lease) write(ctx context.Context, change func(*Entry) error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	pause := firstWait
	for {
		if l.gone {
			return ErrLost
		}
		e := l.entry
		if err := change(&e); err != nil {
			return err
		}
		e.Beat++
		e.Took = Duration(time.Since(l.began).Round(time.Millisecond))
		revision, err := l.w.q.writeEntry(ctx, l.Job, l.Index, &e, l.revision)
		if err == nil {
			l.w.q.logEdge(l.Job, l.Index, l.entry.State, &e)
			l.entry, l.revision = e, revision
			return nil
		}
		if !errors.Is(err, errConflict) {
			return err
		}
		if pause, err = l.resolve(ctx, pause); err != nil {
			return err
		}
	}
}

// resolve follows a write that was refused. Where nothing newer is found, a replica that is behind answered, which is asked again after a pause; or the entry
// was removed: with all of the job, or because it could not be read. The caller holds writing.
func (l *Lease) resolve(ctx context.Context, pause time.Duration) (next time.Duration, err error) {
	before := l.revision
	err = l.examine(ctx)
	switch {
	case errors.Is(err, errAbsent) && l.missed.IsZero():
		l.missed = time.Now()
	case errors.Is(err, errAbsent):
		if time.Since(l.missed) > absentLimit {
			return 0, l.lose()
		}
	case err != nil:
		return 0, err
	case l.revision > before:
		l.missed = time.Time{}
		return firstWait, nil
	}
	return min(2*pause, lastWait), wait(ctx, nil, pause)
}

// lose ends a lease whose task is another's now. The caller holds writing.
func (l *Lease) lose() error {
	l.gone = true
	l.end(ErrLost)
	return ErrLost
}

// examine reads the entry after somebody else wrote it, or gives errAbsent. The caller holds writing.
func (l *Lease) examine(ctx context.Context) error {
	e, r, err := l.w.q.entry(ctx, l.Job, l.Index)
	if err == nil && r.revision == 0 {
		return errAbsent
	}
	if err != nil || r.revision <= l.revision {
		return err
	}
	if e.Claim != l.entry.Claim || !e.State.owned() {
		return l.lose()
	}
	l.entry, l.revision = *e, r.revision
	if e.State == Canceling {
		l.end(ErrCanceled)
	}
	return nil
}

// keep holds the lease until the work ends, stops making progress or is told to stop.
func (l *Lease) keep(ctx context.Context) {
	defer func() {
		l.lock.Lock()
		l.kept = false
		l.lock.Unlock()
	}()
	told := make(chan struct{}, 1)
	sub, err := l.w.q.nc.Subscribe("ev.task."+entryKey(l.Job, l.Index), func(m *nats.Msg) { l.hear(m, told) })
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	}
	every := time.Duration(l.w.q.farm.Lease) / 3
	began, kept := time.Now(), time.Now()
	var until time.Time
	pause := time.Duration(0) // after what failed: some refusals come at once
	for {
		if err := wait(ctx, told, max(pause, every-time.Since(kept))); err != nil {
			return
		}
		now := time.Now()
		if until.IsZero() && l.ctx.Err() != nil {
			until = now.Add(stopping)
		}
		if !until.IsZero() && now.After(until) {
			return
		}
		l.lock.Lock()
		moved := l.moved
		l.lock.Unlock()
		if now.Sub(moved) > cmp.Or(l.Task.Stall, 10*time.Minute) {
			l.end(ErrStalled)
			return
		}
		if l.Task.Timeout > 0 && now.Sub(began) > l.Task.Timeout {
			l.end(ErrTimeout)
		}
		err := l.keepOnce(ctx, every, now.Sub(kept) >= every)
		pause = 0
		switch {
		case errors.Is(err, ErrLost) || ctx.Err() != nil:
			return
		case err == nil && now.Sub(kept) >= every:
			kept = now
		case err != nil:
			pause = min(lastWait, every/4)
			l.w.q.log.Warn("lease not kept", "job", l.Job, "index", l.Index, "attempt", l.Attempt, "cause", err)
			if now.Sub(kept) > awayLimit {
				l.end(ErrAway)
			}
		}
	}
}

// hear tells keep of writes by others.
func (l *Lease) hear(m *nats.Msg, told chan<- struct{}) {
	sequence, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return
	}
	l.writing.Lock()
	old := sequence <= l.revision
	l.writing.Unlock()
	if !old {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// keepOnce writes a heartbeat, or only looks what somebody else wrote.
func (l *Lease) keepOnce(ctx context.Context, most time.Duration, beat bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if !beat {
		l.writing.Lock()
		defer l.writing.Unlock()
		return l.examine(ctx)
	}
	l.lock.Lock()
	progress := l.progress
	l.lock.Unlock()
	err := l.write(ctx, func(e *Entry) error {
		e.Step, e.Of, e.Message, e.Declined = progress.Step, progress.Of, progress.Message, nil
		e.Rate, e.Unit = progress.Rate, progress.Unit
		return nil
	})
	if err == nil {
		l.answer("+WPI")
	}
	return err
}
