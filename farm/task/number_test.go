//go:build unix

package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
)

// TestNumber counts attempts by their logs where whoever starts them does not, such that names sort as they came.
func TestNumber(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	if _, err := f.runUntil(f.options(0, 0, "a"), ErrStopped); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	logs := filepath.Join(f.top, "results", "job", "train", "log")
	// one as versions before wrote it
	for _, name := range []string{"a999.log", "a00007.log", "other.log", "a-5.log", "a99999999999999999999.log"} {
		must.Do(t, os.WriteFile(filepath.Join(logs, name), nil, 0o666))
	}
	m, err := Run(context.Background(), f.options(0, 0, "b"))
	if err != nil || m.Attempt != 1000 {
		t.Fatalf("%+v, %v, want attempt 1000", m, err)
	}
	if f.read("train", "log", "a00001.log") == "" || f.read("train", "log", "a01000.log") == "" {
		t.Error("the logs are empty")
	}
}

// TestAttemptsAreSeen looks into the store right before a task goes on from a checkpoint: whoever counts finds an
// attempt there that a queue has numbered, unless it is of a task that is done.
func TestAttemptsAreSeen(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	last := func(o *Options) int {
		t.Helper()
		root := must.Get(o.Roots.Open(o.Job.Store.Outputs))(t)
		n := must.Get(lastAttempt(root, KeyOf(o.Job, &o.Plan.Tasks[0])))(t)
		return n
	}
	o, seen := f.options(0, 7, "a"), 0
	o.Report = func(p Progress) {
		if p.Message == "looking for a checkpoint" {
			seen = last(&o)
		}
	}
	if _, err := Run(t.Context(), o); err != nil || seen != 7 {
		t.Errorf("%v; the last attempt is %d, want 7", err, seen)
	}
	o = f.options(0, 8, "a")
	if _, err := Run(t.Context(), o); err != nil || last(&o) != 7 {
		t.Errorf("%v; an attempt that found results is %d", err, last(&o))
	}
}
