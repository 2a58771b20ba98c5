package desk

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"vksplat/internal/run/output"
)

// TestSlowDisk reads records from a disk that does not answer: the page works all the same, and has the runs once the
// disk answers.
func TestSlowDisk(t *testing.T) {
	answers := make(chan struct{})
	b := openDesk(t, func(d *desk) {
		read := d.runs.summarise
		d.runs.summarise = func(dir string) runSummary {
			<-answers
			return read(dir)
		}
		fill(t, filepath.Join(d.root, "old", output.StatsFile), "{}")
	})
	id := b.begin("train", train)
	s := b.until("it trains", func(s *seenState) bool { return s.job(id).Step > 0 })
	if s.Runs != nil {
		t.Errorf("runs %+v", s.Runs)
	}
	var none struct{}
	b.must(http.MethodPost, "stop", `{"job":"`+id+`"}`, &none)
	b.until("it has stopped", func(s *seenState) bool { return s.job(id).State == stateStopped })
	close(answers)
	b.until("the runs are there", func(s *seenState) bool { return len(s.Runs) == 2 })
}

// TestTogether starts and resumes at once: every training has a folder of its own, and one run is resumed once.
func TestTogether(t *testing.T) {
	b := openDesk(t)
	first := b.begin("train", train)
	b.until("it trains", func(s *seenState) bool { return s.job(first).Step > 0 })
	var none struct{}
	b.must(http.MethodPost, "stop", `{"job":"`+first+`"}`, &none)
	b.until("it has stopped", func(s *seenState) bool { return s.job(first).State == stateStopped })
	var all sync.WaitGroup
	var mu sync.Mutex
	taken, made := 0, map[string]bool{}
	for range 8 {
		all.Go(func() {
			if _, err := b.resume("vksplat/runs/garden-default"); err == nil {
				mu.Lock()
				taken++
				mu.Unlock()
			} else if text := err.Error(); !strings.Contains(text, "in progress") &&
				!strings.Contains(text, "is being trained") {
				t.Error(err)
			}
		})
		all.Go(func() {
			id, err := b.train(&trainRequest{Scene: "garden", Preset: "default", Name: "walk"})
			if err != nil {
				t.Error(err)
				return
			}
			b.queue.mu.Lock()
			path := b.queue.find(id).Made
			b.queue.mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			if made[path] {
				t.Errorf("%s is made twice", path)
			}
			made[path] = true
		})
	}
	all.Wait()
	if taken != 1 {
		t.Errorf("the run was resumed %d times", taken)
	}
	if len(made) != 8 {
		t.Errorf("%d runs", len(made))
	}
}

// TestShownEnded has the process of a viewer end: its place, which another program may get, is not asked any more.
func TestShownEnded(t *testing.T) {
	b := openDesk(t)
	id := b.begin("train", strings.Replace(train, "garden", "short", 1))
	b.until("it is trained", func(s *seenState) bool { return s.job(id).State == stateDone })
	var at struct{ At string }
	b.must(http.MethodPost, "show", `{"path":"vksplat/runs/short-default"}`, &at)
	b.queue.mu.Lock()
	b.queue.find(strings.Split(at.At, "/")[1]).child.Kill()
	b.queue.mu.Unlock()
	b.until("it is gone", func(*seenState) bool {
		status, text := b.ask(http.MethodGet, at.At, "", nil)
		return status == 404 && strings.Contains(text, "has closed")
	})
}
