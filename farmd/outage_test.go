package main

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/server/service/history/consts"
	"go.temporal.io/server/service/history/queues"
	"go.temporal.io/server/service/history/tasks"
)

// timeout is one of Temporal's timeouts, or another task.
type timeout struct {
	queues.Executable
	task tasks.Task
}

func (t timeout) GetTask() tasks.Task { return t.task }

// done counts what was executed.
type done int

func (d *done) Execute(context.Context, queues.Executable) queues.ExecuteResponse {
	*d++
	return queues.ExecuteResponse{}
}

// TestOutages finds outages by the clock, and has timeouts of activities alone wait after one.
func TestOutages(t *testing.T) {
	o := &outages{grace: time.Minute}
	began := o.last()
	if time.Since(began) > time.Minute || o.last() != began {
		t.Errorf("it began at %v, then at %v", began, o.last())
	}
	for name, gap := range map[string]time.Duration{"asleep": 2 * outageFrom, "the clock was put back": -time.Hour} {
		before := o.last()
		o.seen = time.Now().Round(0).Add(-gap)
		if o.last() == before {
			t.Errorf("%s: no outage was seen", name)
		}
	}
	before := o.last()
	o.seen = o.seen.Add(-outageFrom / 2) // a busy machine
	if o.last() != before {
		t.Error("a short gap is an outage")
	}
	var ran done
	e, silent := o.Wrap(&ran), timeout{task: &tasks.ActivityTimeoutTask{}}
	if err := e.Execute(t.Context(), silent).ExecutionErr; err != consts.ErrTaskRetry {
		t.Errorf("within the grace: %v", err)
	}
	e.Execute(t.Context(), timeout{task: &tasks.WorkflowTaskTimeoutTask{}})
	o.ended = o.ended.Add(-o.grace)
	if e.Execute(t.Context(), silent); ran != 2 {
		t.Errorf("%d of 2 were executed", ran)
	}
}
