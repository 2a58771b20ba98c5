//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/queue"
)

// chaosTelling is how many takeovers TestFarmSteps must see whose attempt before had worked for longer than may be lost.
const chaosTelling = 12

// TestFarmSteps kills machines under long trainings until enough of these were taken over, and wants no more work done anew than checkpoint intervals allow. Half
// of the machines come back with their work folders, the others with empty ones; between them, run-task and its child are killed. No disk is full meanwhile, so
// every takeover is judged.
func TestFarmSteps(t *testing.T) {
	if os.Getenv(longVariable) != "1" {
		t.Skip(longVariable + "=1 kills machines under long trainings")
	}
	needDevice(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	c := newChaos(t, rand.New(rand.NewPCG(seed, 0)))
	document := filepath.Join(c.dir, "job.toml")
	if err := os.WriteFile(document, []byte(stepsDocument()), 0o666); err != nil {
		t.Fatal(err)
	}
	vksplat(t, "farm", "submit", document, "--token", c.token())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	watched := c.watch(ctx, c.plan(document))
	go c.release(ctx)
	for pairs := []takeover(nil); telling(pairs) < chaosTelling && ctx.Err() == nil; pairs, _, _ = watched.takeovers() {
		time.Sleep(3*time.Second + time.Duration(c.random.IntN(3000))*time.Millisecond)
		w := c.workers[c.random.IntN(len(c.workers))]
		name, did := "", false
		switch c.random.IntN(4) {
		case 0:
			name, did = "machine killed, its folder kept", c.crash(w, false)
		case 1:
			name, did = "machine killed, its folder lost", c.crash(w, true)
		case 2:
			name, did = "run-task killed", c.killBelow(w, 0)
		case 3:
			name, did = "its child killed", c.killBelow(w, 1)
		}
		if did {
			c.done[name]++
		}
	}
	t.Log("disturbed by", c.done)
	if err := c.queue.Cancel(t.Context(), chaosJob, queue.Selection{}); err != nil {
		t.Error(err)
	}
	watched.judge(t)
	if pairs, _, _ := watched.takeovers(); telling(pairs) < chaosTelling {
		t.Errorf("%d takeovers tell of what is lost, want %d", telling(pairs), chaosTelling)
	}
}

// stepsDocument is a job of trainings that do not end by themselves.
func stepsDocument() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version = 1\nname = %q\n[retry]\nmax_attempts = 1000\nbackoff = \"100ms\"\nbackoff_max = \"1s\"\n[limits]\nlease = %q\nstall_timeout = \"1m\"\ncheckpoint_every = %q\n", chaosJob, chaosLease, chaosUpload)
	fmt.Fprint(&b, "[[task]]\nkind = \"demo\"\nid = \"made\"\nimages = 6\nsize = [48, 48]\npoints = 200\n")
	for i := range chaosWorkers {
		fmt.Fprintf(&b, "[[task]]\nkind = \"train\"\nid = \"model %d\"\nsource = \"@made\"\nset = { iterations = 1000000, seed = %d }\n", i, i)
	}
	return b.String()
}

// crash kills a worker and all that it runs, as a machine that loses power; its work folder may be lost, too. It says whether anything ran there.
func (c *chaos) crash(w *chaosPart, lose bool) bool {
	pid := w.pid()
	generations := below(pid)
	if len(generations) == 0 {
		return false
	}
	w.down.Lock()
	defer w.down.Unlock()
	w.signal(syscall.SIGKILL)
	for _, pids := range generations {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with its parent
		}
	}
	if !lose {
		return true
	}
	for began := time.Now(); syscall.Kill(pid, 0) == nil && time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
	}
	entries, err := os.ReadDir(c.work(w.name))
	for _, entry := range entries {
		if err == nil {
			err = os.RemoveAll(filepath.Join(c.work(w.name), entry.Name()))
		}
	}
	if err != nil {
		c.t.Errorf("lose the work folder of %s: %v", w.name, err)
	}
	return true
}
