package worker

import (
	"errors"
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
		if err := errors.Join(j.mirror(root), j.mirror(root)); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	if err := store.Outdate(root, "a.b/t", 3); err != nil {
		t.Fatal(err)
	}
	names := func() (list []string) {
		v, err := NewInventory(roots)
		if err == nil {
			err = v.Jobs(t.Context(), func(p queue.JobPlan) error {
				list = append(list, p.Name)
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
	if err := Sweep(roots, jobs[0].Job); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 1 || got[0] != "a" {
		t.Error(got)
	}
	if n, err := store.Generation(root, "a.b/t"); err != nil || n != 0 {
		t.Errorf("the count of retries is still %d, %v", n, err)
	}
}
