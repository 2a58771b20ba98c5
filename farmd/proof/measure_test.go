package proof

import (
	"context"
	"os"
	"testing"
	"time"

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
