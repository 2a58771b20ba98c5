package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

// Inventory is what a store says of the jobs that ran on it. Fsck judges the queue by it, and rebuilds the queue from it.
type Inventory interface {
	// Jobs calls fn for every job of the store, as it was submitted. Of several of a name the one to rebuild is the last. One that cannot be made out comes with the reason,
	// and where it is for a name.
	Jobs(ctx context.Context, fn func(plan JobPlan, bad error) error) error
	// Add takes in the document of a job that only the queue knows, so that Manifest finds what the store has of it all the same.
	Add(document []byte) error
	// Manifest returns the SHA-256 of the valid manifest of a task of the job whose document has this SHA-256, "" if there is none, and the generation of what it lists.
	Manifest(ctx context.Context, document string, index int, task Task) (sum string, generation int, err error)
	// Attempts returns the highest attempt at a task of which the store has something, 0 where it has nothing.
	Attempts(ctx context.Context, document string, index int) (int, error)
}

// Finding is something that is wrong with the queue.
type Finding struct {
	Job      string `json:"job"` // for what belongs to no job, its key
	Task     string `json:"task,omitempty"`
	Index    int    `json:"index"` // -1 where it is about no task
	What     string `json:"what"`
	Repaired bool   `json:"repaired"`
	Mends    bool   `json:"mends"` // whether repair mends it
}

// LacksResults is what a task lacks that repair queues again: only its next attempt mends it.
const LacksResults = "it succeeded, but the store has no valid results of it"

// Fsck compares the queue with a store, nil for none, and with itself. With repair it mends what it finds: an empty queue is rebuilt from the store.
// Workers may go on meanwhile.
func (q *Queue) Fsck(ctx context.Context, store Inventory, repair bool) ([]Finding, error) {
	c := &checker{q: q, ctx: ctx, repair: repair, known: map[string]bool{}, gone: map[string]bool{}, stored: map[string][]JobPlan{}, boards: map[string]*board{}}
	steps := []func() error{c.checkHeads, c.checkEntries, c.checkBoards, c.checkMessages, c.checkReconciler}
	c.store = store
	for _, step := range steps {
		if err := step(); err != nil {
			return c.findings, failure("check queue", "", err, "", scene.ErrTryAgain)
		}
	}
	return c.findings, nil
}

type checker struct {
	q        *Queue
	ctx      context.Context
	store    Inventory
	repair   bool
	stored   map[string][]JobPlan // by token of the job
	known    map[string]bool      // tokens of jobs of the queue
	gone     map[string]bool      // tokens of jobs that were forgotten
	boards   map[string]*board    // by token, of jobs that can be read
	findings []Finding
}

// find notes a finding, and mends it where that is wanted. It is none where what was looked at has changed since.
func (c *checker) find(job, task string, index int, what string, mend func() error) error {
	f := Finding{Job: job, Task: task, Index: index, What: what, Mends: mend != nil}
	var err error
	if c.repair && mend != nil {
		err = mend()
		f.Repaired = err == nil
	}
	if errors.Is(err, errConflict) {
		return nil
	}
	c.findings = append(c.findings, f)
	return err
}

func (c *checker) readStore() error {
	if c.store == nil {
		return nil
	}
	return c.store.Jobs(c.ctx, func(plan JobPlan, bad error) error {
		if bad != nil {
			return c.find(plan.Name, "", -1, "the store has this document of a job, which cannot be used: "+scene.ErrorText(bad), nil)
		}
		token := tokenOf(plan.Name)
		c.stored[token] = append(c.stored[token], plan)
		return nil
	})
}

// checkHeads finds jobs that cannot be read, and jobs of the store that are missing.
func (c *checker) checkHeads() error {
	var heads []record
	if _, err := c.q.jobs.scan(c.ctx, "*", 0, func(r record) { heads = append(heads, r) }); err != nil {
		return err
	}
	heads = slices.DeleteFunc(heads, func(r record) bool {
		head, err := parseHead(r.value)
		c.gone[r.key] = err == nil && head.Gone
		c.known[r.key] = !c.gone[r.key]
		return c.gone[r.key]
	})
	// Only now: whoever forgets a job removes it from the store before the queue, and must not find it in the queue again.
	if err := c.readStore(); err != nil {
		return err
	}
	for _, r := range heads {
		if err := c.checkHead(r); err != nil {
			return err
		}
	}
	for _, token := range slices.Sorted(maps.Keys(c.stored)) {
		plan := c.stored[token][len(c.stored[token])-1]
		if came, err := c.hasCome(token); err != nil {
			return err
		} else if came || c.known[token] {
			c.known[token] = true
			continue
		}
		err := c.find(plan.Name, "", -1, "the store has it, the queue does not", func() error { return c.restore(token, plan) })
		if err != nil {
			return err
		}
		c.known[token] = c.repair
		c.gone[token] = !c.repair
	}
	return nil
}

