package store

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Task is one that has left something in a root.
type Task struct {
	Key     string
	Results bool      // there is a manifest; it may be damaged
	Changed time.Time // when an attempt last wrote something beside the results; zero: nothing is there
}

// taskSet is tasks by key.
type taskSet map[string]*Task

func (s taskSet) at(key string) *Task {
	if s[key] == nil {
		s[key] = &Task{Key: key}
	}
	return s[key]
}

// wrote takes in when something was written.
func (t *Task) wrote(at time.Time) {
	if at.After(t.Changed) {
		t.Changed = at
	}
}

// Tasks finds the tasks at and below a key by what is there: no document of a job is needed.
func Tasks(r Root, key string) ([]Task, error) {
	list, err := r.List(key)
	if err != nil {
		return nil, err
	}
	found, stages := taskSet{}, map[string][]Entry{}
	for _, e := range list {
		task, isResult := taskOf(e.Key)
		if before, file, inside := strings.Cut(e.Key, "/"+outFolder+"/a"); inside && strings.Contains(file, "/") {
			stages[before] = append(stages[before], e)
		}
		if task == "" {
			continue
		}
		if t := found.at(task); isResult {
			t.Results = true
		} else {
			t.wrote(e.Modified)
		}
	}
	for task, entries := range stages {
		if err := leftBehind(r, task, entries, found); err != nil {
			return nil, err
		}
	}
	tasks := make([]Task, 0, len(found))
	for _, t := range found {
		tasks = append(tasks, *t)
	}
	slices.SortFunc(tasks, func(a, b Task) int { return strings.Compare(a.Key, b.Key) })
	return tasks, nil
}

// leftBehind takes in files in folders of a task's results in a bucket, where commits put them: those that the manifest
// does not name were never committed, or are old.
func leftBehind(r Root, task string, entries []Entry, found taskSet) error {
	if !strings.HasPrefix(r.Stage(task, "any"), OutOf(task)+"/") {
		return nil
	}
	m, err := ReadManifest(r, OutOf(task))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		return err
	}
	for _, e := range entries {
		if m != nil && strings.HasPrefix(e.Key, path.Join(OutOf(task), m.At)+"/") {
			continue
		}
		found.at(task).wrote(e.Modified)
	}
	return nil
}

// taskOf is the task whose manifest of results a key is, or what an attempt at it left; "" for other files.
func taskOf(key string) (task string, isResult bool) {
	if dir := path.Dir(key); path.Base(key) == ManifestName && path.Base(dir) == outFolder {
		return path.Dir(dir), true
	}
	for _, folder := range []string{ckptFolder, tempFolder} {
		if before, _, found := strings.Cut(key, "/"+folder+"/"); found {
			return before, false
		}
	}
	return "", false
}

// Check reads all results of a task. With repair, damaged ones are moved out of the way: the task is made again when
// its job is run again.
func Check(ctx context.Context, r Root, task string, repair bool) error {
	m, err := ReadManifest(r, OutOf(task))
	if err == nil {
		err = verify(ctx, r, OutOf(task), m)
	}
	if !errors.Is(err, ErrDamaged) || !repair {
		return err
	}
	if _, moved := Result(ctx, r, task); moved != nil && !errors.Is(moved, fs.ErrNotExist) {
		return errors.Join(err, moved)
	}
	return err
}
