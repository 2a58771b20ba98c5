//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
)

// Sizes of TestFarmChaos.
type chaosSize struct {
	stubs, trainings, steps int
	deeds                   int // at most
	most                    time.Duration
}

const (
	chaosLease   = 3 * time.Second
	chaosUpload  = time.Second // between two uploads of checkpoints
	chaosSlack   = 5 * time.Second
	chaosWorkers = 4
	chaosBad     = "bad model" // what tasks that fail are called
)

// TestFarmChaos runs a job of trainings, renders, evaluations and small tasks of the processor on a server and four workers, all of them processes of this
// program, and disturbs them until it is done: see deeds. In the end every task has one valid manifest or a stated failure, nothing that was uploaded was lost,
// and all results have the bytes of the same job on one machine that nobody disturbed. VKSPLAT_LONG=1 takes 300 tasks, and a new seed; VKSPLAT_TEST_SEED repeats one.
func TestFarmChaos(t *testing.T) {
	needDevice(t)
	if os.Getenv(ownProcess) == "" && hasNamespaces() {
		inNamespace(t)
		return
	}
	size, seed := chaosSize{stubs: 6, trainings: 2, steps: 250, deeds: 11, most: 5 * time.Minute}, uint64(7)
	if os.Getenv(longVariable) == "1" {
		size, seed = chaosSize{stubs: 200, trainings: 40, steps: 300, deeds: 300, most: time.Hour}, uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("VKSPLAT_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("seed", seed)
	c := newChaos(t, rand.New(rand.NewPCG(seed, 0)))
	document := filepath.Join(c.dir, "job.toml")
	if err := os.WriteFile(document, []byte(size.document()), 0o666); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(c.dir, "undisturbed")
	var beside sync.WaitGroup
	beside.Go(func() { c.undisturbed(document, whole) }) // the chaos mostly waits
	t.Cleanup(beside.Wait)
	began := time.Now()
	vksplat(t, "farm", "submit", document, "--token", c.token())
	ctx, cancel := context.WithTimeout(t.Context(), size.most)
	defer cancel()
	watched := c.watch(ctx, c.plan(document))
	done := make(chan error, 1)
	go func() {
		_, err := c.queue.Wait(ctx, chaosJob)
		done <- err
	}()
	c.disturb(ctx, size.deeds, done)
	if t.Failed() {
		return
	}
	t.Logf("done in %v, disturbed by %v", time.Since(began).Round(time.Second), c.done)
	c.judge(watched)
	beside.Wait()
	c.compare(document, whole)
}

const chaosJob = "chaos"

// document is the job. Of ten tasks, six are small pictures drawn by the processor, the others are trainings and what is made of their models; a few fail.
func (s *chaosSize) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version = 1\nname = %q\n[retry]\nmax_attempts = 1000\nbackoff = \"100ms\"\nbackoff_max = \"1s\"\n[limits]\nlease = %q\nstall_timeout = \"1m\"\ncheckpoint_every = %q\n", chaosJob, chaosLease, chaosUpload)
	add := func(kind, id, rest string) { fmt.Fprintf(&b, "[[task]]\nkind = %q\nid = %q\n%s\n", kind, id, rest) }
	for i := range min(4, s.trainings) {
		add("demo", fmt.Sprintf("made %d", i), fmt.Sprintf("images = 6\nsize = [48, 48]\npoints = %d", 200+100*i))
	}
	for i := range max(s.stubs, s.trainings) {
		if i < s.trainings {
			model := fmt.Sprintf("model %d", i)
			add("train", model, fmt.Sprintf("source = \"@made %d\"\nset = { iterations = %d, seed = %d, eval = true }", i%4, s.steps, i))
			switch i % 4 {
			case 0, 3:
				add("render", fmt.Sprintf("film %d", i), fmt.Sprintf("model = \"@%s\"\ntrajectory = \"orbit\"\nseconds = 1\nfps = 8\nsize = [48, 32]", model))
			case 1:
				add("eval", fmt.Sprintf("scores %d", i), fmt.Sprintf("models = [\"@%s\"]", model))
			default:
				add("convert", fmt.Sprintf("web %d", i), fmt.Sprintf("model = \"@%s\"\nto = \"spz\"", model))
			}
		}
		if i < s.stubs {
			add("demo", fmt.Sprintf("stub %d", i), fmt.Sprintf("images = 3\nsize = [32, 32]\npoints = 20\nseed = %d", i))
		}
		if i%50 == 5 {
			add("convert", fmt.Sprintf("%s %d", chaosBad, i), "model = \"broken.ply\"\nto = \"splat\"")
			add("convert", fmt.Sprintf("in vain %d", i), fmt.Sprintf("model = \"@%s %d\"\nto = \"spz\"", chaosBad, i))
		}
	}
	return b.String()
}