// checkHead opens the board of a job, or finds what is wrong with it.
func (c *checker) checkHead(r record) error {
	head, err := parseHead(r.value)
	if err == nil && head.Forgotten {
		return c.find(head.Name, "", -1, "it was not forgotten to the end", func() error { return c.q.forget(c.ctx, r.key, r.revision) })
	}
	if err = c.openBoard(r); err == nil {
		return nil
	}
	if isTransient(err) || c.ctx.Err() != nil {
		return err
	}
	now, again := c.q.jobs.read(c.ctx, r.key)
	if errors.Is(again, errAbsent) || again == nil && now.revision != r.revision {
		return nil // it was forgotten, or mended, meanwhile
	}
	var mend func() error
	if plans := c.stored[r.key]; len(plans) > 0 {
		mend = func() error {
			for _, key := range []string{r.key, r.key + ".>"} {
				if err := c.q.purge(c.ctx, c.q.jobs.stream, c.q.jobs.subject(key), jetstream.WithPurgeSequence(r.revision+1)); err != nil {
					return err
				}
			}
			return c.restore(r.key, plans[len(plans)-1])
		}
	} else if errors.Is(err, errAbsent) && head.Name != "" && (c.store != nil || head.Ended != "") { // its plan or document: they are written before the head, and nobody has them any more
		mend = func() error { return c.q.forget(c.ctx, r.key, r.revision) }
	}
	return c.find(r.key, "", -1, "it cannot be read: "+scene.ErrorText(err), mend)
}

func (c *checker) openBoard(r record) error {
	head, err := parseHead(r.value)
	if err != nil {
		return err
	}
	if _, err := c.q.Document(c.ctx, head.Name); err != nil {
		return err
	}
	tasks, err := c.q.plan(c.ctx, head)
	if err == nil {
		c.boards[r.key] = newBoard(head, r.revision, tasks)
	}
	return err
}

// restore submits a job of the store that is not in the queue. Others may do the same: what they have made of it stays.
func (c *checker) restore(token string, plan JobPlan) error {
	attempts, err := c.attempts(plan)
	if err != nil {
		return err
	}
	if err := c.q.submitFrom(c.ctx, plan, attempts); errors.Is(err, ErrExists) || errors.Is(err, ErrForgotten) {
		return errConflict
	} else if err != nil {
		return err
	}
	r, err := c.q.jobs.read(c.ctx, token)
	if err != nil {
		return err
	}
	return c.openBoard(r)
}

// attempts are those of a job's tasks that the store knows of: a worker of before may still be at one, and no number may repeat.
func (c *checker) attempts(plan JobPlan) ([]int, error) {
	list := make([]int, len(plan.Tasks))
	tasks := make([]int, len(plan.Tasks))
	for i := range tasks {
		tasks[i] = i
	}
	document := hashOf(plan.Document)
	err := atOnce(tasks, func(i int) (err error) {
		list[i], err = c.store.Attempts(c.ctx, document, i)
		return err
	})
	return list, err
}

// checkEntries finds entries that cannot be read or belong to no job.
func (c *checker) checkEntries() error {
	type bad struct {
		key, what string
		revision  uint64
	}
	var list []bad
	_, err := c.q.tasks.scan(c.ctx, "*.*", 0, func(r record) {
		token, _, _ := strings.Cut(r.key, ".")
		if c.gone[token] { // it may have come back, takes little room, and Submit sees to it
		} else if !c.known[token] {
			list = append(list, bad{r.key, "an entry of no job", r.revision})
		} else if b := c.boards[token]; b != nil {
			if _, err := b.take(r); err != nil {
				list = append(list, bad{r.key, err.Error(), r.revision})
			}
		}
	})
	if err != nil {
		return err
	}
	for _, b := range list {
		token, _, _ := strings.Cut(b.key, ".")
		if came, err := c.hasCome(token); err != nil {
			return err
		} else if came {
			continue
		}
		if board := c.boards[token]; board != nil {
			now, _, err := c.q.head(c.ctx, board.head.Name)
			if errors.Is(err, ErrNoJob) || err == nil && now.Plan != board.head.Plan {
				continue // it was forgotten meanwhile: the entry may be one of another job of the name
			}
		}
		err := c.find(b.key, "", -1, b.what, func() error { return c.dropEntry(b.key, b.revision) })
		if err != nil {
			return err
		}
	}
	return nil
}

