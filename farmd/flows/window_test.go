package flows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
)

// TestWindow lets one chunk of a lane run at a time. Tasks of other lanes need not wait for it, those behind it begin
// once it has ended, and what needs it is told that it has.
func TestWindow(t *testing.T) {
	r := newRig(t, fmt.Sprintf("[[task]]\nkind = \"demo\"\nid = \"d\"\n%s[[task]]\nkind = \"demo\"\nid = \"big\"\n"+
		"pool = \"big\"\n%s[[task]]\nkind = \"demo\"\nid = \"last\"\nneeds = [\"d\"]\n", seeds(2*MostTasks),
		seeds(MostTasks)))
	r.env.SetTestTimeout(3 * time.Minute)
	r.e.window = 1
	var first, others atomic.Int32
	r.do = func(_ context.Context, in flow.TaskInput) error {
		switch {
		case in.Index == 0:
			err := r.until(func() bool { return others.Load() > 0 })
			first.Add(1)
			return err
		case in.Index < MostTasks:
			first.Add(1)
		case in.Index < 2*MostTasks || in.Task == "last":
			if first.Load() != MostTasks {
				return final("it begins before the chunk before it has ended")
			}
		default:
			others.Add(1)
		}
		return nil
	}
	s, err := r.run(flow.Settings{})
	if err != nil {
		t.Error(err)
	}
	r.want(s, 3*MostTasks+1, 0, 0, 0)
}

// TestWindowHalts begins no further chunk once a task has failed and the document says that the rest is of no use.
func TestWindowHalts(t *testing.T) {
	r := newRig(t, "[retry]\nkeep_going = false\n[[task]]\nkind = \"demo\"\nid = \"d\"\n"+seeds(2*MostTasks))
	r.env.SetTestTimeout(3 * time.Minute)
	r.e.window = 1
	r.do = func(_ context.Context, in flow.TaskInput) error {
		if in.Index >= MostTasks {
			return errors.New("nobody wanted it")
		}
		return final("bad")
	}
	s, err := r.run(flow.Settings{Max: 1})
	if err == nil || s.Failed != 1 || len(r.began) != 1 {
		t.Errorf("%v, %+v; %d tasks began", err, s, len(r.began))
	}
}

// TestCutNeeds keeps chunks small whose tasks need very many others.
func TestCutNeeds(t *testing.T) {
	job, _ := spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\n")
	plan := &spec.Plan{Tasks: make([]spec.Task, 4000)}
	for i := range plan.Tasks {
		plan.Tasks[i] = spec.Task{Index: i, Kind: job.Tasks[0].Kind}
		for k := 0; i >= 3500 && k < 3500; k += 2 {
			plan.Tasks[i].Needs = append(plan.Tasks[i].Needs, k)
		}
	}
	tasks, chunks := 0, cut(plan, inOrder(plan))
	for k, span := range chunks {
		list, err := span.Tasks.list(MostTasks)
		size := 0
		for _, i := range list {
			size += len(indicesOf(plan.Tasks[i].Needs))
		}
		if tasks += len(list); err != nil || size > mostNeeds {
			t.Errorf("chunk %d: %d tasks need %d bytes, %v", k, len(list), size, err)
		}
	}
	if tasks != len(plan.Tasks) || len(chunks) > 20 {
		t.Errorf("%d tasks in %d chunks", tasks, len(chunks))
	}
}

// TestQueues refuses jobs whose tasks would be in too many queues, and asks whether the server may have those of
// others.
func TestQueues(t *testing.T) {
	for n, what := range map[int]string{MaxQueues: "", MaxQueues + 1: "at most 100"} {
		document := "version = 1\nname = \"j\"\n"
		for i := range 2 * n {
			document += fmt.Sprintf("[[task]]\nkind = \"demo\"\nid = \"t%d\"\npool = \"p%d\"\n", i, i/2)
		}
		_, plan := spectest.Job(t, document)
		asked := 0
		e := Expander{Admit: func(owner string, queues []string) error {
			asked = len(queues)
			return fmt.Errorf("%s has enough", owner)
		}}
		switch err := e.admit(plan, "anna"); {
		case what == "" && (asked != n || err == nil || err.Error() != "anna has enough"):
			t.Errorf("%d queues, of which %d were asked about: %v", n, asked, err)
		case what != "" && (asked != 0 || err == nil || !strings.Contains(err.Error(), what)):
			t.Errorf("%d queues: %v", n, err)
		}
		if err := (&Expander{}).admit(plan, "anna"); (err == nil) != (what == "") {
			t.Errorf("%d queues of a cluster of others: %v", n, err)
		}
	}
	r := newRig(t, "[[task]]\nkind = \"demo\"\n")
	r.e.Admit = func(string, []string) error { return errors.New("enough") }
	if _, err := r.run(flow.Settings{}); err == nil || !strings.Contains(err.Error(), "queue tasks") {
		t.Errorf("a job that is not admitted: %v", err)
	}
}
