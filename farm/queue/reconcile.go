package queue

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ReconcileOptions say how.
type ReconcileOptions struct {
	Name  string                                 // of this process, for people
	Sole  bool                                   // no other process that lives has the name: who was elected under it before is dead
	Every time.Duration                          // between looks at what stream JOBS holds; 0 means 30 s
	Ended func(context.Context, JobStatus) error // tells somebody that a job has ended; nil: nobody wants to know. What fails is tried again, also by the next that is elected
	Again time.Duration                          // after a try of Ended that failed; 0 means ten minutes
}

// Reconcile stands for election and, while elected, calls workers to tasks whose needs are done, takes tasks from silent owners, ends jobs, and puts nodes
// into quarantine. It returns when the context ends. Any number of processes may run it.
func (q *Queue) Reconcile(ctx context.Context, options ReconcileOptions) error {
	options.Every, options.Again = cmp.Or(options.Every, 30*time.Second), cmp.Or(options.Again, tellAgain)
	me, err := json.Marshal(map[string]string{"name": options.Name, "term": rand.Text()})
	if err != nil {
		return err
	}
	rival := &rival{}
	if options.Sole {
		rival.dead = options.Name
	}
	for ctx.Err() == nil {
		revision, err := q.campaign(ctx, me, rival)
		if err == nil {
			q.log.Info("reconciler elected", "name", options.Name)
			q.reign(ctx, me, revision, options)
			q.log.Info("reconciler resigned", "name", options.Name)
			continue
		}
		if !errors.Is(err, errConflict) && ctx.Err() == nil {
			q.log.Warn("election failed", "cause", err)
		}
		_ = wait(ctx, nil, leadLife/4)
	}
	return nil
}

const (
	leadKey    = "reconciler"
	countAgain = 5 * time.Second // between looks at what stream JOBS holds while tasks wait: what lost its message is called again
)

// rival is another reconciler, as far as this process saw it renew the key.
type rival struct {
	revision uint64
	since    time.Time
	dead     string // a name whose holder cannot live, "" for none
}

// isDead says whether the holder of a key with this value is known not to live.
func (r *rival) isDead(value []byte) bool {
	var holder struct{ Name string }
	return r.dead != "" && json.Unmarshal(value, &holder) == nil && holder.Name == r.dead
}

// campaign takes the key where nobody holds it: it is absent, its holder left it empty, or did not renew it for its life. The server lets it expire by then,
// unless its clock went back.
func (q *Queue) campaign(ctx context.Context, me []byte, other *rival) (uint64, error) {
	value, revision, err := q.lead.get(ctx, leadKey)
	switch {
	case errors.Is(err, errAbsent):
		revision = 0
	case err != nil:
		return 0, err
	case bytes.Equal(value, me): // of a term that ended as the answer to a renewal, or to the resignation, got lost
	case other.isDead(value):
	case len(value) > 0 && revision != other.revision:
		other.revision, other.since = revision, time.Now()
		return 0, errConflict
	case len(value) > 0 && time.Since(other.since) < leadLife:
		return 0, errConflict
	}
	return q.lead.cas(ctx, leadKey, revision, me)
}

// reign reconciles for as long as the key can be renewed, then leaves it empty.
func (q *Queue) reign(ctx context.Context, me []byte, revision uint64, options ReconcileOptions) {
	ruling, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		for renewed := time.Now(); wait(ruling, nil, leadLife/4) == nil; renewed = time.Now() {
			try, stop := context.WithDeadline(ruling, renewed.Add(leadLife*3/4))
			next, err := q.lead.cas(try, leadKey, revision, me)
			stop()
			if err != nil {
				return
			}
			revision = next
		}
	})
	r := newReconciler(q, options)
	if options.Ended != nil {
		group.Go(func() { r.tellEnds(ruling) })
	}
	for ruling.Err() == nil {
		if err := r.run(ruling); err != nil && ruling.Err() == nil {
			q.log.Warn("reconciler starts over", "cause", err)
			_ = wait(ruling, nil, time.Second)
		}
	}
	group.Wait()
	leave, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_, _ = q.lead.cas(leave, leadKey, revision, nil) // else the key expires
}

// reconciler mirrors the jobs that have not ended. One goroutine owns it.
type reconciler struct {
	q         *Queue
	options   ReconcileOptions
	boards    map[string]*board          // by token of the job
	broken    map[string]uint64          // by token, the revision of a head that could not be used
	nextHead  uint64                     // revision from which heads are still to be read
	consumers map[string]bool            // made
	looked    bool                       // at the server's clock, in this run
	failing   map[string]map[string]bool // by node, tasks that failed there since one succeeded
	judged    map[string]int             // by key of an entry, the last attempt whose failure was looked at

	ends chan struct{} // receives when a job has ended

	lock  sync.Mutex
	dirty map[string]bool      // tokens of jobs with news, "" for heads
	later map[string]postponed // by key of the note
}