// hasCome says whether a job that was not there when the heads were read is there now: it was submitted meanwhile.
func (c *checker) hasCome(token string) (bool, error) {
	if c.known[token] {
		return false, nil
	}
	r, err := c.q.jobs.read(c.ctx, token)
	if errors.Is(err, errAbsent) {
		return false, nil
	}
	if head, bad := parseHead(r.value); err == nil && bad == nil && head.Gone {
		return false, nil
	}
	return err == nil, err
}

// dropEntry removes an entry of that revision: its task is as if nobody had claimed it, and its job has not ended.
func (c *checker) dropEntry(key string, revision uint64) error {
	token, index, _ := strings.Cut(key, ".")
	b := c.boards[token]
	i, err := strconv.Atoi(index)
	if b == nil || err != nil || i < 0 || i >= len(b.cells) {
		return c.q.purge(c.ctx, c.q.tasks.stream, c.q.tasks.subject(key), jetstream.WithPurgeSequence(revision+1))
	}
	e := &Entry{Format: Format, Key: key, State: Queued}
	if c.store != nil {
		if e.Attempt, err = c.store.Attempts(c.ctx, b.head.Document, i); err != nil { // no number comes twice
			return err
		}
	}
	revision, err = c.q.writeEntry(c.ctx, b.head.Name, i, e, revision) // not absent: older ones may come back, as forget knows
	if err != nil {
		return err
	}
	b.setEntry(i, e, revision, time.Time{})
	return c.reopen(b)
}

// reopen has the reconciler read a job anew.
func (c *checker) reopen(b *board) error {
	err := c.q.updateHead(c.ctx, b.head.Name, func(head *Head) bool {
		if head.Forgotten {
			return false
		}
		head.reopen()
		return true
	})
	if errors.Is(err, ErrNoJob) {
		return nil // it has just been forgotten
	}
	return err
}

// checkBoards compares what succeeded with the manifests of the store.
func (c *checker) checkBoards() error {
	for _, token := range slices.Sorted(maps.Keys(c.boards)) {
		b := c.boards[token]
		// A job of this name that was forgotten has other tasks.
		if c.store == nil {
			if err := c.checkEnding(b); err != nil {
				return err
			}
			continue
		}
		if !slices.ContainsFunc(c.stored[token], func(plan JobPlan) bool { return hashOf(plan.Document) == b.head.Document }) {
			if err := c.checkStranger(b); err != nil {
				return err
			}
			continue
		}
		mended := len(c.findings)
		if err := c.checkEnding(b); err != nil {
			return err
		}
		for i := range b.cells {
			if err := c.checkManifest(b, i); err != nil {
				return err
			}
		}
		if !c.repair || len(c.findings) == mended {
			continue
		}
		if err := c.reopen(b); err != nil {
			return err
		}
	}
	return nil
}

// checkEnding finds a job that has ended, and of which tasks were queued again: whoever did that was interrupted, and no reconciler looks at it.
func (c *checker) checkEnding(b *board) error {
	if b.head.Redo != nil {
		return c.checkRedo(b)
	}
	if !b.halfEnded() {
		return nil
	}
	now, err := c.q.Head(c.ctx, b.head.Name)
	if err != nil || now.Ended == "" || now.Generation != b.head.Generation {
		return nil // it goes on, or is gone
	}
	return c.find(b.head.Name, "", -1, "it has ended, but not all of its tasks have", func() error { return c.reopen(b) })
}

// checkRedo finds a Retry that was interrupted while it queued again what succeeded.
func (c *checker) checkRedo(b *board) error {
	now, _, err := c.q.open(c.ctx, b.head.Name)
	if err != nil || now.head.Redo == nil || now.head.Redo.Number != b.head.Redo.Number {
		return nil // it is finished, or gone
	}
	return c.find(b.head.Name, "", -1, "somebody wanted tasks done again, and was interrupted", func() error { return c.q.finishRedo(c.ctx, now) })
}

