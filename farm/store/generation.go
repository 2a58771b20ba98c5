package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// generationFile says beside a task's results how often somebody wanted them anew. Results of an older generation are out of date.
const generationFile = "generation.json"

// maxGeneration bounds what is read of it, in bytes.
const maxGeneration = 1 << 10

type generation struct {
	Generation int `json:"generation"`
}

// Generation is that of a task's results which count: 0 where nobody wanted them anew.
func Generation(r Root, task string) (int, error) {
	key := path.Join(task, generationFile)
	f, err := r.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var g generation
	err = json.NewDecoder(io.LimitReader(f, maxGeneration)).Decode(&g)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return g.Generation, nil
}

// Outdate moves results of an older generation out of the way, and has those count alone that attempts make which begin from now on.
func Outdate(r Root, task string, to int) error {
	now, err := Generation(r, task)
	if err != nil || now >= to {
		return err
	}
	if err := setAside(r, task, "old-"); err != nil {
		return err
	}
	// Only now: had this been written first, a crash in between would leave old results in place of new ones.
	return putJSON(r, path.Join(task, generationFile), generation{to})
}

// ForgetGeneration has a task's generations begin anew, with those of a job that is submitted again.
func ForgetGeneration(r Root, task string) error {
	if err := r.Delete(path.Join(task, generationFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setAside moves what is in the place of results away. There being nothing is no error.
func setAside(r Root, task, prefix string) error {
	err := r.Publish(OutOf(task), path.Join(task, tempFolder, prefix+random()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
