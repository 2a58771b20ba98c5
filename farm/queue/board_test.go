package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBoardFollows changes random entries and heads of random jobs, and compares each board with one made anew, and with a plain definition of the states.
func TestBoardFollows(t *testing.T) {
	stored := []State{Queued, Running, Verifying, RetryWait, Canceling, Succeeded, Succeeded, Succeeded, Failed, Canceled}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		tasks := make([]Task, 1+random.IntN(20))
		for i := range tasks {
			tasks[i] = Task{Name: fmt.Sprint(i), Inspect: random.IntN(5) == 0}
			for range random.IntN(3) {
				if i > 0 {
					tasks[i].Needs = append(tasks[i].Needs, random.IntN(i))
				}
			}
		}
		head := Head{FailFast: random.IntN(3) == 0}
		b := newBoard(head, 1, tasks)
		for revision := uint64(2); revision < 100; revision++ {
			if random.IntN(6) == 0 {
				head.Canceled, head.Inspected = random.IntN(3) == 0, random.IntN(2) == 0
				b.setHead(head, revision)
			} else {
				b.setEntry(random.IntN(len(tasks)), &Entry{State: stored[random.IntN(len(stored))]}, revision, time.Time{})
			}
			counts := map[State]int{}
			for i := range tasks {
				want := plainState(b, i)
				if b.cells[i].state != want {
					t.Fatalf("seed %d, revision %d: task %d is %s, want %s", seed, revision, i, b.cells[i].state, want)
				}
				counts[want]++
			}
			for _, state := range States {
				if b.counts[state] != counts[state] {
					t.Fatalf("seed %d: %d tasks are %s, want %d", seed, b.counts[state], state, counts[state])
				}
			}
		}
	}
}

// plainState follows the definition, from the ends of the graph on.
func plainState(b *board, i int) State {
	state := Queued
	if e := b.cells[i].entry; e != nil {
		state = e.State
	}
	failed := slices.ContainsFunc(b.cells, func(c cell) bool { return c.entry != nil && c.entry.State == Failed })
	if state.Ended() || state == Canceling {
		return state
	}
	if b.head.Canceled {
		if state == Running || state == Verifying {
			return Canceling
		}
		return Canceled
	}
	if state != Queued && state != RetryWait {
		return state
	}
	if state == Queued && b.head.FailFast && failed {
		return Skipped
	}
	result := state
	for _, need := range b.tasks[i].Needs {
		switch s := plainState(b, need); {
		case s == Failed || s == Canceled || s == Skipped:
			return Skipped
		case s != Succeeded || b.tasks[need].Inspect && !b.head.Inspected:
			result = Blocked
		}
	}
	return result
}

