package queue

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"vksplat/scene"
)

const (
	planPart     = 512 << 10 // bytes of a stored part of a plan, below the server's limit of a message
	maxPlanBytes = 256 << 20 // unpacked
)

// Submit stores a job: all of it or nothing. Tasks may be claimed from then on. Submitting the same plan again changes nothing; another plan of the same
// name gives ErrExists.
func (q *Queue) Submit(ctx context.Context, plan JobPlan) error { return q.submitFrom(ctx, plan, nil) }

// submitFrom is Submit of a job whose tasks were tried so often already, by index: nil for never. These numbers are not used again.
func (q *Queue) submitFrom(ctx context.Context, plan JobPlan, attempts []int) error {
	if plan.Priority == "" {
		plan.Priority = Normal
	}
	if err := plan.check(); err != nil {
		return failure("submit job", plan.Name, err, "", scene.ErrData)
	}
	err := errConflict
	for errors.Is(err, errConflict) { // somebody submits or forgets a job of the name at the same time
		err = q.submit(ctx, plan, attempts)
	}
	switch {
	case errors.Is(err, ErrExists):
		return failure("submit job", plan.Name, err, "Give the job another name; or let an administrator forget the old one, once it has ended: vksplat farm delete "+strconv.Quote(plan.Name), scene.ErrUsage)
	case err != nil:
		return failure("submit job", plan.Name, err, hintOf("submit job", err), kindOf(err))
	}
	q.log.Info("job submitted", "job", plan.Name, "owner", plan.Owner, "priority", plan.Priority, "tasks", len(plan.Tasks))
	return nil
}

func (q *Queue) submit(ctx context.Context, plan JobPlan, attempts []int) error {
	packed, sum, err := packTasks(plan.Tasks)
	if err != nil {
		return err
	}
	head := Head{
		Format: Format, Name: plan.Name, Owner: plan.Owner, Priority: plan.Priority, FailFast: plan.FailFast, Canceled: plan.Canceled, Tasks: len(plan.Tasks),
		Document: hashOf(plan.Document), Plan: sum, Version: q.options.Version,
	}
	key := tokenOf(plan.Name)
	former, before, err := q.headRecord(ctx, plan.Name)
	if err == nil {
		return sameJob(former, head)
	} else if !errors.Is(err, ErrNoJob) {
		return err
	}
	head.Former = former.Tasks
	// Parts carry the hash of the plan in their keys: somebody else who submits another job of this name meanwhile does not mix with them.
	for part := range slices.Chunk(packed, planPart) {
		if err := q.putOnce(ctx, partKey(key, sum, head.Parts), part); err != nil {
			return err
		}
		head.Parts++
	}
	if err := q.putOnce(ctx, documentKey(key, head.Document), plan.Document); err != nil {
		return err
	}
	if _, head.Age, err = q.jobs.get(ctx, documentKey(key, head.Document)); err != nil {
		return err
	}
	if err := q.begin(ctx, head, before.revision, attempts); err != nil {
		return err
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return err
	}
	_, err = q.jobs.cas(ctx, key, before.revision, raw)
	return err
}

