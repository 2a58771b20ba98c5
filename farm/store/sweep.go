package store

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Sweep removes interrupted commits, and outdated or damaged results of a task. It keeps and returns folders with
// foreign files.
func Sweep(r Root, task string) (kept []string, err error) {
	m, err := ReadManifest(r, OutOf(task))
	switch {
	case err == nil:
		err = sweepStages(r, task, m.At)
	case errors.Is(err, fs.ErrNotExist):
		err = sweepStages(r, task, "")
	case errors.Is(err, ErrDamaged): // its stage is unknown
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return sweepTemp(r, path.Join(task, tempFolder))
}

// sweepStages removes the stages among a task's results, except keep, and ends uploads to those without a file yet.
func sweepStages(r Root, task, keep string) error {
	if !r.InPlace() {
		return nil
	}
	out := OutOf(task)
	list, _, err := r.List(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	last := keep
	for _, e := range list { // sorted: the files of a folder are together
		name, _, inFolder := strings.Cut(strings.TrimPrefix(e.Key, out+"/"), "/")
		if _, isStage := stageOf(name); !inFolder || !isStage || name == keep || name == last {
			continue
		}
		if err := r.Delete(path.Join(out, name)); err != nil {
			return err
		}
		last = name
	}
	r.Abort(out)
	return nil
}

// sweepTemp is Sweep for tempFolder.
func sweepTemp(r Root, temp string) (kept []string, err error) {
	list, _, err := r.List(temp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := map[string][]string{}
	for _, e := range list {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Key, temp+"/"), "/")
		place := path.Join(temp, name)
		files[place] = append(files[place], e.Key)
	}
	for _, place := range slices.Sorted(maps.Keys(files)) {
		own, err := isOwn(r, place, files[place])
		switch {
		case err != nil:
			return nil, err
		case !own:
			kept = append(kept, place)
		default:
			if err := r.Delete(place); err != nil {
				return nil, err
			}
		}
	}
	if len(kept) > 0 {
		return kept, nil
	}
	return nil, r.Delete(temp) // with hidden files of killed writers
}

// isOwn reports whether this program wrote all these files below a place in tempFolder.
func isOwn(r Root, place string, files []string) (bool, error) {
	name := path.Base(place)
	if _, isStage := stageOf(name); isStage || strings.HasPrefix(name, probePrefix) {
		return true, nil
	}
	m, err := ReadManifest(r, place)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOdd):
		return false, nil
	case errors.Is(err, ErrDamaged):
		return true, nil
	case err != nil:
		return false, err
	}
	named := map[string]bool{path.Join(place, ManifestName): true}
	for _, f := range m.Files {
		named[m.Key(place, f)] = true
	}
	return !slices.ContainsFunc(files, func(key string) bool { return !named[key] }), nil
}
