package store

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Task is a task with files in a root.
type Task struct {
	Key     string
	Results bool      // a manifest exists; it may be damaged
	Changed time.Time // when an attempt last wrote other files; zero without any
}

// Tasks finds the tasks at and below a key by their files; no job document is needed.
func Tasks(r Root, key string) ([]Task, error) {
	list, _, err := r.List(key)
	if err != nil {
		return nil, err
	}
	found, staged := map[string]Task{}, map[string][]Entry{}
	for _, e := range list {
		before, file, inside := strings.Cut(e.Key, "/"+outFolder+"/a")
		if inside && strings.Contains(file, "/") && r.InPlace() {
			staged[before] = append(staged[before], e)
		}
		if key, isResult := taskOf(e.Key); key != "" {
			found[key] = found[key].with(key, isResult, e.Modified)
		}
	}
	for key, entries := range staged { // committed files, or leftovers
		m, err := ReadManifest(r, OutOf(key))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		for _, e := range entries {
			if m == nil || !strings.HasPrefix(e.Key, path.Join(OutOf(key), m.At)+"/") {
				found[key] = found[key].with(key, false, e.Modified)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Task) int { return strings.Compare(a.Key, b.Key) }), nil
}

// with is the task with one more file: its manifest, or another one written at a time.
func (t Task) with(key string, isResult bool, at time.Time) Task {
	t.Key = key
	t.Results = t.Results || isResult
	if !isResult && at.After(t.Changed) {
		t.Changed = at
	}
	return t
}

// taskOf is the task of a manifest, or of a file of an attempt; "" for other files.
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

// Check verifies all results of a task. Repair moves damaged ones out of the way: the next run of the job makes them
// again.
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
