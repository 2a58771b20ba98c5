package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestLeaves has a slot put the messages of what it declined back for a moment, however often they come, and for longer where it would not get past them.
func TestLeaves(t *testing.T) {
	w := &Worker{left: map[string]map[string]*refusal{}}
	w.leave("cpu", "a", time.Hour)
	between := func(what string, got, least, most time.Duration) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: %v, want %v to %v", what, got, least, most)
		}
	}
	sweep := func() time.Time {
		time.Sleep(time.Millisecond) // else two may begin at one reading of a coarse clock
		return time.Now()
	}
	for i := range 40 {
		between(fmt.Sprint("in sweep ", i), w.leaves("cpu", "a", sweep()), putBack/2, putBack*2)
	}
	if w.leaves("gpu", "a", sweep()) != 0 || w.leaves("cpu", "b", sweep()) != 0 {
		t.Error("nobody declined this")
	}
	began := sweep()
	for hide := putBack; hide < 4*putBackMost; hide *= 2 {
		now := min(hide, putBackMost)
		between("in one sweep", w.leaves("cpu", "a", began), now/2, now*2)
	}
	for i := range 10 * putBackMany {
		w.leave("many", fmt.Sprint(i), time.Hour)
	}
	between("one of many", w.leaves("many", "3", sweep()), 11*putBack/2, 11*putBack*3/2)
	w.leave("cpu", "a", -time.Second)
	if w.leaves("cpu", "a", sweep()) != 0 || len(w.left["cpu"]) != 0 {
		t.Error("it is left for longer than was said")
	}
}