// checkStranger looks for the results of a job whose document the store lacks, though workers put it there before they begin. So where results are missing it
// is not the folder that they went to, as when a share is not mounted. That is no reason to do them again.
func (c *checker) checkStranger(b *board) error {
	if err := c.checkEnding(b); err != nil || b.counts[Succeeded] == 0 {
		return err
	}
	document, err := c.q.Document(c.ctx, b.head.Name)
	if errors.Is(err, ErrNoJob) {
		return nil // it has just been forgotten
	}
	if err != nil {
		return err
	}
	if err := c.store.Add(document); err != nil {
		return c.find(b.head.Name, "", -1, "its results cannot be looked at: "+scene.ErrorText(err), nil)
	}
	missing := 0
	for i := range b.cells {
		if b.cells[i].state != Succeeded {
			continue
		}
		manifest, _, err := c.store.Manifest(c.ctx, b.head.Document, i, b.tasks[i])
		if err != nil {
			return err
		}
		if manifest == "" {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	what := fmt.Sprintf("the store knows nothing of the job, nor has it results of tasks that succeeded (%d of %d): is this its folder, and is it mounted? Nothing is queued again for that", missing, b.counts[Succeeded])
	return c.find(b.head.Name, "", -1, what, nil)
}

func (c *checker) checkManifest(b *board, i int) error {
	task, cell := &b.tasks[i], &b.cells[i]
	manifest, generation, err := c.store.Manifest(c.ctx, b.head.Document, i, *task)
	if err != nil {
		return err
	}
	entry := Entry{Format: Format, Key: entryKey(b.head.Name, i)}
	if cell.entry != nil {
		entry = *cell.entry
	}
	// What the entry has become since it was read, as while the files of a large farm were, is not judged by what the store had.
	update := func(change func(*Entry)) func() error {
		return func() error {
			change(&entry)
			entry.Beat++
			_, err := c.q.writeEntry(c.ctx, b.head.Name, i, &entry, cell.revision)
			return err
		}
	}
	switch {
	case cell.state == Succeeded && manifest == "":
		return c.find(b.head.Name, task.Name, i, LacksResults, update(func(e *Entry) {
			e.again()
		}))
	case cell.state == Succeeded && manifest != entry.Manifest:
		return c.find(b.head.Name, task.Name, i, "its manifest is another one than the queue knows", update(func(e *Entry) {
			e.Manifest, e.Generation = manifest, max(e.Generation, generation)
		}))
	case manifest != "" && cell.state != Succeeded && !entry.State.owned() && generation >= entry.Generation:
		return c.find(b.head.Name, task.Name, i, "the store has a valid manifest of it, the queue does not know", update(func(e *Entry) {
			e.State, e.Manifest, e.Error = Succeeded, manifest, ""
			e.Generation = generation // so that the next one, of a retry by hand, is above what the store has
		}))
	}
	return nil
}

// checkMessages finds messages of nothing, and tasks under way whose message is lost.
func (c *checker) checkMessages() error {
	s, err := c.q.js.Stream(c.ctx, jobStream)
	if err != nil {
		return err
	}
	info, err := s.Info(c.ctx, jetstream.WithSubjectFilter("jobs.>"))
	if err != nil {
		return err
	}
	left := info.State.Subjects
	for _, b := range c.boards {
		for i := range b.cells {
			cell := &b.cells[i]
			subject := callSubject(b.head, &b.tasks[i], i)
			_, called := left[subject]
			if !cell.state.Ended() {
				delete(left, subject)
			}
			if called || b.head.Canceled || !cell.state.owned() { // the reconciler calls those that wait
				continue
			}
			err := c.find(b.head.Name, b.tasks[i].Name, i, "its message is lost", func() error { return c.q.call(c.ctx, place{b, i}) })
			if err != nil {
				return err
			}
		}
	}
	for subject := range left {
		if parts := strings.Split(subject, "."); len(parts) == 5 { // jobs.<priority>.<pool>.<job>.<index>
			if came, err := c.hasCome(parts[3]); err != nil {
				return err
			} else if came {
				continue
			}
		}
		err := c.find(subject, "", -1, "a message of no task, or of one that has ended", func() error { return c.q.purge(c.ctx, jobStream, subject) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkReconciler() error {
	value, _, err := c.q.lead.get(c.ctx, leadKey)
	if errors.Is(err, errAbsent) || err == nil && len(value) == 0 {
		return c.find(leadKey, "", -1, "nobody reconciles: queued tasks wait until a farm serve runs", nil)
	}
	return err
}
