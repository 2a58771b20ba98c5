package proof

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"vksplat/farm/client"
	"vksplat/farm/flow"
	"vksplat/internal/filetest"
)

// TestTenThousand measures 10,000 tasks that do nothing, by one worker, for bench/NOTES.md.
func TestTenThousand(t *testing.T) {
	n := 500
	if filetest.Long() {
		n = 10_000
	}
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna, gpu := s.join("--role", "submit", "--name", "anna"), s.join("--role", "worker", "--name", "gpu")
	fresh := s.residentMB()
	work(t, s.client(gpu), demoQueue, 32, func(context.Context, flow.TaskInput) error { return nil })
	began := time.Now()
	run := mustSubmit(t, s.client(anna), roots, "anna", demos("many", n))
	accepted := time.Since(began)
	var state flow.State
	if err := run.Get(t.Context(), &state); err != nil || state.Done != n {
		t.Fatalf("%+v, %v", state, err)
	}
	took := time.Since(began).Seconds()
	var size int64
	for _, name := range []string{"queue.db", "queue.db-wal"} {
		if info, err := os.Stat(s.data + "/" + name); err == nil {
			size += info.Size()
		}
	}
	memory := s.residentMB()
	s.stop()
	cpu := s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
	t.Logf("serving after %.2f s; %d tasks accepted after %.3f s, done after %.1f s (%.0f a second), of which the "+
		"server took %.1f s of a core; memory %d MB fresh, %d MB then; database %.1f MB", s.took.Seconds(), n,
		accepted.Seconds(), took, float64(n)/took, cpu.Seconds(), fresh, memory, float64(size)/1e6)
}

// TestManyTasks measures a job with as many tasks as one may have, which nobody does: how soon the server answers, and
// what it takes. For bench/README.md.
func TestManyTasks(t *testing.T) {
	seeds, sizes := 41, 271
	if filetest.Long() {
		seeds = 369
	}
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna := s.join("--role", "submit", "--name", "anna")
	farm, err := client.Dial(t.Context(), client.Options{Address: s.address, Namespace: flow.Namespace, Owner: "anna",
		TLS: anna.TLS.Clone()})
	if err != nil {
		t.Fatal(err)
	}
	defer farm.Close()
	document := "version = 1\nname = \"many\"\n[[task]]\nkind = \"demo\"\nid = \"d\"\n"
	for _, axis := range []struct {
		key      string
		from, to int
	}{{"seed", 0, seeds}, {"images", 6, 6 + sizes}} {
		var list []string
		for i := axis.from; i < axis.to; i++ {
			list = append(list, strconv.Itoa(i))
		}
		document += fmt.Sprintf("matrix.%s = [%s]\n", axis.key, strings.Join(list, ","))
	}
	began := time.Now()
	mustSubmit(t, s.client(anna), roots, "anna", document)
	mustSubmit(t, s.client(anna), roots, "anna", demos("other", 2))
	accepted := time.Since(began)
	var slowest time.Duration
	for queued := 0; queued < 10_000; time.Sleep(time.Second) {
		from := time.Now()
		list, more, err := farm.List(t.Context(), false, 0)
		if err != nil || more || time.Since(began) > 2*time.Minute {
			t.Fatalf("%d jobs, %v", len(list), err)
		}
		slowest = max(slowest, time.Since(from))
		for _, j := range list {
			if j.ID == "anna/many" && j.State != nil && j.Tasks == seeds*sizes {
				queued = j.State.Queued
			}
		}
	}
	planned := time.Since(began)
	if list, more, err := farm.List(t.Context(), false, 1); err != nil || !more || len(list) != 1 || list[0].ID != "anna/other" {
		t.Errorf("the newest job: %+v, %v, %v", list, more, err)
	}
	time.Sleep(3 * time.Second) // what would go on, if nothing bounded it
	j, err := farm.Show(t.Context(), "anna/many")
	if err != nil || j.State.Queued != 10_000 || j.State.Waiting != seeds*sizes-10_000 {
		t.Errorf("%+v, %v", j, err)
	}
	memory := s.residentMB()
	t.Logf("%d tasks accepted after %.2f s, 10,000 queued after %.1f s; the slowest list took %.2f s; memory %d MB",
		seeds*sizes, accepted.Seconds(), planned.Seconds(), slowest.Seconds(), memory)
	if slowest > 20*time.Second || memory > 700 {
		t.Error("it is more than it was")
	}
}
