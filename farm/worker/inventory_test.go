package worker

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
)

// TestSweptJobIsForgotten mirrors two documents of a name and one of another, and sweeps the first job.
func TestSweptJobIsForgotten(t *testing.T) {
	dir := t.TempDir()
	roots := store.Roots{"outputs": {URL: dir}}
	root, err := roots.Open("outputs")
	if err != nil {
		t.Fatal(err)
	}
	var jobs []*job
	for _, text := range []string{`"a.b"` + "\npriority = \"low\"", `"a.b"`, `"a"`} {
		parsed, err := spec.Parse("job.toml", []byte("version = 1\nname = "+text+"\n[[task]]\nkind = \"demo\"\nid = \"t\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		j := &job{Job: parsed}
		if err := errors.Join(j.mirror(root, fate{Owner: "ann"}), j.mirror(root, fate{Owner: "ann", Canceled: text == `"a"`})); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	if err := store.Outdate(root, "a.b/t", 3); err != nil {
		t.Fatal(err)
	}
	var plans []queue.JobPlan
	names := func() (list []string) {
		plans = nil
		v, err := NewInventory(roots)
		if err == nil {
			err = v.Jobs(t.Context(), func(p queue.JobPlan) error {
				list = append(list, p.Name)
				plans = append(plans, p)
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := names(); len(got) != 3 {
		t.Fatal(got)
	}
	for _, p := range plans {
		if p.Owner != "ann" || p.Canceled != (p.Name == "a") {
			t.Errorf("%s: owner %q, canceled %v", p.Name, p.Owner, p.Canceled)
		}
	}
	u := &store.Uploads{Root: root, Task: "a.b/t", Dir: openDir(t, "state"), Until: 9}
	if err := u.Save(t.Context(), []string{"state"}, store.Made{Hash: "of a task that failed", Step: 10, Attempt: 9}); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(roots, jobs[0].Job); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 1 || got[0] != "a" {
		t.Error(got)
	}
	if list, err := root.List(mirrorFolder); err != nil || len(list) != 2 {
		t.Error(list, err)
	}
	if _, err := root.Stat("a.b/t/ckpt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("checkpoints of a failed task have no owner: %v", err)
	}
	if n, err := store.Generation(root, "a.b/t"); err != nil || n != 3 {
		t.Errorf("generation %d, %v: attempts that still sleep would have results", n, err)
	}
}

// openDir is a folder with a file.
func openDir(t *testing.T, name string) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	if err := dir.WriteFile(name, []byte(name), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOutdatedResultsAreNoResults wants a rebuild to see what counts, and of which generation it is.
func TestOutdatedResultsAreNoResults(t *testing.T) {
	roots := store.Roots{"outputs": {URL: t.TempDir()}}
	root, err := roots.Open("outputs")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"t\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Job: parsed}
	if j.plan, err = parsed.Plan(); err != nil {
		t.Fatal(err)
	}
	v, err := NewInventory(roots)
	if err := errors.Join(err, j.mirror(root, fate{})); err != nil {
		t.Fatal(err)
	}
	if err := v.Jobs(t.Context(), func(queue.JobPlan) error { return nil }); err != nil {
		t.Fatal(err)
	}
	commit := func(generation int) {
		t.Helper()
		if _, own, err := store.Commit(t.Context(), root, "j/t", openDir(t, "model"), []string{"model"}, store.Made{Hash: j.plan.Hash(0), Generation: generation}); err != nil || !own {
			t.Fatal(own, err)
		}
	}
	check := func(want bool, of int) {
		t.Helper()
		sum, generation, err := v.Manifest(t.Context(), parsed.Hash(), 0, queue.Task{})
		if err != nil || (sum != "") != want || generation != of {
			t.Errorf("manifest %q of generation %d, %v", sum, generation, err)
		}
	}
	attempts := func(want int) {
		t.Helper()
		if n, err := v.Attempts(t.Context(), parsed.Hash(), 0); err != nil || n != want {
			t.Errorf("the last attempt is %d, %v; want %d", n, err, want)
		}
	}
	attempts(0)
	if err := root.Put("j/t/log/a004.log", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	attempts(4)
	u := &store.Uploads{Root: root, Task: "j/t", Dir: openDir(t, "state"), Until: 5}
	if err := u.Save(t.Context(), []string{"state"}, store.Made{Attempt: 5, Step: 1}); err != nil {
		t.Fatal(err)
	}
	attempts(5)
	check(false, 0)
	if err := store.Outdate(root, "j/t", 2); err != nil {
		t.Fatal(err)
	}
	commit(2)
	check(true, 2)
	// One that slept before its publishing has put old results there.
	if err := errors.Join(root.Delete("j/t/out"), root.Delete("j/t/redo")); err != nil {
		t.Fatal(err)
	}
	commit(0)
	if err := root.Put("j/t/redo/000001.json", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	check(false, 0)
}
