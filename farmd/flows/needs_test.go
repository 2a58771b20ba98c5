package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/spec/spectest"
)

const gathering = "[[task]]\nkind = \"train\"\nid = \"m\"\nmatrix.source = [\"x\", \"y\"]\n" +
	"[[task]]\nkind = \"demo\"\nid = \"d\"\n" +
	"[[task]]\nkind = \"eval\"\nid = \"table\"\nmodels = [\"@m\"]\nneeds = [\"d\"]\n"

// TestWithout wants the rule of package spec, whichever tasks are lost, and the former one of what a history has.
func TestWithout(t *testing.T) {
	const models = "[[task]]\nkind = \"demo\"\nid = \"d\"\n[[task]]\nkind = \"train\"\nid = \"m\"\n" +
		"matrix.source = [\"x\", \"@d\"]\nmatrix.sh_degree = [1, 2]\n[[task]]\nkind = \"demo\"\nid = \"other\"\n" +
		"[[task]]\nkind = \"eval\"\n"
	for _, doc := range []string{
		gathering,
		models + "models = [\"@m\"]\n",
		models + "models = [\"@m\"]\nsource = \"@d\"\nneeds = [\"other\"]\n",
		models + "models = [\"@m\", \"a.ply\", \"b.ply\"]\nsource = \"@d\"\n",
		models + "models = [\"a.ply\", \"@m\"]\nsource = \"x\"\nneeds = [\"other\"]\n",
	} {
		_, plan := spectest.Job(t, "version = 1\nname = \"j\"\n"+doc)
		i := len(plan.Tasks) - 1
		text, err := json.Marshal(Item{needs: needsOf(&plan.Tasks[i])})
		var item Item
		if err != nil || json.Unmarshal(text, &item) != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for set := range 1 << i {
			lost := map[int]bool{}
			for k := range i {
				lost[k] = set>>k&1 == 1
			}
			isLost := func(k int) bool { return lost[k] }
			if want := plan.Tasks[i].Without(isLost); item.without(lost) != want {
				t.Errorf("%s\nlost %b: want %v", doc, set, want)
			}
			old := needs{Needs: item.Needs} // of an earlier server
			if old.without(lost) == slices.ContainsFunc(plan.Tasks[i].Needs, isLost) {
				t.Errorf("%s\nlost %b: it is no longer as it was", doc, set)
			}
		}
	}
}

// TestGather makes a table of the models that there are once all that it needs has ended, and again once there are
// more. It is skipped where none is left, or what it needs besides has failed.
func TestGather(t *testing.T) {
	for bad, want := range map[string][4]int{"m/source=y": {3, 1, 0, 0}, "m": {1, 2, 1, 0}, "d": {2, 1, 1, 0}} {
		r := newRig(t, gathering)
		fails := true
		r.do = func(_ context.Context, in flow.TaskInput) error {
			switch {
			case fails && strings.HasPrefix(in.Task, bad):
				return final("bad")
			case in.Task != "table":
				return r.commit(in)
			case in.Gather != fails:
				t.Errorf("it is told that it lacks models: %v", in.Gather)
			}
			return r.commit(in, bad)
		}
		s, err := r.run(flow.Settings{})
		if r.want(s, want[0], want[1], want[2], want[3]); err == nil {
			t.Errorf("without %s: the job has not failed", bad)
		}
		r.begin()
		fails = false
		s, err = r.run(flow.Settings{})
		if r.want(s, 4, 0, 0, 0); err != nil || !slices.Contains(r.began, "table") {
			t.Errorf("%v, again %q", err, r.began)
		}
	}
}

// TestGatherChunks makes a table of models that two chunks make, one of them its own.
func TestGatherChunks(t *testing.T) {
	for _, good := range []int{3, MostTasks, -1} {
		r := newRig(t, "[[task]]\nkind = \"train\"\nid = \"m\"\nsource = \"x\"\n"+seeds(MostTasks+2)+
			"[[task]]\nkind = \"eval\"\nid = \"table\"\nmodels = [\"@m\"]\n")
		r.env.SetTestTimeout(3 * time.Minute)
		r.do = func(_ context.Context, in flow.TaskInput) error {
			if in.Task != "table" && in.Index != good {
				return final("bad")
			}
			return nil
		}
		s, _ := r.run(flow.Settings{})
		if good >= 0 {
			r.want(s, 2, MostTasks+1, 0, 0)
		} else {
			r.want(s, 0, MostTasks+2, 1, 0)
		}
	}
}

// TestGatherResumed wants a chunk that goes on with a new history to know what is lost, here and in other chunks.
func TestGatherResumed(t *testing.T) {
	_, plan := spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"train\"\nid = \"m\"\nsource = \"x\"\n"+
		seeds(4)+"[[task]]\nkind = \"eval\"\nmodels = [\"@m\"]\n")
	var items []Item // two models are of another chunk
	for i := 2; i < len(plan.Tasks); i++ {
		items = append(items, Item{Index: i, needs: needsOf(&plan.Tasks[i])})
	}
	planned := func(p *progress) *chunkJob {
		r := &chunkJob{in: &chunkInput{KeepGoing: true, Earlier: p}, gone: map[int]bool{}}
		if err := r.plan(items); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := planned(nil)
	r.begin("0-1")
	r.lose(0, failed)
	p := r.progress()
	r = planned(p)
	table := &r.tasks[2]
	if table.phase != waiting || table.missing != 1 || table.outside || fmt.Sprint(r.lost) != "[2]" {
		t.Errorf("%+v; lost %v", table, r.lost)
	}
	if r.lose(1, failed); table.phase != skipped {
		t.Errorf("no model is left: %+v", table)
	}
	r = planned(p)
	if r.ended(1, done); r.tasks[2].missing != 0 || !r.tasks[2].Needs.has(r.gone, true) {
		t.Errorf("it does not go on with one model: %+v", r.tasks[2])
	}
}