// begin writes entries of a job that will be submitted, where those that are there must not count: of tasks that were tried before, and where a job of the name is
// gone, whose entries may come back. It gives errConflict where the head of the job is not at that revision any more.
func (q *Queue) begin(ctx context.Context, head Head, revision uint64, attempts []int) error {
	tasks := make([]int, 0, head.Tasks)
	for i := range head.Tasks {
		if i < head.Former || i < len(attempts) && attempts[i] > 0 {
			tasks = append(tasks, i)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	there := map[string]record{}
	if _, err := q.tasks.scan(ctx, tokenOf(head.Name)+".*", 0, func(r record) { there[r.key] = r }); err != nil {
		return err
	}
	// Nobody claims a task before its job is there: who has done so since that was read wrote the entry, too.
	if now, err := q.jobs.read(ctx, tokenOf(head.Name)); err != nil && !errors.Is(err, errAbsent) {
		return err
	} else if now.revision != revision {
		return errConflict
	}
	return atOnce(tasks, func(i int) error {
		r := there[entryKey(head.Name, i)]
		fresh := Entry{Format: Format, Key: entryKey(head.Name, i), State: Queued}
		e, err := parseEntry(r)
		switch {
		case err != nil: // absent, or damaged
			e = &fresh
		case i < head.Former:
			fresh.Attempt = e.Attempt // no number comes twice
			e = &fresh
		}
		if i < len(attempts) {
			e.Attempt = max(e.Attempt, attempts[i])
		}
		if raw, err := json.Marshal(e); err != nil || bytes.Equal(raw, r.value) {
			return err // two that submit at once would else overtake each other, over and over
		}
		_, err = q.writeEntry(ctx, head.Name, i, e, r.revision)
		return err
	})
}

func sameJob(found, head Head) error {
	if found.Forgotten {
		return ErrForgotten
	}
	if found.Document != head.Document || found.Plan != head.Plan {
		return ErrExists
	}
	return nil
}

// putOnce writes a value whose key says what it holds.
func (q *Queue) putOnce(ctx context.Context, key string, value []byte) error {
	if _, err := q.jobs.cas(ctx, key, 0, value); !errors.Is(err, errConflict) {
		return err
	}
	return nil
}

func partKey(job, sum string, part int) string {
	return job + ".plan." + sum[:16] + "." + strconv.Itoa(part)
}
func documentKey(job, sum string) string { return job + ".doc." + sum[:16] }

// check refuses what the queue cannot hold. That tasks make sense is the planner's business.
func (p *JobPlan) check() error {
	switch {
	case !isName(p.Name):
		return errors.New("a name has 1 to 255 bytes of UTF-8 without control characters")
	case len(p.Owner) > maxName || !utf8.ValidString(p.Owner):
		return errors.New("the owner's name is longer than 255 bytes or no UTF-8")
	case !slices.Contains(Priorities, p.Priority):
		return fmt.Errorf("priority %q is none of high, normal, low", p.Priority)
	case len(p.Document) > MaxDocument:
		return fmt.Errorf("the document has %d bytes, at most %d are allowed", len(p.Document), MaxDocument)
	case len(p.Tasks) == 0 || len(p.Tasks) > MaxTasks:
		return fmt.Errorf("a job has 1 to %d tasks, this one %d", MaxTasks, len(p.Tasks))
	}
	names := make(map[string]bool, len(p.Tasks))
	needs := 0
	for i, task := range p.Tasks {
		if needs += len(task.Needs); needs > maxNeeds {
			return fmt.Errorf("its tasks need others more than %d times", maxNeeds)
		}
		if err := task.check(i, len(p.Tasks)); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
		if names[task.Name] {
			return fmt.Errorf("two tasks are named %q", task.Name)
		}
		names[task.Name] = true
	}
	return p.checkCycles()
}

func (t *Task) check(i, n int) error {
	if !isName(t.Name) {
		return errors.New("a name has 1 to 255 bytes of UTF-8 without control characters")
	}
	if !isPool(t.pool()) {
		return poolError(t.Pool)
	}
	if t.Priority != "" && !slices.Contains(Priorities, t.Priority) {
		return fmt.Errorf("priority %q is none of high, normal, low", t.Priority)
	}
	for _, need := range t.Needs {
		if need < 0 || need >= n || need == i {
			return fmt.Errorf("needs task %d of %d", need, n)
		}
	}
	if t.MaxAttempts < 0 || min(t.Backoff, t.BackoffMax, t.Lease, t.Stall, t.Timeout) < 0 {
		return errors.New("a number or time below zero")
	}
	return nil
}

// checkCycles removes tasks whose needs are removed until none is left.
func (p *JobPlan) checkCycles() error {
	waits := make([]int, len(p.Tasks))
	heirs := make([][]int, len(p.Tasks))
	var ready []int
	for i, task := range p.Tasks {
		waits[i] = len(task.Needs)
		for _, need := range task.Needs {
			heirs[need] = append(heirs[need], i)
		}
		if len(task.Needs) == 0 {
			ready = append(ready, i)
		}
	}
	left := len(p.Tasks)
	for ; len(ready) > 0; left-- {
		last := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, heir := range heirs[last] {
			if waits[heir]--; waits[heir] == 0 {
				ready = append(ready, heir)
			}
		}
	}
	if left > 0 {
		i := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
		return fmt.Errorf("task %q needs itself by way of others", p.Tasks[i].Name)
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isPool(s string) bool { return isName(s) && len(s) <= maxPool }

func poolError(pool string) error {
	return fmt.Errorf("pool %.80q: a name has 1 to %d bytes of UTF-8 without control characters", pool, maxPool)
}

func (t *Task) priority(head Head) Priority { return cmp.Or(t.Priority, head.Priority) }

// limit is the name under which the task counts.
func (t *Task) limit() string { return cmp.Or(t.Limit, t.pool()) }

func (t *Task) pool() string {
	if t.Pool == "" {
		return AnyPool
	}
	return t.Pool
}

func (t *Task) maxAttempts() int { return cmp.Or(t.MaxAttempts, 4) }

// backoff is the wait after the failed attempt of that number in its generation.
func (t *Task) backoff(used int) time.Duration {
	limit := cmp.Or(t.BackoffMax, 10*time.Minute)
	wait := cmp.Or(t.Backoff, 10*time.Second)
	for ; used > 1 && wait < limit; used-- {
		wait *= 2
	}
	return min(wait, limit)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func packTasks(tasks []Task) (packed []byte, sum string, err error) {
	raw, err := json.Marshal(tasks)
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(raw); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), hashOf(raw), nil
}

func unpackTasks(packed []byte, head Head) ([]Task, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxPlanBytes))
	if err != nil {
		return nil, err
	}
	if hashOf(raw) != head.Plan {
		return nil, errors.New("the stored plan is damaged: its hash differs")
	}
	var tasks []Task
	if err := json.Unmarshal(raw, &tasks); err != nil {
		return nil, err
	}
	if len(tasks) != head.Tasks {
		return nil, fmt.Errorf("the stored plan has %d tasks, its job %d", len(tasks), head.Tasks)
	}
	return tasks, nil
}

// head reads the head of a job, or gives ErrNoJob, also of one that is gone.
func (q *Queue) head(ctx context.Context, job string) (head Head, revision uint64, err error) {
	head, r, err := q.headRecord(ctx, job)
	return head, r.revision, err
}

// headRecord is head with all that is stored of it, as when it was written.
func (q *Queue) headRecord(ctx context.Context, job string) (head Head, r record, err error) {
	r, err = q.jobs.read(ctx, tokenOf(job))
	if errors.Is(err, errAbsent) {
		return head, record{}, ErrNoJob
	}
	if err == nil {
		head, err = parseHead(r.value)
	}
	if err == nil && head.Gone {
		err = ErrNoJob
	}
	return head, r, err
}

func parseHead(raw []byte) (head Head, err error) {
	if err = json.Unmarshal(raw, &head); err == nil && head.Format != Format {
		err = fmt.Errorf("%w: %d, this program knows %d", ErrFormat, head.Format, Format)
	}
	return head, err
}

// plan reads the tasks of a job.
func (q *Queue) plan(ctx context.Context, head Head) ([]Task, error) {
	var packed []byte
	for part := range head.Parts {
		raw, _, err := q.jobs.get(ctx, partKey(tokenOf(head.Name), head.Plan, part))
		if err != nil {
			return nil, err
		}
		packed = append(packed, raw...)
	}
	return unpackTasks(packed, head)
}

// Document returns the document of a job as it was submitted.
func (q *Queue) Document(ctx context.Context, job string) ([]byte, error) {
	head, _, err := q.head(ctx, job)
	if err != nil {
		return nil, failure("read job", job, err, "", scene.ErrUsage)
	}
	raw, _, err := q.jobs.get(ctx, documentKey(tokenOf(job), head.Document))
	if err == nil && hashOf(raw) != head.Document {
		err = errors.New("the stored document is damaged: its hash differs")
	}
	if err != nil {
		return nil, failure("read job", job, err, "", nil)
	}
	return raw, nil
}
