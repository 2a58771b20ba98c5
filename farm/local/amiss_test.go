package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
)

// TestStoreAmiss tries a task again that failed for what is in the store: once that is put right, it succeeds.
func TestStoreAmiss(t *testing.T) {
	for _, why := range []error{store.ErrDamaged, store.ErrForeign} {
		r := newRig(t, chain)
		r.do = func(_ context.Context, _ task.Options, name string) error {
			if name != "b" {
				return nil
			}
			return &fault.Error{Op: "fetch input", Err: fmt.Errorf("a: %w", why), Kind: fault.ErrData}
		}
		s, err := r.run(t.Context())
		r.want(s, err, "a done, b failed, c skipped", "a", "b")
		r.do = nil
		s, err = r.run(t.Context())
		r.want(s, err, "a done, b done, c done", "b", "c")
	}
}

// TestStoreGone has the store go in the middle of a run: attempts wait for it and do not count, and once it is there
// again, results and status go to what is there now.
func TestStoreGone(t *testing.T) {
	defer func(before time.Duration) { awayPause = before }(awayPause)
	awayPause = time.Millisecond
	r := newRig(t, "retry.max_attempts = 1\n"+chain)
	outputs := filepath.Join(r.dir, "outputs")
	folder := filepath.Join(outputs, "j", Folder)
	for _, way := range []struct {
		name      string
		goes      func() error
		comesBack func() error
	}{
		{"the folder", func() error { return os.Rename(outputs, outputs+".off") },
			func() error { return os.Rename(outputs+".off", outputs) }},
		{"what can be written to", func() error {
			return errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o666))
		}, func() error { return os.Remove(folder) }},
		{"all of it", func() error { return os.RemoveAll(outputs) },
			func() error { return os.Mkdir(outputs, 0o777) }},
	} {
		tries := 0
		r.o.Redo = true
		r.do = func(_ context.Context, o task.Options, name string) error {
			if name != "c" {
				return nil
			}
			switch tries++; tries {
			case 1:
				if err := way.goes(); err != nil {
					t.Error(err)
				}
			case 4:
				if err := way.comesBack(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(filepath.Join(outputs, "j")); err != nil { // a new one
					var root store.Root
					if root, err = store.Open(store.Options{URL: outputs}); err != nil {
						t.Error(err)
					}
					r.root = root
				}
				return nil
			}
			return fmt.Errorf("commit results: %w", os.ErrPermission)
		}
		s, err := r.run(t.Context())
		r.want(s, err, "a done, b done, c done", "a", "b", "c", "c", "c", "c")
		if s.Tasks[2].Attempts != 1 {
			t.Errorf("%s: %d attempts count", way.name, s.Tasks[2].Attempts)
		}
		if _, err := os.Stat(filepath.Join(folder, statusName)); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
	}
}

// TestInputMissing begins nothing where an input is not there, or is a link that leads out of the root; of what is not
// to be done, it may be.
func TestInputMissing(t *testing.T) {
	r := newRig(t, "[[task]]\nkind = \"demo\"\nid = \"d\"\n[[task]]\nkind = \"train\"\nid = \"m\"\n"+
		"matrix.source = [\n\"there\",\n\"missing\"]\n")
	refused := func(want string) {
		t.Helper()
		if _, err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "job.toml:9") || len(r.began) > 0 || fault.ExitCode(err) != fault.ExitSetup {
			t.Errorf("%v, began %q", err, r.began)
		}
	}
	inputs := filepath.Join(r.dir, "inputs")
	refused(`input "missing" not found in ` + inputs)
	if err := os.Symlink(t.TempDir(), filepath.Join(inputs, "missing")); err != nil {
		t.Skip(err)
	}
	refused("a symlink that leaves the root")
	r.o.Only = []string{"d", "m/source=there"}
	s, err := r.run(t.Context())
	r.want(s, err, "d done, m/source=there done, m/source=missing excluded", "d", "m/source=there")
}