// plan reads the job back.
func (c *chaos) plan(document string) *spec.Plan {
	c.t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.job, err = spec.Parse(document, data); err != nil {
		c.t.Fatal(err)
	}
	plan, err := c.job.Plan()
	if err != nil {
		c.t.Fatal(err)
	}
	return plan
}

// judge looks at how every task ended.
func (c *chaos) judge(w *chaosWatch) {
	_, tasks, err := c.queue.Show(c.t.Context(), chaosJob)
	if err != nil {
		c.t.Fatal(err)
	}
	root, err := store.Open(store.Options{URL: c.outputs()})
	if err != nil {
		c.t.Fatal(err)
	}
	attempts, states := 0, map[queue.State]int{}
	for i, at := range tasks {
		attempts += at.Entry.Attempt
		states[at.State]++
		switch {
		case strings.HasPrefix(at.Name, chaosBad):
			if at.State != queue.Failed || !strings.Contains(at.Entry.Error, "broken.ply") {
				c.t.Errorf("%s: %s, %q", at.Name, at.State, at.Entry.Error)
			}
			continue
		case strings.HasPrefix(at.Name, "in vain"):
			if at.State != queue.Skipped {
				c.t.Errorf("%s: %s, %q", at.Name, at.State, at.Entry.Error)
			}
			continue
		}
		key := task.KeyOf(c.job, &w.plan.Tasks[i])
		m, err := store.Result(c.t.Context(), root, key)
		if at.State != queue.Succeeded || err != nil || m == nil || m.Contents() != at.Entry.Manifest || m.Mixed {
			c.t.Errorf("%s: %s, %q, its manifest %+v, %v, is not %s", at.Name, at.State, at.Entry.Error, m, err, at.Entry.Manifest)
		}
		if left, _ := filepath.Glob(filepath.Join(c.outputs(), key, "[do]*-*")); len(left) > 0 { // what store.Result moves out of the way
			c.t.Errorf("%s: results were damaged: %v", at.Name, left)
		}
	}
	c.t.Logf("%v, %d attempts", states, attempts)
	if attempts == len(tasks) {
		c.t.Error("no task was tried twice: nothing was tested")
	}
	w.judge(c.t)
	if said := script(c.t, "vksplat", "farm", "fsck", "--token", c.token(), "--root", "inputs="+c.dir, "--root", "outputs="+c.outputs()); !strings.Contains(said, "nothing is wrong") {
		c.t.Error(said)
	}
}

// sameOf says whether a result must have the same bytes whoever made it: others have times and folders in them.
func sameOf(name string) bool {
	return slices.Contains([]string{".ply", ".png", ".bin", ".spz"}, filepath.Ext(name)) || name == "scores.json"
}

// undisturbed runs the job on this machine alone, with its results in a folder.
func (c *chaos) undisturbed(document, whole string) {
	began := time.Now()
	if err := os.Mkdir(whole, 0o777); err != nil {
		c.t.Error(err)
	}
	// It fails, as some of the tasks must.
	said, _ := exec.CommandContext(c.t.Context(), "vksplat", "farm", "submit", document, "--local", "-o", whole, "--others", "2").CombinedOutput()
	if !strings.Contains(string(said), "tasks failed") && c.t.Context().Err() == nil {
		c.t.Errorf("the same job here:\n%s", said)
	}
	if c.t.Context().Err() == nil {
		c.t.Logf("undisturbed it takes %v", time.Since(began).Round(time.Second))
	}
}

// compare compares all results with those of the undisturbed run.
func (c *chaos) compare(document, whole string) {
	mine, err := store.Open(store.Options{URL: c.outputs()})
	if err != nil {
		c.t.Fatal(err)
	}
	other, err := store.Open(store.Options{URL: whole})
	if err != nil {
		c.t.Fatal(err)
	}
	plan, compared := c.plan(document), 0
	for i := range plan.Tasks {
		key := task.KeyOf(c.job, &plan.Tasks[i])
		a, errA := store.ReadManifest(mine, store.OutOf(key))
		b, errB := store.ReadManifest(other, store.OutOf(key))
		if errors.Is(errA, os.ErrNotExist) && errors.Is(errB, os.ErrNotExist) {
			continue
		}
		if errA != nil || errB != nil {
			c.t.Errorf("%s: %v, undisturbed %v", key, errA, errB)
			continue
		}
		of := map[string]string{}
		for _, f := range b.Files {
			of[f.Name] = f.SHA256
		}
		for _, f := range a.Files {
			if of[f.Name] == "" || sameOf(f.Name) && of[f.Name] != f.SHA256 {
				c.t.Errorf("%s: %s is %s, undisturbed %s", key, f.Name, f.SHA256, of[f.Name])
			}
			if sameOf(f.Name) {
				compared++
			}
		}
		if len(a.Files) != len(b.Files) {
			c.t.Errorf("%s: %d files, undisturbed %d", key, len(a.Files), len(b.Files))
		}
	}
	c.t.Logf("%d files have the bytes of the undisturbed run", compared)
	if compared == 0 {
		c.t.Error("no file was compared")
	}
}
