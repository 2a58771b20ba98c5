//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// Sizes of TestFarmChaos.
type chaosSize struct {
	stubs, trainings, steps int
	deeds                   int // at most
	most                    time.Duration
}

const (
	chaosJob    = "chaos"
	chaosUpload = time.Second // between two uploads of checkpoints
	chaosBad    = "bad model" // what tasks that fail are called
)

// ownProcess is set where a test runs in a process of its own.
const ownProcess = "VKSPLAT_TEST_PROCESS"

// TestFarmChaos runs a job of trainings, renders, evaluations and small tasks of the processor by farm run, and
// disturbs it until it is done: see deeds. In the end every task has one valid manifest or a stated failure, nothing
// was run again that was done, no training lost more than a checkpoint interval, and all results have the bytes of the
// same job that nobody disturbed. VKSPLAT_LONG=1 takes 300 tasks, and a new seed; VKSPLAT_TEST_SEED repeats one.
func TestFarmChaos(t *testing.T) {
	needDevice(t)
	if os.Getenv(ownProcess) == "" && hasNamespaces() {
		inNamespace(t)
		return
	}
	size, seed := chaosSize{stubs: 6, trainings: 2, steps: 250, deeds: 8, most: 5 * time.Minute}, uint64(7)
	if filetest.Long() {
		size, seed = chaosSize{stubs: 200, trainings: 40, steps: 300, deeds: 300,
			most: time.Hour}, uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("VKSPLAT_TEST_SEED"); text != "" {
		seed = must.Get(strconv.ParseUint(text, 10, 64))(t)
	}
	t.Log("seed", seed)
	c := newChaos(t, rand.New(rand.NewPCG(seed, 0)), size.document())
	whole := filepath.Join(c.dir, "undisturbed")
	began := time.Now()
	// some tasks must
	if said, _ := exec.CommandContext(t.Context(), "vksplat", "farm", "run", c.document, "-o",
		whole).CombinedOutput(); !strings.Contains(string(said), "failed: "+chaosBad) {
		t.Fatalf("the same job undisturbed:\n%s", said)
	}
	t.Logf("undisturbed it takes %v", time.Since(began).Round(time.Second))
	began = time.Now()
	c.disturb(size.deeds, began.Add(size.most))
	t.Logf("done in %v, disturbed by %v", time.Since(began).Round(time.Second), c.done)
	if !t.Failed() {
		c.judge()
		c.compare(whole)
	}
}

// TestFarmSteps kills a run under a training that does not end, and wants the next run to resume it from the newest
// checkpoint in the store, with no more work repeated than checkpoint intervals allow. VKSPLAT_LONG=1 kills runs and
// their children at random moments until twelve takeovers could have lost more than that; half of the runs lose their
// work folder. No disk is full meanwhile, so every takeover is judged.
func TestFarmSteps(t *testing.T) {
	needDevice(t)
	seed := uint64(7)
	if filetest.Long() {
		seed = uint64(time.Now().UnixNano())
	}
	t.Log("seed", seed)
	c := newChaos(t, rand.New(rand.NewPCG(seed, 0)),
		fmt.Sprintf("version = 1\nname = %q\n[retry]\nmax_attempts = 1000\nbackoff = \"100ms\"\nbackoff_max = "+
			"\"1s\"\n[limits]\ncheckpoint_every = %q\n"+
			"[[task]]\nkind = \"demo\"\nid = \"made\"\nimages = 6\nsize = [48, 48]\npoints = 200\n[[task]]\nkind = "+
			"\"train\"\nid = \"model\"\nsource = \"@made\"\nset.iterations = 1000000\n", chaosJob, chaosUpload))
	c.mounted = false
	c.start()
	deadline := time.Now().Add(20 * time.Minute)
	if filetest.Long() {
		c.killOften(deadline)
	} else {
		c.interrupt(deadline)
	}
	c.killed()
	c.judgeTakeovers(1)
}

// killOften does the first three deeds at random moments until enough takeovers could have lost too much work.
func (c *chaos) killOften(deadline time.Time) {
	const telling = 12
	for c.telling() < telling && time.Now().Before(deadline) {
		time.Sleep(chaosLost + time.Duration(c.random.IntN(6000))*time.Millisecond)
		if deed := deeds[c.random.IntN(3)]; deed.do(c) {
			c.done[deed.name]++
		}
		select {
		case <-c.over:
			c.start()
		default:
		}
	}
	c.t.Log("disturbed by", c.done)
	if got := c.telling(); got < telling {
		c.t.Errorf("%d takeovers could have lost too much work, want %d", got, telling)
	}
}

// inNamespace runs the test in a process that may mount.
func inNamespace(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownProcess+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must.Do(t, cmd.Run())
}

// document is the job. Of ten tasks, six are small pictures drawn by the processor, the others are trainings and what
// is made of their models; a few fail.
func (s *chaosSize) document() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"version = 1\nname = %q\n[retry]\nmax_attempts = 1000\nbackoff = \"100ms\"\nbackoff_max = "+
			"\"1s\"\n[limits]\nstall_timeout = \"1m\"\ncheckpoint_every = %q\n", chaosJob, chaosUpload)
	add := func(kind, id, rest string) { fmt.Fprintf(&b, "[[task]]\nkind = %q\nid = %q\n%s\n", kind, id, rest) }
	for i := range min(4, s.trainings) {
		add("demo", fmt.Sprintf("made %d", i), fmt.Sprintf("images = 6\nsize = [48, 48]\npoints = %d", 200+100*i))
	}
	for i := range max(s.stubs, s.trainings) {
		if i < s.trainings {
			model := fmt.Sprintf("model %d", i)
			add("train", model,
				fmt.Sprintf("source = \"@made %d\"\nset = { iterations = %d, seed = %d, eval = true }", i%4, s.steps,
					i))
			switch i % 4 {
			case 0, 3:
				add("render", fmt.Sprintf("film %d", i),
					fmt.Sprintf("model = \"@%s\"\ntrajectory = \"orbit\"\nseconds = 1\nfps = 8\nsize = [48, 32]",
						model))
			case 1:
				add("eval", fmt.Sprintf("scores %d", i), fmt.Sprintf("models = [\"@%s\"]", model))
			default:
				add("convert", fmt.Sprintf("web %d", i), fmt.Sprintf("model = \"@%s\"\nto = \"spz\"", model))
			}
		}
		if i < s.stubs {
			add("demo", fmt.Sprintf("stub %d", i), fmt.Sprintf("images = 3\nsize = [32, 32]\npoints = 20\nseed = %d",
				i))
		}
		if i%50 == 5 {
			add("convert", fmt.Sprintf("%s %d", chaosBad, i), "model = \"broken.ply\"\nto = \"splat\"")
			add("convert", fmt.Sprintf("in vain %d", i), fmt.Sprintf("model = \"@%s %d\"\nto = \"spz\"", chaosBad, i))
		}
	}
	return b.String()
}