func TestPlanRefused(t *testing.T) {
	good := func() JobPlan {
		return JobPlan{Name: "j", Priority: Normal, Tasks: []Task{{Name: "a"}, {Name: "b", Needs: []int{0}}}}
	}
	plan := good()
	if err := plan.check(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*JobPlan){
		"no name":      func(p *JobPlan) { p.Name = "" },
		"control":      func(p *JobPlan) { p.Name = "a\nb" },
		"not UTF-8":    func(p *JobPlan) { p.Tasks[0].Name = "\xff" },
		"long":         func(p *JobPlan) { p.Name = strings.Repeat("x", 256) },
		"priority":     func(p *JobPlan) { p.Priority = "urgent" },
		"document":     func(p *JobPlan) { p.Document = make([]byte, MaxDocument+1) },
		"no tasks":     func(p *JobPlan) { p.Tasks = nil },
		"tasks":        func(p *JobPlan) { p.Tasks = make([]Task, MaxTasks+1) },
		"same names":   func(p *JobPlan) { p.Tasks[1].Name = "a" },
		"pool":         func(p *JobPlan) { p.Tasks[0].Pool = "a\nb" },
		"long pool":    func(p *JobPlan) { p.Tasks[0].Pool = strings.Repeat("x", maxPool+1) },
		"its priority": func(p *JobPlan) { p.Tasks[0].Priority = "urgent" },
		"need":         func(p *JobPlan) { p.Tasks[0].Needs = []int{2} },
		"needs itself": func(p *JobPlan) { p.Tasks[0].Needs = []int{0} },
		"cycle":        func(p *JobPlan) { p.Tasks[0].Needs = []int{1} },
		"negative":     func(p *JobPlan) { p.Tasks[0].Lease = -1 },
		"many needs":   func(p *JobPlan) { p.Tasks[1].Needs = make([]int, maxNeeds+1) },
	} {
		plan := good()
		change(&plan)
		if plan.check() == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

func TestPlanPacked(t *testing.T) {
	tasks := []Task{{Name: "a b/ä"}, {Name: "c", Needs: []int{0}, Pool: "gpu24", MaxAttempts: 2, Backoff: time.Second, Inspect: true}}
	packed, sum, err := packTasks(tasks)
	if err != nil {
		t.Fatal(err)
	}
	head := Head{Plan: sum, Tasks: 2}
	got, err := unpackTasks(packed, head)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(tasks) {
		t.Fatal(got, err)
	}
	for i := range packed {
		bad := slices.Clone(packed)
		bad[i] ^= 4
		if got, err := unpackTasks(bad, head); err == nil && fmt.Sprint(got) != fmt.Sprint(tasks) {
			t.Fatalf("byte %d changed: %v", i, got)
		}
	}
	if _, err := unpackTasks(packed[:len(packed)-3], head); err == nil {
		t.Error("a plan cut short is taken")
	}
}

func TestFrames(t *testing.T) {
	for text, want := range map[string]Frames{"7": {7, 7, 1}, "1001-1100": {1001, 1100, 1}, "1001-1100x2": {1001, 1100, 2}} {
		if got, err := ParseFrames(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a", "5-4", "1-2x0", "1-", "-1", "1-2x", "9999999999"} {
		if f, err := ParseFrames(text); err == nil {
			t.Errorf("%q is taken as %v", text, f)
		}
	}
	random := rand.New(rand.NewPCG(3, 3))
	for range 20000 {
		f := Frames{random.IntN(30), 0, 1 + random.IntN(6)}
		g := Frames{random.IntN(30), 0, 1 + random.IntN(6)}
		f.Last, g.Last = f.First+random.IntN(30), g.First+random.IntN(30)
		want := false
		for a := f.First; a <= f.Last; a += f.Step {
			for b := g.First; b <= g.Last; b += g.Step {
				want = want || a == b
			}
		}
		if f.meets(g) != want {
			t.Fatalf("%v meets %v: %v", f, g, !want)
		}
	}
}

func TestSelection(t *testing.T) {
	b := newBoard(Head{}, 1, []Task{{Name: "fly/0001-0050"}, {Name: "fly/0051-0100"}, {Name: "flyer"}, {Name: "garden"}})
	for _, test := range []struct {
		selection Selection
		want      []int
	}{
		{Selection{}, []int{0, 1, 2, 3}},
		{Selection{Tasks: []string{"fly"}}, []int{0, 1}},
		{Selection{Tasks: []string{"garden", "fly/0051-0100"}}, []int{1, 3}},
		{Selection{Frames: &Frames{40, 60, 1}}, []int{0, 1}},
		{Selection{Tasks: []string{"fly"}, Frames: &Frames{51, 51, 1}}, []int{1}},
		{Selection{Tasks: []string{"fl"}}, nil},
		{Selection{Frames: &Frames{400, 600, 1}}, nil},
	} {
		got, err := test.selection.of(b)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) || err != nil && !errors.Is(err, ErrNoTask) {
			t.Errorf("%+v: %v, %v", test.selection, got, err)
		}
	}
}

func TestBackoff(t *testing.T) {
	task := Task{Backoff: time.Second, BackoffMax: 5 * time.Second}
	for used, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 5, 1000000: 5} {
		if got := task.backoff(used); got != want*time.Second {
			t.Errorf("after %d: %v", used, got)
		}
	}
}

func TestTokensOfNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a.b", "a", "a=2Eb", "a b", "ä", "*", ">", "a_b", "a-b", "A"} {
		token := tokenOf(name)
		if strings.ContainsAny(token, ".*> ") || seen[token] != "" {
			t.Errorf("%q and %q are both %q", name, seen[token], token)
		}
		seen[token] = name
	}
}

// TestJudge is the table of who may take a task, with clocks that jump.
func TestJudge(t *testing.T) {
	const lease = 30 * time.Second
	wait := func(d time.Duration) string { return nak(d) }
	for _, test := range []struct {
		state  State
		age    time.Duration
		task   Task
		used   int
		answer string
		after  State
	}{
		{Queued, time.Hour, Task{}, 0, "", Queued},
		{Succeeded, time.Hour, Task{}, 1, "+ACK", Succeeded},
		{Failed, 0, Task{}, 1, "+ACK", Failed},
		{Canceled, 0, Task{}, 1, "+ACK", Canceled},
		{Running, 10 * time.Second, Task{}, 1, wait(20 * time.Second), Running},
		{Verifying, 10 * time.Second, Task{}, 1, wait(20 * time.Second), Verifying},
		{Running, lease, Task{}, 1, "", Queued},
		{Running, lease, Task{Lease: time.Minute}, 1, wait(30 * time.Second), Running},
		{Running, lease, Task{Lease: time.Second}, 1, "", Queued},
		{Running, lease, Task{MaxAttempts: 2}, 2, "", Failed},
		{Canceling, lease, Task{}, 1, "", Canceled},
		{RetryWait, time.Second, Task{}, 1, wait(9 * time.Second), RetryWait},
		{RetryWait, 10 * time.Second, Task{}, 1, "", Queued},
		// The server's clock went back by an hour, then on by one.
		{Running, -time.Hour, Task{}, 1, wait(lease), Running},
		{RetryWait, -time.Hour, Task{}, 1, wait(10 * time.Second), RetryWait},
		{Running, time.Hour, Task{}, 1, "", Queued},
	} {
		e := Entry{State: test.state, Used: test.used, Delay: Duration(10 * time.Second)}
		answer := e.judge(test.age, lease, &test.task)
		if answer != test.answer || e.State != test.after {
			t.Errorf("%s, %v old: %q, %s; want %q, %s", test.state, test.age, answer, e.State, test.answer, test.after)
		}
		if lost := test.state.owned() && e.State != test.state; lost != (len(e.Failures) == 1 && e.Failures[0].Lost) {
			t.Errorf("%s, %v old: failures %+v", test.state, test.age, e.Failures)
		}
	}
}
