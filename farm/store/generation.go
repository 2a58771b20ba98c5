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

// redoFolder holds beside a task's results a file for each time that somebody wanted them anew: 000002.json is of the
// generation 2. Results of an older generation than the highest are out of date. Files are only added: who comes late
// with a lower number changes nothing.
const redoFolder = "redo"

type generation struct {
	Generation int `json:"generation"`
	// what attempts of lower ones have saved does not count either: one of them had results
	Since int `json:"since,omitempty"`
}

func generationKey(task string, n int) string {
	return path.Join(task, redoFolder, fmt.Sprintf("%06d.json", n))
}

// Generation is that of a task's results which count: 0 where nobody wanted them anew.
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

// Since is the first generation of a task of which an attempt of the given one may go on from what was saved. Whoever
// retries what failed or was canceled goes on; but what had results and is wanted anew is made from its beginning.
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
		return of, nil // nobody knows
	}
	return g.Since, nil
}

// Outdate moves results of an older generation out of the way, and has those count alone that attempts make which begin
// from now on.
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
	old, _, err := Old(r, task) // also where this was interrupted
	switch {
	case err == nil:
		since = max(since, min(old.Generation+1, to))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	// Only now: had this been written first, a crash in between would leave old results in place of new ones.
	return putJSON(r, generationKey(task, to), generation{to, since})
}

// oldPrefix begins in tempFolder the names of results that are out of date.
const oldPrefix = "old-"

// Old returns the newest results of a task that were moved out of the way as somebody wanted them anew, and the key
// below which the manifest names their files. There being none, or none any more, is fs.ErrNotExist.
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
		if errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) { // or it has just gone
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
		if m.At != "" { // files stay where they are
			below = OutOf(task)
		}
	}
	if newest == nil {
		return nil, "", fs.ErrNotExist
	}
	return newest, below, nil
}

// setAside moves what is in the place of results away, if it is what the caller means: of a manifest, nil for one that
// cannot be read. Only what was moved can be judged for sure: other attempts may have put new results there since the
// caller looked. Those are put back. There being nothing is no error.
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
		back = nil // still newer ones
	}
	return errors.Join(err, back)
}

// isSame says whether a manifest is that which was seen before, nil for one that could not be read.
func (m *Manifest) isSame(seen *Manifest) bool { return m == nil || reflect.DeepEqual(m, seen) }
