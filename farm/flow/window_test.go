package flow

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
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
	r.do = func(_ context.Context, in TaskInput) error {
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
	s, err := r.run(Settings{})
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
	r.do = func(_ context.Context, in TaskInput) error {
		if in.Index >= MostTasks {
			return errors.New("nobody wanted it")
		}
		return final("bad")
	}
	s, err := r.run(Settings{Max: 1})
	if err == nil || s.Failed != 1 || len(r.began) != 1 {
		t.Errorf("%v, %+v; %d tasks began", err, s, len(r.began))
	}
}
