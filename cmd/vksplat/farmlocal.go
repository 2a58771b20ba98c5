package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vksplat/farm/client"
	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	"vksplat/internal/run/output"
)

// localJob is a job that farm run has run on this machine, whose user's state folder has one file of each.
type localJob struct {
	Name    string        `json:"job"`
	Outputs store.Options `json:"outputs"` // root that its results are below
}

// note records the job, whose own folder is dir, on this machine. Failing to do so is harmless.
func (j localJob) note(dir string) {
	if folder, err := stateFolder("jobs"); err == nil && os.MkdirAll(folder, 0o777) == nil {
		_ = atomicfile.WriteJSON(filepath.Join(folder, filepath.Base(dir)+".json"), j, "")
	}
}

// place is where the results are, what this machine keeps of the job, and the lock of the process that runs it.
func (j localJob) place() (results, own, lock string, err error) {
	results = strings.TrimSuffix(j.Outputs.URL, "/") + "/" + j.Name
	locks, err := stateFolder("locks")
	if err != nil {
		return "", "", "", err
	}
	bucket := store.IsBucket(j.Outputs.URL)
	if !bucket {
		folder, err := j.Outputs.Folder()
		if err != nil {
			return "", "", "", err
		}
		results = filepath.Join(folder, j.Name)
	}
	own, err = localState(j.Name, results)
	lock = filepath.Join(results, output.LockName)
	if bucket { // which has no locks
		lock = filepath.Join(locks, filepath.Base(own)+output.LockName)
	}
	return results, own, lock, err
}

// isDead says that the process which wrote a status was one of this machine and has ended.
func (j localJob) isDead(s *local.Status) bool {
	_, _, lock, err := j.place()
	host, unknown := os.Hostname()
	if errors.Join(err, unknown) != nil || s.Ended || s.Host != host || lockfile.Check(lock) != nil {
		return false
	}
	unlock, err := lockfile.Try(lock, lockfile.Removed)
	if err == nil {
		unlock()
	}
	return err == nil
}

// stoppedJob is the status of a job that has not ended, and that no process runs.
const stoppedJob = "stopped"

// silentFor is longer than a run on another machine takes to write its status.
const silentFor = time.Minute

// localJobs lists the jobs that farm run has run on this machine and whose results are there, those first that are not
// over, and of these the newest.
func localJobs() (list []client.Job, roots map[string]store.Root, err error) {
	folder, err := stateFolder("jobs")
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("list jobs: %w", err)
	}
	roots = map[string]store.Root{}
	for _, e := range entries {
		var j localJob
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil || json.Unmarshal(data, &j) != nil {
			continue
		}
		root, err := store.Open(j.Outputs)
		if err != nil {
			continue
		}
		if s, err := local.ReadStatus(root, j.Name); err == nil {
			shown := jobOfStatus(s, j.isDead(s))
			shown.Root = root.String() + "/" + j.Name
			list, roots[shown.Root] = append(list, shown), root
		}
	}
	client.Sort(list)
	return list, roots, nil
}

// jobOfStatus words the status of a run, whose process may be dead, as that of a farm's job.
func jobOfStatus(s *local.Status, dead bool) client.Job {
	counts := s.Counts()
	n := len(s.Tasks) - counts[local.Excluded]
	j := client.Job{ID: s.Job, Name: s.Job, Status: client.Running, Began: s.Began, Tasks: n,
		State: &flow.State{Tasks: n, Done: counts[local.Done], Queued: counts[local.Ready] + counts[local.Running] +
			counts[local.Retrying], Waiting: counts[local.Waiting], Failed: counts[local.Failed],
			Skipped: counts[local.Skipped]}}
	runs := !s.Ended && !dead && time.Since(s.Updated) < silentFor
	switch left := j.State.Queued + j.State.Waiting; {
	case runs:
	case left > 0:
		j.Status = stoppedJob
	case j.State.Done == n:
		j.Status, j.Ended = client.Done, &s.Updated
	default:
		j.Status, j.Ended = client.Failed, &s.Updated
	}
	for i := range s.Tasks {
		switch t := &s.Tasks[i]; {
		case t.State == local.Failed:
			why := flow.Failure{Index: i, Task: t.Task, Error: t.Error, Hint: t.Hint}
			j.State.Failures = append(j.State.Failures, why)
		case runs && (t.State == local.Running || t.State == local.Retrying):
			now := client.Task{Index: i, Running: t.State == local.Running, Failure: t.Error}
			now.Task, now.Device, now.Message = t.Task, t.Device, t.Message
			now.Step, now.Of, now.Rate, now.Unit = t.Step, t.Of, t.Rate, t.Unit
			j.Now = append(j.Now, now)
		}
	}
	return j
}

// findLocalJob is the newest job of a name, and the root that its results are below.
func findLocalJob(name string) (*client.Job, store.Root, error) {
	list, roots, err := localJobs()
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i], roots[list[i].Root], nil
		}
	}
	return nil, nil, fault.Usagef("vksplat farm list --all lists those of this machine; for a farm's jobs, join it: "+
		"vksplat farm join", "farm run has not run a job %q on this machine, or its results were deleted", name)
}
