package queue

import (
	"errors"
	"testing"
	"time"
)

// TestRestTakesNoPlace has a task wait after a failed attempt where one may run at a time: another runs meanwhile. Once it is due it comes when that one has ended, and not before.
func TestRestTakesNoPlace(t *testing.T) {
	s := newSteps(t, Task{Name: "a"}, Task{Name: "b"}, Task{Name: "c"})
	_, err := s.q.ChangeLimits(t.Context(), func(l *Limits) error {
		l.Pools = map[string]int{AnyPool: 1}
		return nil
	})
	s.must(err)
	s.round(false)
	const delay = 3 * time.Second
	began := time.Now()
	s.must(s.claim("a").Retry(t.Context(), errors.New("lost device"), delay))
	s.round(false)
	b := s.claim("b")
	if time.Since(began) > delay {
		t.Fatalf("it came after %v", time.Since(began))
	}
	s.round(true)
	if found, err := s.q.Fsck(t.Context(), nil, false); err != nil || len(found) > 1 { // nobody reconciles
		t.Error(found, err)
	}
	s.nothing()
	time.Sleep(time.Until(began.Add(delay + delay/2)))
	s.round(true)
	s.nothing() // both at once would be too many
	s.must(b.Succeed(t.Context(), "m"))
	s.round(false)
	a := s.claim("a")
	if a.Attempt != 2 || a.used != 2 {
		t.Errorf("%+v", a)
	}
	s.round(true)
	s.nothing()
	s.must(a.Succeed(t.Context(), "m"))
	s.round(false)
	s.succeed("c")
}

// TestRestWithoutLimits has a task wait whose number nobody limits: its message keeps the time.
func TestRestWithoutLimits(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	began := time.Now()
	s.must(s.claim("a").Retry(t.Context(), errors.New("lost device"), 2*time.Second))
	s.round(true)
	if !s.r.boards[tokenOf("j")].cells[0].called {
		t.Error("its message was removed")
	}
	s.succeed("a") // in no round
	if time.Since(began) < time.Second {
		t.Errorf("it came after %v", time.Since(began))
	}
}
