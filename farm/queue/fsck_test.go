package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// shelf is a store in memory, in which things happen while it is read.
type shelf struct {
	plans     []JobPlan
	bad       error                                // of another document
	manifests map[string]string                    // by task
	read      func()                               // called when all jobs have been read
	looked    func(task string)                    // called when a task's results have been looked at
	counted   func(document string) (attempts int) // called when a job that is not in the queue is about to be submitted
}

func (s *shelf) Jobs(_ context.Context, fn func(JobPlan, error) error) error {
	for _, plan := range s.plans {
		if err := fn(plan, nil); err != nil {
			return err
		}
	}
	if s.read != nil {
		s.read()
	}
	if s.bad != nil {
		return fn(JobPlan{Name: "what.json"}, s.bad)
	}
	return nil
}

func (s *shelf) Add([]byte) error { return nil }

func (s *shelf) Manifest(_ context.Context, _ string, _ int, task Task) (string, int, error) {
	sum := s.manifests[task.Name]
	if s.looked != nil {
		s.looked(task.Name)
	}
	return sum, 0, nil
}

func (s *shelf) Attempts(_ context.Context, document string, _ int) (int, error) {
	if s.counted != nil {
		return s.counted(document), nil
	}
	return 0, nil
}

func (s *steps) repair(store *shelf) []Finding {
	s.t.Helper()
	found, err := s.q.Fsck(s.t.Context(), store, true)
	s.must(err)
	return found
}

// TestFsckBesideOthers has users and workers go on while fsck --repair reads the results of a large farm: it judges nothing that has changed since.
func TestFsckBesideOthers(t *testing.T) {
	store := &shelf{plans: []JobPlan{{Name: "j", Document: []byte("{}")}}, manifests: map[string]string{}}
	t.Run("redo", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"})
		lease := s.claim("a")
		s.must(lease.Handback(t.Context()))
		shelf := *store
		shelf.manifests = map[string]string{"a": "old"} // which an attempt committed, and could not tell
		shelf.looked = func(string) {
			s.must(s.q.updateEntry(t.Context(), "j", 0, func(e *Entry) bool { e.State, e.Manifest = Succeeded, "old"; return true }))
			s.round(false)
			s.must(s.q.Retry(t.Context(), "j", Selection{Redo: true}))
		}
		s.repair(&shelf)
		if e := s.entry(0); e.State != Queued || e.Generation != 1 {
			t.Errorf("what is wanted anew counts as done: %+v", e)
		}
	})
	t.Run("done again", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"}, Task{Name: "b", Pool: "other"})
		s.succeed("a")
		shelf := *store
		shelf.looked = func(task string) { // its results were away for the moment in which new ones took their place
			if task == "a" {
				s.must(s.q.Retry(t.Context(), "j", Selection{Tasks: []string{"a"}, Redo: true}))
				s.round(true)
				s.must(s.claim("a").Succeed(t.Context(), "new"))
			}
		}
		s.repair(&shelf)
		if e := s.entry(0); e.State != Succeeded || e.Manifest != "new" {
			t.Errorf("what was just done is to be done again: %+v", e)
		}
	})
	t.Run("forgotten", func(t *testing.T) {
		s := newSteps(t, Task{Name: "a"})
		s.must(s.claim("a").Fail(t.Context(), errors.New("no photos")))
		s.round(false)
		shelf := *store
		shelf.read = func() { s.must(s.q.Delete(t.Context(), "j")) } // which had begun with the store
		s.repair(&shelf)
		if head, err := s.q.Head(t.Context(), "j"); !errors.Is(err, ErrNoJob) {
			t.Errorf("a job that was forgotten is there again: %+v, %v", head, err)
		}
	})
}

// TestTwoRepairs rebuilds a queue twice at once: what a user does to a job that one of them has restored, the other does not undo.
func TestTwoRepairs(t *testing.T) {
	s := newSteps(t, Task{Name: "other"})
	plan := func(name string) JobPlan {
		return JobPlan{Name: name, Document: []byte(name), Tasks: []Task{{Name: "t"}}}
	}
	store := &shelf{plans: []JobPlan{plan("first"), plan("second")}}
	first := *store
	first.counted = func(document string) int {
		if document == hashOf([]byte("first")) {
			s.repair(store)
			s.must(s.q.Cancel(t.Context(), "second", Selection{}))
		}
		return 0
	}
	s.repair(&first)
	if head, err := s.q.Head(t.Context(), "second"); err != nil || !head.Canceled {
		t.Errorf("a job that was canceled goes on: %+v, %v", head, err)
	}
}

// TestBadDocument rebuilds a queue from a store in which a document cannot be used: that is said, and the other jobs are there.
func TestBadDocument(t *testing.T) {
	s := newSteps(t, Task{Name: "other"})
	store := &shelf{plans: []JobPlan{{Name: "good", Document: []byte("good"), Tasks: []Task{{Name: "t"}}}}, bad: errors.New("no such kind")}
	found := s.repair(store)
	if _, err := s.q.Head(t.Context(), "good"); err != nil || len(found) != 3 || !strings.Contains(found[0].What, "no such kind") || found[0].Repaired || !found[1].Repaired {
		t.Errorf("%+v, %v", found, err)
	}
}
