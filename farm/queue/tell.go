package queue

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ending is what KV ctl holds under untold.<job> from before a job ends until somebody has been told: so the end is told at least once, whoever dies in between.
type ending struct {
	Job   string `json:"job"`
	Tries int    `json:"tries"` // that failed
}

const (
	mostTells = 36 // tries to tell of an end
	tellAgain = 10 * time.Minute
)

func endingKey(token string) string { return "untold." + token }

// noteEnding is called before a job's head says that it has ended. Of a job that goes on after all, as when it is retried, the next end is told.
func (r *reconciler) noteEnding(ctx context.Context, token, job string) error {
	if r.options.Ended == nil {
		return nil
	}
	raw, err := json.Marshal(ending{Job: job})
	if err != nil {
		return err
	}
	return r.q.ctl.put(ctx, endingKey(token), raw)
}

// postponed is a note after a try that failed.
type postponed struct {
	revision uint64 // of the note: a newer one is of a newer end
	until    time.Time
}

// tellEnds tells of ends until the context ends: of those that it hears of, and of those that others left untold.
func (r *reconciler) tellEnds(ctx context.Context) {
	for ctx.Err() == nil {
		var notes []record
		_, err := r.q.ctl.scan(ctx, endingKey("*"), 0, func(note record) {
			r.lock.Lock()
			defer r.lock.Unlock()
			if later := r.later[note.key]; later.revision != note.revision || time.Now().After(later.until) {
				notes = append(notes, note)
			}
		})
		err = errors.Join(err, atOnce(notes, func(note record) error { return r.tellEnd(ctx, note) }))
		if err != nil && ctx.Err() == nil {
			r.q.log.Warn("ends of jobs are not told", "cause", err)
		}
		_ = wait(ctx, r.ends, r.options.Again)
	}
}

// tellEnd tells of the end that a note is about, and removes the note, or counts a try that failed.
func (r *reconciler) tellEnd(ctx context.Context, note record) error {
	var n ending
	if err := json.Unmarshal(note.value, &n); err != nil {
		return errors.Join(err, r.q.dropNote(ctx, note))
	}
	found, err := r.q.jobs.read(ctx, tokenOf(n.Job))
	if errors.Is(err, errAbsent) {
		return r.q.dropNote(ctx, note) // it was forgotten
	}
	if err != nil {
		return err
	}
	head, err := parseHead(found.value)
	if err == nil && head.Gone {
		return r.q.dropNote(ctx, note)
	}
	if err != nil || head.Ended == "" {
		return err // it goes on
	}
	status := JobStatus{Head: head, State: head.Ended, Counts: head.Counts, Changed: found.at}
	if status.Submitted, err = r.q.submitted(ctx, head); err != nil {
		return err
	}
	err = r.options.Ended(ctx, status)
	if err == nil {
		return r.q.dropNote(ctx, note)
	}
	if ctx.Err() != nil {
		return nil // whoever comes next tells
	}
	if n.Tries++; n.Tries >= mostTells {
		r.q.log.Error("the end of a job could not be told", "job", n.Job, "tries", n.Tries, "cause", err)
		return r.q.dropNote(ctx, note)
	}
	r.q.log.Warn("the end of a job is told later", "job", n.Job, "tries", n.Tries, "cause", err)
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	revision, err := r.q.ctl.cas(ctx, note.key, note.revision, raw)
	if errors.Is(err, errConflict) {
		return nil // the job has ended once more
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.later[note.key] = postponed{revision, time.Now().Add(r.options.Again)}
	return err
}

// dropNote removes a note as it was read: not one that was written since.
func (q *Queue) dropNote(ctx context.Context, note record) error {
	return q.purge(ctx, q.ctl.stream, q.ctl.subject(note.key), jetstream.WithPurgeSequence(note.revision+1))
}
