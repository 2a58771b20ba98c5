package worker

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"vksplat/farm/store"
	"vksplat/farm/task"
)

// generationFile says beside a task's results which retry by hand they are of. Results of an older one are out of date.
const generationFile = "generation.json"

type generation struct {
	Generation int `json:"generation"`
}

// clearOld moves results away that an older generation of the task made: somebody wants them anew. gc removes them.
func (r *run) clearOld(outputs store.Root) error {
	key := task.KeyOf(r.job.Job, r.task)
	var g generation
	f, err := outputs.Open(path.Join(key, generationFile))
	if err == nil {
		err = errors.Join(json.NewDecoder(io.LimitReader(f, maxLine)).Decode(&g), f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path.Join(key, generationFile), err)
	}
	if g.Generation >= r.lease.Generation {
		return nil
	}
	err = outputs.Publish(store.OutOf(key), path.Join(key, "tmp", "old-"+rand.Text()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Only now: had this been written first, a crash in between would leave old results in place of new ones.
	return outputs.Put(path.Join(key, generationFile), func(w io.Writer) error {
		return json.NewEncoder(w).Encode(generation{r.lease.Generation})
	})
}