// judge looks at how every task ended.
func (c *chaos) judge() {
	root, err := store.Open(store.Options{URL: c.outputs()})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range c.plan.Tasks {
		name := c.plan.Tasks[i].Name
		last := c.last[name]
		switch {
		case last == nil:
			c.t.Errorf("%s: nothing was said of it", name)
			continue
		case strings.HasPrefix(name, chaosBad):
			if last.State != "failed" || !strings.Contains(last.Error, "broken.ply") {
				c.t.Errorf("%s: %s, %q", name, last.State, last.Error)
			}
			continue
		case strings.HasPrefix(name, "in vain"):
			if last.State != "skipped" {
				c.t.Errorf("%s: %s, %q", name, last.State, last.Error)
			}
			continue
		}
		key := task.KeyOf(c.job, &c.plan.Tasks[i])
		m, err := store.Result(c.t.Context(), root, key)
		if last.State != "done" || err != nil || m == nil || m.Mixed || m.Hash != c.plan.Hash(i) {
			c.t.Errorf("%s: %s, %q, its manifest %+v, %v", name, last.State, last.Error, m, err)
		}
		// half commits, and what store.Result moves out of the way
		if left, _ := filepath.Glob(filepath.Join(c.outputs(), key, "tmp", "*")); len(left) > 0 {
			c.t.Errorf("%s: this is left: %v", name, left)
		}
	}
	repeated := 0 // attempts at tasks that had been tried before
	for _, n := range c.tried {
		repeated += n - 1
	}
	c.t.Logf("%d runs, %d tasks tried, %d attempts repeated", c.runs, len(c.tried), repeated)
	if c.runs < 2 || repeated == 0 {
		c.t.Error("nothing was tried twice: nothing was tested")
	}
	least := 0 // the short form's trainings may end before they are disturbed: see TestFarmSteps
	if filetest.Long() {
		least = 1
	}
	c.judgeTakeovers(least)
	if said := script(c.t, "vksplat", "farm", "fsck", filepath.Join(c.outputs(), chaosJob)); !strings.Contains(said,
		"with whole results") {
		c.t.Error(said)
	}
}

// sameOf says whether a result must have the same bytes whoever made it: others have times in them.
func sameOf(name string) bool {
	return slices.Contains([]string{".ply", ".png", ".bin", ".spz"}, filepath.Ext(name)) ||
		slices.Contains([]string{"scores.json", "capture.json", "cfg_args"}, name)
}

// compare compares all results with those of the undisturbed run.
func (c *chaos) compare(whole string) {
	mine, err := store.Open(store.Options{URL: c.outputs()})
	if err != nil {
		c.t.Fatal(err)
	}
	other, err := store.Open(store.Options{URL: whole})
	if err != nil {
		c.t.Fatal(err)
	}
	plan, compared := c.plan, 0
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
