package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
)

const (
	sweepEvery = time.Hour
	sweepAfter = time.Hour // since a job has ended: whoever tries it again at once finds the work so far on this disk
)

// jobsFolder holds below the work folder the documents of jobs, each in a folder of its own.
const jobsFolder = "jobs"

// documentFile is a job's document in its folder.
const documentFile = "job.json"

// sweeps removes from time to time what tasks of jobs that have ended left in the work folder: those that failed, were canceled or were done elsewhere.
func (n *node) sweeps(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.sweep(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn("the work folder was not cleared", "cause", err)
		}
		rest(ctx, sweepEvery)
	}
}

func (n *node) sweep(ctx context.Context) error {
	files, err := documents(n.Work)
	if err != nil || len(files) == 0 {
		return err
	}
	list, err := n.Queue.List(ctx)
	if err != nil {
		return err
	}
	jobs := map[string]queue.JobStatus{}
	for _, j := range list {
		jobs[j.Name] = j
	}
	for _, file := range files {
		data, readErr := os.ReadFile(file)
		job, parseErr := spec.Parse(file, data)
		if readErr != nil || parseErr != nil {
			continue // another version's, or gone
		}
		info, statErr := os.Stat(file)
		if statErr != nil || time.Since(info.ModTime()) < sweepAfter { // its job may be newer than the list
			continue
		}
		status, known := jobs[job.Name]
		if known && !isOver(status, time.Now()) {
			continue
		}
		err = errors.Join(err, n.clear(job, filepath.Dir(file)))
	}
	return err
}

// documents lists the files of jobs' documents in a work folder. Some may be there no more.
func documents(work string) (files []string, err error) {
	dir := filepath.Join(work, jobsFolder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		files = append(files, filepath.Join(dir, e.Name(), documentFile))
	}
	return files, err
}

// isOver says whether a job has ended long enough ago for its work to go.
func isOver(j queue.JobStatus, now time.Time) bool {
	return j.Ended != "" && now.Sub(j.Changed) >= sweepAfter
}

// clear removes the work folders of a job's tasks, but those that a process works in, and then the folder of its document.
func (n *node) clear(job *spec.Job, dir string) error {
	plan, err := job.Plan()
	if err != nil {
		return err
	}
	look, cancel := context.WithCancel(context.Background())
	cancel() // one look, no waiting
	busy := false
	for i := range plan.Tasks {
		work, lock := task.WorkFolder(n.Work, job, &plan.Tasks[i], plan.Hash(i))
		if _, err := os.Stat(work); err != nil {
			continue
		}
		unlock, err := store.Lock(look, lock)
		if errors.Is(err, context.Canceled) {
			busy = true
			continue
		}
		if err != nil {
			return err
		}
		err = os.RemoveAll(work)
		unlock()
		if err != nil {
			return err
		}
	}
	if busy {
		return nil
	}
	return os.RemoveAll(dir)
}
