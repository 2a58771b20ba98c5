package store

import (
	"errors"
	"slices"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestForeignResults refuses to put results where somebody's own files are, and touches none of them.
func TestForeignResults(t *testing.T) {
	r := newFolder(t, Options{})
	putText(t, r, "j/t/out/mine.txt", "mine")
	putText(t, r, "j/file/out", "mine")
	for _, task := range []string{"j/t", "j/file"} {
		_, err := Result(t.Context(), r, task)
		_, _, commit := Commit(t.Context(), r, task, work(t, nil), nil, Made{Hash: "h", Attempt: 1})
		for _, err := range []error{err, commit} {
			if !errors.Is(err, ErrForeign) || !errors.Is(err, fault.ErrUsage) || fault.Hint(err) == "" {
				t.Errorf("%s: %v, hint %q", task, err, fault.Hint(err))
			}
		}
	}
	if getText(t, r, "j/t/out/mine.txt") != "mine" || getText(t, r, "j/file/out") != "mine" {
		t.Error("somebody's file is another")
	}
}

// TestSweepKeepsForeignFiles sweeps and forgets all that attempts left, and nothing that somebody put beside it.
func TestSweepKeepsForeignFiles(t *testing.T) { onRoots(t, testSweepKeepsForeignFiles) }

func testSweepKeepsForeignFiles(t *testing.T, r *rig) {
	for generation := range 3 {
		must.Do(t, Outdate(r, "j/t", generation))
		made := Made{Hash: "h", Attempt: generation + 1, Generation: generation}
		_, own, err := Commit(t.Context(), r, "j/t", work(t, map[string]string{"model": "x"}), []string{"model"}, made)
		if err != nil || !own {
			t.Fatal(own, err)
		}
	}
	list, _, err := r.List("j/t/tmp")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	foreign := []string{"j/t/ckpt/mine", "j/t/out/mine/x", "j/t/tmp/damaged-1/x", "j/t/tmp/mine", // by key
		list[0].Key[:len("j/t/tmp/old-")+26] + "/mine"}
	own := []string{"j/t/ckpt/a00001/content", "j/t/tmp/a7-killed/model", "j/t/tmp/damaged-2/MANIFEST.json"}
	for _, key := range slices.Concat(foreign, own) {
		putText(t, r, key, "x")
	}
	kept, err := Sweep(r, "j/t")
	if err = errors.Join(err, Forget(r, "j/t", AllAttempts)); err != nil || len(kept) != 3 {
		t.Errorf("kept %q, %v", kept, err)
	}
	for _, key := range foreign {
		if !r.has(key) {
			t.Errorf("%s is gone", key)
		}
	}
	for _, key := range own {
		if r.has(key) {
			t.Errorf("%s is left", key)
		}
	}
	if m, err := Result(t.Context(), r, "j/t"); err != nil || m == nil || m.Attempt != 3 {
		t.Errorf("the results are %+v, %v", m, err)
	}
}
