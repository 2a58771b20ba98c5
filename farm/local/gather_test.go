package local

import (
	"context"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/store"
	"vksplat/farm/task"
)

const gathering = "[[task]]\nkind = \"train\"\nid = \"m\"\nmatrix.source = [\"good\", \"bad\"]\n" +
	"[[task]]\nkind = \"eval\"\nid = \"table\"\nmodels = [\"@m\"]\n"

// TestGather measures the models that there are, though the task of another one failed, and again once that is there.
func TestGather(t *testing.T) {
	r := newRig(t, gathering)
	bad, gather := true, false
	r.do = func(_ context.Context, o task.Options, name string) error {
		if name == "table" {
			gather = o.Gather
		}
		if name == "m/source=bad" && bad {
			return dataError("bad photos")
		}
		return nil
	}
	r.made = func(o task.Options, made *store.Made) {
		if o.Gather {
			made.Missing = []string{"m/source=bad"}
		}
	}
	s, err := r.run(t.Context())
	r.want(s, err, "m/source=good done, m/source=bad failed, table done", "m/source=good", "m/source=bad", "table")
	if table := &s.Tasks[2]; !gather || table.Message != "without m/source=bad" {
		t.Errorf("it is told that it lacks a model: %v; %+v", gather, table)
	}
	s, err = r.run(t.Context()) // nothing has changed
	r.want(s, err, "m/source=good done, m/source=bad failed, table done")
	if table := &s.Tasks[2]; !table.Before() || table.Message != "without m/source=bad" {
		t.Errorf("%+v", table)
	}
	bad, r.o.Retry = false, true
	s, err = r.run(t.Context())
	r.want(s, err, "m/source=good done, m/source=bad done, table done", "m/source=bad", "table")
	if gather || s.Tasks[2].Message != "" || s.Tasks[2].Before() {
		t.Errorf("all models are there: %v, %+v", gather, s.Tasks[2])
	}
}

// TestGatherNothing skips what is left without any model, and what lost something else than a model.
func TestGatherNothing(t *testing.T) {
	for doc, want := range map[string]string{
		gathering: "m/source=good failed, m/source=bad failed, table skipped",
		gathering + "needs = [\"d\"]\n[[task]]\nkind = \"demo\"\nid = \"d\"\n": "m/source=good done, " +
			"m/source=bad done, table skipped, d failed",
	} {
		r := newRig(t, doc)
		r.do = func(_ context.Context, _ task.Options, name string) error {
			if strings.HasPrefix(name, "m/") != strings.Contains(doc, "needs") {
				return dataError("bad")
			}
			return nil
		}
		s, err := r.run(t.Context())
		r.want(s, err, want, slices.DeleteFunc([]string{"m/source=good", "m/source=bad", "d"},
			func(name string) bool { return name == "d" && doc == gathering })...)
	}
}