func newReconciler(q *Queue, options ReconcileOptions) *reconciler {
	return &reconciler{
		q: q, options: options, boards: map[string]*board{}, broken: map[string]uint64{}, consumers: map[string]bool{}, failing: map[string]map[string]bool{},
		judged: map[string]int{}, ends: make(chan struct{}, 1), later: map[string]postponed{},
	}
}

// run reconciles until something cannot be done.
func (r *reconciler) run(ctx context.Context) error {
	told := make(chan struct{}, 1)
	stop, err := r.listen(told)
	if err != nil {
		return err
	}
	defer stop()
	clear(r.boards)
	r.nextHead, r.looked = 0, false
	var looked, counted, cleared time.Time
	for {
		now := time.Now()
		all := now.Sub(looked) >= lookOver
		if all {
			looked = now
		}
		clock := now.Sub(cleared) >= r.options.Every
		if clock {
			cleared = now
		}
		count := clock || now.Sub(counted) >= countAgain && r.waits()
		if count {
			counted = now
		}
		if err := r.round(ctx, all, count, clock); err != nil {
			return err
		}
		if err := wait(ctx, told, lookOver-min(lookOver, time.Since(looked))); err != nil {
			return nil
		}
	}
}

// listen notes which jobs have news.
func (r *reconciler) listen(told chan<- struct{}) (stop func(), err error) {
	r.dirty = map[string]bool{"": true}
	return r.q.tell(told, func(subject string) {
		token := ""
		if parts := strings.Split(subject, "."); parts[1] == "task" {
			token = parts[2]
		}
		r.lock.Lock()
		r.dirty[token] = true
		r.lock.Unlock()
	}, "ev.job.*", "ev.task.*.*", "ev.ctl.*")
}

// waits says whether a task might be in front of workers.
func (r *reconciler) waits() bool {
	for _, b := range r.boards {
		if b.waits() {
			return true
		}
	}
	return false
}

// round looks at what has news, or at all, and does what follows. count has it look which messages there are, clock whether the server's went back.
func (r *reconciler) round(ctx context.Context, all, count, clock bool) error {
	r.lock.Lock()
	dirty := r.dirty
	r.dirty = map[string]bool{}
	r.lock.Unlock()
	if dirty[""] || all {
		if err := r.readHeads(ctx); err != nil {
			return err
		}
	}
	if all {
		if err := r.readBroken(ctx); err != nil {
			return err
		}
	}
	for token, b := range r.boards {
		if !all && !dirty[token] {
			continue
		}
		changed, err := r.q.readEntries(ctx, b)
		if err != nil {
			return fmt.Errorf("job %s: %w", b.head.Name, err)
		}
		if err := r.judgeNodes(ctx, b, changed); err != nil {
			return err
		}
	}
	if clock {
		if err := r.clearWaits(ctx); err != nil {
			return err
		}
	}
	if count {
		held, err := r.heldCalls(ctx) // first: nobody but this calls, so that there are never more messages than these
		if err == nil {
			err = r.countCalls(ctx, "jobs.>", r.boards)
		}
		if err == nil {
			err = r.recall(ctx, r.stuckCalls(held))
		}
		if err != nil {
			return err
		}
	}
	for _, token := range slices.Sorted(maps.Keys(r.boards)) {
		if err := r.withdraw(ctx, r.boards[token], false); err != nil {
			return err
		}
		if err := r.settle(ctx, token, r.boards[token]); err != nil {
			return err
		}
	}
	return r.release(ctx)
}

// clearWaits removes all messages where the server's clock went back: those that workers have or had come again only when it is as late as before. Tasks that
// may run are called anew. At first, entries tell whether it went back while the server was away.
func (r *reconciler) clearWaits(ctx context.Context) error {
	now, back, err := r.q.serverTime(ctx)
	for _, b := range r.boards {
		back = back || !r.looked && slices.ContainsFunc(b.cells, func(c cell) bool { return c.at.Sub(now) > clockJump })
	}
	if err != nil {
		return err
	}
	r.looked = true
	if !back {
		return nil
	}
	r.q.log.Warn("the server's clock went back: all tasks that wait are called again")
	return r.q.purge(ctx, jobStream, "jobs.>")
}

// readHeads opens boards of jobs that are new or were retried, and closes those of jobs that ended.
func (r *reconciler) readHeads(ctx context.Context) error {
	news := map[string]record{}
	next, err := r.q.jobs.scan(ctx, "*", r.nextHead, func(found record) { news[found.key] = found })
	if err != nil {
		return err
	}
	for token, found := range news {
		if err := r.takeHead(ctx, token, found); err != nil {
			return err
		}
	}
	r.nextHead = next
	return nil
}

