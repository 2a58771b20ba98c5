package store

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// redoFolder holds a file for each generation of a task's results after the first: 000002.json is the second redo. Only
// the highest one counts; files are only added, so a late writer of a lower number changes nothing.
const redoFolder = "redo"

type generation struct {
	Generation int `json:"generation"`
	// checkpoints of lower generations do not count either
	Since int `json:"since,omitempty"`
}

func generationKey(task string, n int) string {
	return path.Join(task, redoFolder, fmt.Sprintf("%06d.json", n))
}

// Generation is the current generation of a task's results, 0 before any redo.
func Generation(r Root, task string) (highest int, err error) {
	list, _, err := r.List(path.Join(task, redoFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range list {
		if n, err := strconv.Atoi(strings.TrimSuffix(path.Base(e.Key), ".json")); err == nil {
			highest = max(highest, n)
		}
	}
	return highest, err
}

// Since is the first generation whose checkpoints an attempt of a generation may resume. A retry of a failed task
// resumes the old checkpoints; a redo of results starts over.
func Since(r Root, task string, of int) (int, error) {
	if of == 0 {
		return 0, nil
	}
	data, err := readSmall(r, generationKey(task, of))
	if err != nil {
		return 0, err
	}
	g := generation{}
	if json.Unmarshal(data, &g) != nil {
		return of, nil
	}
	return g.Since, nil
}

// Outdate begins a generation: older results are moved out of the way, and only attempts that begin later count.
func Outdate(r Root, task string, to int) error {
	now, err := Generation(r, task)
	if err != nil || now >= to {
		return err
	}
	if err := setAside(r, task, oldPrefix,
		func(m *Manifest) bool { return m == nil || m.Generation < to }); err != nil {
		return err
	}
	since, err := Since(r, task, now)
	if err != nil {
		return err
	}
	old, _, err := Old(r, task) // also of an interrupted Outdate
	switch {
	case err == nil:
		since = max(since, min(old.Generation+1, to))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	// Last: after a crash in between, old results must not stand in for new ones.
	return putJSON(r, generationKey(task, to), generation{to, since})
}

// oldPrefix begins the names of outdated results in tempFolder.
const oldPrefix = "old-"

// Old returns the newest outdated results of a task, and the key that their manifest refers to. Without any it fails
// with fs.ErrNotExist.
func Old(r Root, task string) (newest *Manifest, below string, err error) {
	list, _, err := r.List(path.Join(task, tempFolder))
	if err != nil {
		return nil, "", err
	}
	var moved time.Time
	for _, e := range list {
		place := path.Dir(e.Key)
		if path.Base(e.Key) != ManifestName || !strings.HasPrefix(path.Base(place), oldPrefix) {
			continue
		}
		m, err := readManifest(r, e.Key)
		if errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) { // or just removed
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if newest != nil && (m.Generation < newest.Generation || m.Generation == newest.Generation &&
			e.Modified.Before(moved)) {
			continue
		}
		newest, below, moved = m, place, e.Modified
		if m.At != "" { // published in place
			below = OutOf(task)
		}
	}
	if newest == nil {
		return nil, "", fs.ErrNotExist
	}
	return newest, below, nil
}

// setAside moves results away if meant accepts their manifest, nil for an unreadable one. It judges them after the
// move, as another attempt may have replaced them since the caller looked, and puts others back. No results are no
// error.
func setAside(r Root, task, prefix string, meant func(*Manifest) bool) error {
	place := path.Join(task, tempFolder, prefix+rand.Text())
	err := r.Publish(OutOf(task), place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := ReadManifest(r, place)
	if errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		m, err = nil, nil
	}
	if err == nil && meant(m) {
		return nil
	}
	back := r.Publish(place, OutOf(task))
	if errors.Is(back, ErrExists) {
		back = nil // there are newer ones
	}
	return errors.Join(err, back)
}

// isSame compares a manifest with one seen before; nil is an unreadable one.
func (m *Manifest) isSame(seen *Manifest) bool { return m == nil || reflect.DeepEqual(m, seen) }
