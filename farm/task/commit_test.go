//go:build unix

package task

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/farm/store"
	"vksplat/farm/store/s3test"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestResultsAreOfTheEnd interrupts a training, which leaves a model, and resumes it in the same folder: its results
// are those of an undisturbed one. One that measures where it should, and where it was interrupted, has the first among
// its results, and nothing of the second, also in files of scores.
func TestResultsAreOfTheEnd(t *testing.T) {
	for does, c := range map[string]struct {
		result, left string
		nLeft        int
	}{
		"":         {"test/ours_40/file", "a/*/out/point_cloud/iteration_*", 1},
		"measures": {"test/ours_5/picture", "a/*/out/test/ours_*", 2},
	} {
		t.Setenv(fakeVariable, does)
		f, calm := newFarm(t, `checkpoint_every = "1h"`), newFarm(t, "")
		want, err := Run(context.Background(), calm.options(0, 1, "a"))
		hasResult := func(f store.File) bool { return f.Name == c.result }
		if err != nil || !slices.ContainsFunc(want.Files, hasResult) || does == "" && len(want.Files) != 4 {
			t.Fatal(want, err)
		}
		if _, err := f.runUntil(f.options(0, 1, "a"), ErrStopped); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		if left := globbed(f.top, c.left); len(left) != c.nLeft {
			t.Fatalf("the child that was stopped left %q", left)
		}
		m, err := Run(context.Background(), f.options(0, 2, "a"))
		if err != nil || !slices.Equal(m.Files, want.Files) {
			t.Errorf("%q: %v, undisturbed %v, %v", does, m.Files, want.Files, err)
		}
	}
}

// TestKilledNearTheEnd kills attempts between the end of a training and the commit: first while it writes texts that
// name no folders, of which the training must see nothing when it goes on, then before one of them has its place.
func TestKilledNearTheEnd(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	s, outputs := f.inBucket()
	options := func(attempt int) Options {
		o := f.options(0, attempt, "a")
		o.InPlace, o.Roots["outputs"] = true, outputs
		return o
	}
	o := options(1)
	if _, err := f.runUntil(o, ErrStopped); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	folder, _ := workFolder(o.Work, o.Job, &o.Plan.Tasks[0], o.Plan.Hash(0))
	r := newRunner(&o)
	r.dir, r.out = folder, filepath.Join(folder, outName)
	r.staged = []place{{filepath.Join(f.top, "in", "scan"), "", "scan"}}
	dir, err := os.OpenRoot(r.out)
	if err == nil {
		r.outputs, err = o.Roots.Open("outputs")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	before, _ := dir.ReadFile("cfg_args")
	must.Do(t, r.unplace(dir))
	s.SetFault(func(w http.ResponseWriter, q *http.Request) bool {
		if isResult(q) {
			s3test.Fail(w, http.StatusInsufficientStorage, "XMinioStorageFull")
		}
		return isResult(q)
	})
	if _, err := Run(t.Context(), options(2)); ExitOf(err) != fault.ExitTryAgain {
		t.Fatal(err)
	}
	must.Do(t, errors.Join(os.Rename(filepath.Join(r.out, "cfg_args"), r.placeless("cfg_args")),
		os.WriteFile(filepath.Join(r.out, "cfg_args"), before, 0o666)))
	s.SetFault(nil)
	o = options(3)
	o.Program = "/nowhere"
	m := must.Get(Run(t.Context(), o))(t)
	if text := string(s.Load("job/train/out/" + m.At + "/cfg_args")); text != "source_path=scan, model_path=job/train/out" {
		t.Errorf("the results name %q", text)
	}
}
