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
	if err := Sweep(roots, jobs[0].Job); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 1 || got[0] != "a" {
		t.Error(got)
	}
	if list, err := root.List(mirrorFolder); err != nil || len(list) != 2 {
		t.Error(list, err)
	}
	if n, err := store.Generation(root, "a.b/t"); err != nil || n != 0 {
		t.Errorf("the count of retries is still %d, %v", n, err)
	}
}
