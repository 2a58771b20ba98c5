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

// TestResultsAreOfTheEnd has a training be interrupted, which leaves a model, and go on in the same folder: its results
// are those of one that nobody disturbed.
func TestResultsAreOfTheEnd(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f, calm := newFarm(t, `checkpoint_every = "1h"`), newFarm(t, "")
	want, err := Run(context.Background(), calm.options(0, 1, "a"))
	if err != nil || len(want.Files) != 4 {
		t.Fatal(want, err)
	}
	if _, err := f.runUntil(f.options(0, 1, "a"), ErrStopped); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if left := globbed(f.top, "a/*/out/point_cloud/iteration_*"); len(left) != 1 {
		t.Fatalf("the child that was stopped left %q", left)
	}
	m, err := Run(context.Background(), f.options(0, 2, "a"))
	if err != nil || !slices.Equal(m.Files, want.Files) {
		t.Errorf("%v, undisturbed %v, %v", m.Files, want.Files, err)
	}
}

// TestMeasuredOnTheWay has a training measure where it was told to, and where it was interrupted: the first is among
// the results, of the second nothing, also in files of scores.
func TestMeasuredOnTheWay(t *testing.T) {
	t.Setenv(fakeVariable, "measures")
	f, calm := newFarm(t, `checkpoint_every = "1h"`), newFarm(t, "")
	want, err := Run(context.Background(), calm.options(0, 1, "a"))
	if err != nil || !slices.ContainsFunc(want.Files,
		func(f store.File) bool { return f.Name == "test/ours_5/picture" }) {
		t.Fatal(want, err)
	}
	if _, err := f.runUntil(f.options(0, 1, "a"), ErrStopped); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if left := globbed(f.top, "a/*/out/test/ours_*"); len(left) != 2 {
		t.Fatalf("the child that was stopped left %q", left)
	}
	m, err := Run(context.Background(), f.options(0, 2, "a"))
	if err != nil || !slices.Equal(m.Files, want.Files) {
		t.Errorf("%v, undisturbed %v, %v; %s", m.Files, want.Files, err, f.read("train", "out", "results.json"))
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
