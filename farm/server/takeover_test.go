package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vksplat/farm/queue"
)

// TestLostMessage loses the message of a task whose worker falls silent. Only the reconciler's clock can tell then.
func TestLostMessage(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a", Stall: time.Millisecond}}})
	cause(t, f.claim("a"), queue.ErrStalled)
	nc, err := f.server.Connect("damage")
	f.must(err)
	defer nc.Close()
	_, err = nc.Request("$JS.API.STREAM.PURGE.JOBS", nil, patience)
	f.must(err)
	if lease := f.claim("a"); lease.Attempt != 2 {
		t.Errorf("%+v", lease)
	}
	if tasks := f.states("j", queue.Running); len(tasks[0].Entry.Failures) != 1 || !tasks[0].Entry.Failures[0].Lost {
		t.Errorf("%+v", tasks[0].Entry)
	}
}

// TestTakeover measures how long after its worker's death a task begins elsewhere.
func TestTakeover(t *testing.T) {
	leases := []time.Duration{time.Second}
	if os.Getenv(longVariable) == "1" {
		leases = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second}
	}
	for _, lease := range leases {
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
			options.Farm.Lease = queue.Duration(lease)
			s, err := Start(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			f := &farm{t: t, server: s, user: connect(t, s, Submit)}
			f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
			token, err := NewToken(options.Dir, Work, "dies", 0)
			f.must(errors.Join(err, s.readKeys()))
			nc, err := queue.Dial(token, "dies")
			f.must(err)
			q, err := queue.Connect(t.Context(), nc, queue.Options{})
			f.must(err)
			w, err := q.Join(t.Context(), queue.WorkerInfo{Node: "dies"})
			f.must(err)
			dead, err := w.Claim(t.Context(), queue.Slot{})
			f.must(err)
			time.Sleep(lease / 2)
			nc.Close()
			died := time.Now()
			f.worker = f.join("lives")
			ctx, cancel := context.WithTimeout(t.Context(), 3*lease+10*time.Second)
			defer cancel()
			taken, err := f.worker.Claim(ctx, queue.Slot{})
			f.must(err)
			took := time.Since(died)
			t.Logf("lease %v: taken over after %v", lease, took)
			if taken.Attempt != 2 || took > 3*lease+5*time.Second {
				t.Errorf("attempt %d after %v", taken.Attempt, took)
			}
			_ = dead
		})
	}
}
