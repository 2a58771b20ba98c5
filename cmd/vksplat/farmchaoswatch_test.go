//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/task"
)

// chaosWatch is what was seen of the trainings while they were disturbed.
type chaosWatch struct {
	plan *spec.Plan

	lock    sync.Mutex
	stored  map[int]map[int]int      // by task and attempt: the step of its newest checkpoint that was seen in the store
	seen    map[int]map[int]*attempt // by task and attempt
	outages []span                   // of the store, and of what uploads go through
}

// attempt is what was seen of one.
type attempt struct {
	stored int // the newest checkpoint of those before it in the store when it was first heard of: by then it may have some itself, for a frozen network tells late
	said   []progressAt
}

type progressAt struct {
	at   time.Time
	step int
}

type span struct{ from, to time.Time }

// watch notes what trainings say, and which checkpoints of them are in the store.
func (c *chaos) watch(ctx context.Context, plan *spec.Plan) *chaosWatch {
	w := &chaosWatch{plan: plan, stored: map[int]map[int]int{}, seen: map[int]map[int]*attempt{}}
	c.watched = w
	go func() { _ = c.queue.Progress(ctx, chaosJob, w.hear) }()
	go func() {
		for ctx.Err() == nil {
			for i := range plan.Tasks {
				if plan.Tasks[i].Kind == spec.KindTrain {
					w.look(i, filepath.Join(c.outputs(), task.KeyOf(c.job, &plan.Tasks[i])))
				}
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	return w
}

// look finds the newest checkpoint of a training in the store.
func (w *chaosWatch) look(index int, dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, "ckpt", "a*", "step-*.json")) // the pattern is right
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, name := range names {
		var n, step int
		if _, err := fmt.Sscanf(filepath.Base(filepath.Dir(name))+" "+filepath.Base(name), "a%d step-%d.json", &n, &step); err != nil {
			continue
		}
		if w.stored[index] == nil {
			w.stored[index] = map[int]int{}
		}
		w.stored[index][n] = max(w.stored[index][n], step)
	}
}

// hear takes in what a task says.
func (w *chaosWatch) hear(p queue.Progress) {
	if w.plan.Tasks[p.Index].Kind != spec.KindTrain {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.seen[p.Index] == nil {
		w.seen[p.Index] = map[int]*attempt{}
	}
	a := w.seen[p.Index][p.Attempt]
	if a == nil {
		a = &attempt{}
		for n, step := range w.stored[p.Index] {
			if n < p.Attempt {
				a.stored = max(a.stored, step)
			}
		}
		w.seen[p.Index][p.Attempt] = a
	}
	a.said = append(a.said, progressAt{time.Now(), int(p.Step)})
}

// outage notes that nothing could be uploaded.
func (w *chaosWatch) outage(from, to time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.outages = append(w.outages, span{from, to})
}

// start is the first step that an attempt said it was at; 0 for one that came to none.
func (a *attempt) start() int {
	for _, s := range a.said {
		if s.step > 0 {
			return s.step
		}
	}
	return 0
}

// lost is how long an attempt worked on steps after one, before another took over: at most, as the word before that step may be older. A pause between two words
// counts as what it takes to say them.
func (a *attempt) lost(step int, until time.Time) (sum time.Duration) {
	for i, s := range a.said {
		if s.at.After(until) {
			break
		}
		if i > 0 && s.step > step {
			sum += min(s.at.Sub(a.said[i-1].at), 3*time.Second/2)
		}
	}
	return sum
}

// takeover is an attempt that went on with the training of one before it.
type takeover struct {
	attempt      string
	start        int           // its first step
	lost, worked time.Duration // what the one before did after that step, and in all
}

// chaosLost is the most work that may be done anew: a checkpoint is written within one interval, and uploaded within another.
const chaosLost = 2*chaosUpload + chaosSlack

// takeovers lists those with no outage meanwhile. How many attempts went on from the store is the other result, and wrong are those that began before the
// checkpoint that the store had.
func (w *chaosWatch) takeovers() (pairs []takeover, resumed int, wrong []string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for index, attempts := range w.seen {
		var before *attempt
		for _, n := range slices.Sorted(maps.Keys(attempts)) {
			a := attempts[n]
			start := a.start()
			if start == 0 {
				continue // it came to nothing
			}
			name := fmt.Sprintf("%s, attempt %d", w.plan.Tasks[index].Name, n)
			if a.stored > 0 {
				resumed++
			}
			if start < a.stored {
				wrong = append(wrong, fmt.Sprintf("%s was first at step %d, though the store had a checkpoint of step %d", name, start, a.stored))
			}
			if before != nil && !w.isOut(before.said[0].at, a.said[0].at) {
				until := a.said[0].at
				pairs = append(pairs, takeover{name, start, before.lost(start, until), before.lost(0, until)})
			}
			before = a
		}
	}
	return pairs, resumed, wrong
}

// telling counts the takeovers that could have lost more than they may.
func telling(pairs []takeover) (n int) {
	for _, p := range pairs {
		if p.worked > chaosLost {
			n++
		}
	}
	return n
}

// judge wants every attempt to begin where the checkpoint was that the store had before it, and none to have done more than two intervals' work anew.
func (w *chaosWatch) judge(t *testing.T) {
	pairs, resumed, wrong := w.takeovers()
	for _, text := range wrong {
		t.Error(text)
	}
	worst := time.Duration(0)
	for _, p := range pairs {
		worst = max(worst, p.lost)
		if p.lost > chaosLost {
			t.Errorf("%s began at step %d, which was %v before the end of the one before", p.attempt, p.start, p.lost)
		}
	}
	t.Logf("%d attempts at trainings went on from checkpoints of the store; of %d pairs of attempts, %d of them telling, the worst did %v of work anew",
		resumed, len(pairs), telling(pairs), worst.Round(10*time.Millisecond))
}

// isOut says whether there was an outage between two times.
func (w *chaosWatch) isOut(from, to time.Time) bool {
	return slices.ContainsFunc(w.outages, func(s span) bool { return s.from.Before(to) && s.to.Add(chaosUpload).After(from) })
}

// TestChaosWatch has an attempt heard of only when it has stored checkpoints itself: it began before none of those. The next one begins too early.
func TestChaosWatch(t *testing.T) {
	dir := t.TempDir()
	w := &chaosWatch{plan: &spec.Plan{Tasks: []spec.Task{{Name: "m", Kind: spec.KindTrain}}}, stored: map[int]map[int]int{}, seen: map[int]map[int]*attempt{}}
	say := func(attempt int, steps ...int64) {
		w.look(0, dir)
		for _, step := range steps {
			w.hear(queue.Progress{Attempt: attempt, Step: step})
		}
	}
	checkpoint := filepath.Join(dir, "ckpt", "a1", "step-000000129.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(checkpoint), 0o777), os.WriteFile(checkpoint, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	say(1, 41, 130)
	say(2, 100)
	if pairs, resumed, wrong := w.takeovers(); len(pairs) != 1 || resumed != 1 || len(wrong) != 1 || !strings.Contains(wrong[0], "attempt 2 was first at step 100") {
		t.Error(pairs, resumed, wrong)
	}
}