// readBroken looks again at jobs that could not be read: a replica that is behind, or a repair, may have been the reason.
func (r *reconciler) readBroken(ctx context.Context) error {
	for _, token := range slices.Sorted(maps.Keys(r.broken)) {
		found, err := r.q.jobs.read(ctx, token)
		if errors.Is(err, errAbsent) {
			delete(r.broken, token)
			continue
		}
		if err == nil && found.revision >= r.broken[token] { // else that replica is behind
			err = r.takeHead(ctx, token, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) takeHead(ctx context.Context, token string, found record) error {
	head, err := parseHead(found.value)
	if err == nil && head.Ended != "" {
		delete(r.broken, token)
		r.close(token)
		return nil
	}
	b := r.boards[token]
	again := b != nil || head.Generation > 0 // workers may have seen another head of the job

	if err == nil && b != nil && b.head.Generation == head.Generation && b.head.Plan == head.Plan { // else entries may have gone
		delete(r.broken, token)
		b.setHead(head, found.revision)
		if head.Canceled {
			b.forgetCalls()
			return r.q.purge(ctx, jobStream, "jobs.*.*."+token+".*")
		}
		return r.meet(ctx, token, b, again)
	}
	if err == nil {
		b, err = r.q.board(ctx, head, found.revision)
	}
	if ctx.Err() != nil || err != nil && isTransient(err) {
		return err
	}
	if err != nil {
		if r.broken[token] != found.revision {
			r.q.log.Error("a job cannot be read; farm fsck may help", "job", token, "cause", err)
		}
		r.broken[token] = found.revision
		return nil
	}
	delete(r.broken, token)
	for i := range b.tasks {
		if err := r.needConsumer(ctx, b.tasks[i].priority(head), b.tasks[i].pool()); err != nil {
			return err
		}
	}
	r.boards[token] = b
	for i := range b.cells { // what failed before this board was there was another reconciler's to judge, or of a former run of the job
		if n := b.cells[i].entry.lastFailure(); n > 0 && r.judged[entryKey(head.Name, i)] == 0 {
			r.judged[entryKey(head.Name, i)] = n
		}
	}
	return r.meet(ctx, token, b, again)
}

// meet finds out which messages of a job there are. Those of a job that workers have seen otherwise, as paused or ended, are called anew.
func (r *reconciler) meet(ctx context.Context, token string, b *board, again bool) error {
	if err := r.countCalls(ctx, "jobs.*.*."+token+".*", map[string]*board{token: b}); err != nil {
		return err
	}
	return r.withdraw(ctx, b, again)
}

// close forgets a job that has ended, or is gone.
func (r *reconciler) close(token string) {
	if b := r.boards[token]; b != nil {
		for i := range b.cells {
			if b.cells[i].entry.lastFailure() > 0 {
				delete(r.judged, entryKey(b.head.Name, i))
			}
		}
	}
	delete(r.boards, token)
}

func (r *reconciler) needConsumer(ctx context.Context, priority Priority, pool string) error {
	name := consumerOf(priority, pool)
	if r.consumers[name] {
		return nil
	}
	err := r.q.makeConsumer(ctx, priority, pool)
	r.consumers[name] = err == nil
	return err
}

// countCalls finds out for which tasks of the boards stream JOBS holds a message.
func (r *reconciler) countCalls(ctx context.Context, filter string, boards map[string]*board) error {
	var info *jetstream.StreamInfo
	err := r.q.retry(ctx, "list "+filter, func(ctx context.Context) error {
		s, err := r.q.js.Stream(ctx, jobStream)
		if err == nil {
			info, err = s.Info(ctx, jetstream.WithSubjectFilter(filter))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, b := range boards {
		b.forgetCalls()
	}
	for subject := range info.State.Subjects {
		parts := strings.Split(subject, ".") // jobs.<priority>.<pool>.<job>.<index>
		if len(parts) != 5 || boards[parts[3]] == nil {
			continue
		}
		b := boards[parts[3]]
		if i, err := strconv.Atoi(parts[4]); err == nil && i >= 0 && i < len(b.cells) {
			b.cells[i].called = true
		}
	}
	return nil
}

// withdraw removes the messages of tasks that nobody may claim now: a worker would acknowledge one, and the answer may come after the task may be claimed
// once more. The next call has another number in the stream, which no old answer hits. So do, where anew is set, those of tasks that may be claimed.
func (r *reconciler) withdraw(ctx context.Context, b *board, anew bool) error {
	var gone []place
	kept := false
	for i := range b.cells {
		c := &b.cells[i]
		if !c.called {
			continue
		}
		// The message of a task that waits after a failed attempt keeps the time, which a board that has just been read does not know.
		wanted := c.state.owned() || !b.head.Paused && (c.state == RetryWait || c.state == Queued && !anew)
		kept = kept || wanted
		if !wanted {
			gone = append(gone, place{b, i})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if kept {
		return r.recall(ctx, gone)
	}
	if err := r.q.purge(ctx, jobStream, "jobs.*.*."+tokenOf(b.head.Name)+".*"); err != nil {
		return err
	}
	for _, at := range gone {
		b.cells[at.i].called = false
	}
	return nil
}
