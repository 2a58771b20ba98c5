//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/worker"
)

// machine is a computer whose power can be cut. Its file system, ext4, lies on a loop device, whose file is on a second ext4: that plays the volatile cache of
// a disk, as what the loop device is given stays in memory until it is flushed. The second lies on a loop device, whose file, the disk, is all that a cut leaves.
type machine struct {
	t       *testing.T
	dir     string
	control int
}

const (
	cacheMB = 200 // of the file system that plays the cache; that of the machine has less
	ownMB   = 160
)

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }
func (m *machine) root() string            { return m.path("machine") }

// command runs a program that must do its work.
func (m *machine) command(args ...string) {
	m.t.Helper()
	if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %v\n%s", args, err, said)
	}
}

// mount mounts a file, or with no file the memory, on a folder that it makes.
func (m *machine) mount(file, on string, options string) {
	m.t.Helper()
	if err := os.MkdirAll(on, 0o777); err != nil {
		m.t.Fatal(err)
	}
	if file == "" {
		m.command("mount", "-t", "tmpfs", "-o", options, "none", on)
	} else {
		m.command("mount", "-o", "loop,"+options, file, on)
	}
	m.t.Cleanup(func() { _ = exec.Command("umount", "-l", on).Run() })
}

// newMachine makes one of three layers: the host, which can be halted, the cache and the machine's own file system. It needs the rights of root, in a mount
// namespace of its own, so that nothing stays mounted.
func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir()}
	image := func(name string, megabytes int) string {
		file := m.path(name)
		m.command("dd", "if=/dev/zero", "of="+file, "bs=1M", fmt.Sprintf("count=%d", megabytes), "status=none")
		m.command("mkfs.ext4", "-q", "-F", file)
		return file
	}
	m.mount("", m.path("memory"), "size=1g")
	m.mount(image("memory/host.img", cacheMB+60), m.path("host"), "noatime")
	m.mount(image("host/disk.img", cacheMB), m.path("cache"), "noatime,commit=300")
	m.mount(image("cache/own.img", ownMB), m.root(), "noatime")
	m.lazy(m.root())
	m.lazy(m.path("cache"))
	m.command("sync", "-f", m.root(), m.path("cache")) // from here on only what is flushed counts
	return m
}

// lazy lets a file system keep much in memory before the kernel writes it unasked: new devices may keep next to nothing.
func (m *machine) lazy(on string) {
	m.t.Helper()
	device, err := exec.Command("findmnt", "-no", "SOURCE", on).Output()
	if err != nil {
		m.t.Fatal(err)
	}
	file := filepath.Join("/sys/class/block", filepath.Base(strings.TrimSpace(string(device))), "bdi/min_ratio") // in percent of what may be dirty
	if err := os.WriteFile(file, []byte("10"), 0); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = os.WriteFile(file, []byte("0"), 0) })
}

// cut gives the machine as it starts again after its power was cut right now. This one goes on.
func (m *machine) cut(round int) *machine {
	m.t.Helper()
	disk := m.path(fmt.Sprintf("memory/after-%d.img", round))
	m.command("fsfreeze", "--freeze", m.path("host")) // nothing reaches the disk while it is copied
	said, err := exec.Command("cp", m.path("host/disk.img"), disk).CombinedOutput()
	m.command("fsfreeze", "--unfreeze", m.path("host"))
	if err != nil {
		m.t.Fatalf("%v\n%s", err, said)
	}
	after := &machine{t: m.t, dir: m.path(fmt.Sprintf("after-%d", round))}
	after.mount(disk, after.path("cache"), "noatime")
	after.mount(after.path("cache/own.img"), after.root(), "noatime")
	return after
}

// gone ends a machine that came back. Roots of the store that nobody uses any more are closed when the memory is tidied.
func (m *machine) gone() {
	m.t.Helper()
	for _, on := range []string{m.root(), m.path("cache")} {
		for try := 0; exec.Command("umount", on).Run() != nil; try++ {
			if try == 50 {
				m.t.Fatalf("%s is in use", on)
			}
			runtime.GC()
			time.Sleep(100 * time.Millisecond)
		}
	}
	if err := os.Remove(filepath.Join(filepath.Dir(m.dir), "memory", filepath.Base(m.dir)+".img")); err != nil {
		m.t.Fatal(err)
	}
}

// unsynced writes a file that is not synced, and returns its name: after a cut it must not be there with its content, or cuts lose nothing.
func (m *machine) unsynced() string {
	m.control++
	name := fmt.Sprintf("control-%d", m.control)
	if err := os.WriteFile(filepath.Join(m.root(), name), bytes.Repeat([]byte("x"), 10000), 0o666); err != nil {
		m.t.Fatal(err)
	}
	return name
}

// promises are what somebody was told that it is done.
type promises struct {
	lock     sync.Mutex
	states   map[string]string // of jobs: "submitted", or the manifest of the task that succeeded
	attempts map[string]int    // claimed
}

func newPromises() *promises {
	return &promises{states: map[string]string{}, attempts: map[string]int{}}
}

func (p *promises) change(fn func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	fn()
}

// copy is how they stand now.
func (p *promises) copy() *promises {
	c := newPromises()
	p.change(func() {
		for name, state := range p.states {
			c.states[name], c.attempts[name] = state, p.attempts[name]
		}
	})
	return c
}

// submitted says that nobody was told more of a job.
const submitted = "submitted"

// submits submits jobs of one task each, without end. Every other one is for the workers, the rest for claims.
func (p *promises) submits(ctx context.Context, q *queue.Queue) {
	for i := 0; ctx.Err() == nil; i++ {
		pool := []string{"claims", "any"}[i%2]
		plan, err := planOf(fmt.Sprintf("version = 1\nname = \"job %d\"\npool = %q\n[[task]]\nkind = \"demo\"\npoints = 200\n", i, pool))
		if err == nil && q.Submit(ctx, plan) == nil {
			p.change(func() {
				if p.states[plan.Name] == "" {
					p.states[plan.Name] = submitted
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func planOf(document string) (queue.JobPlan, error) {
	job, err := spec.Parse("test.toml", []byte(document))
	if err != nil {
		return queue.JobPlan{}, err
	}
	return worker.JobPlan(job, "tester")
}

// claims does tasks itself, without a store: what the queue acknowledges at once is known.
func (p *promises) claims(ctx context.Context, q *queue.Queue) error {
	w, err := q.Join(ctx, queue.WorkerInfo{Node: "claims", Pools: []string{"claims"}})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		l, err := w.Claim(ctx, queue.Slot{})
		if err != nil {
			continue
		}
		p.change(func() { p.attempts[l.Job] = l.Attempt })
		if l.Verify(ctx) == nil && l.Succeed(ctx, "manifest of "+l.Job) == nil {
			p.change(func() { p.states[l.Job] = "manifest of " + l.Job })
		}
	}
	return nil
}

// looks takes what tables show of the workers' tasks for a promise, too.
func (p *promises) looks(ctx context.Context, q *queue.Queue) {
	for ctx.Err() == nil {
		var open []string
		p.change(func() {
			for name, state := range p.states {
				if state == submitted {
					open = append(open, name)
				}
			}
		})
		for _, name := range open {
			if _, tasks, err := q.Show(ctx, name); err == nil && tasks[0].State == queue.Succeeded {
				p.change(func() { p.states[name] = tasks[0].Entry.Manifest })
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ofStore keeps of promises those that the store knows of.
func (p *promises) ofStore() *promises {
	kept := newPromises()
	for name, state := range p.copy().states {
		if state != submitted && !strings.HasPrefix(state, "manifest of") {
			kept.states[name] = state
		}
	}
	return kept
}

// waitForResults waits until the store has results of so many tasks.
func (p *promises) waitForResults(t *testing.T, n int) {
	t.Helper()
	for began := time.Now(); len(p.ofStore().states) < n; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the workers do nothing")
		}
	}
}

// check compares a farm that lost its power with what was promised. What workers did has results in the store.
func (p *promises) check(t *testing.T, l *lab, q *queue.Queue) {
	t.Helper()
	succeeded, running := 0, 0
	for name, want := range p.states {
		_, tasks, err := q.Show(t.Context(), name)
		if err != nil {
			t.Errorf("%s is lost: %v", name, err)
			continue
		}
		e := tasks[0].Entry
		if e.Attempt < p.attempts[name] {
			t.Errorf("%s: attempt %d, want %d", name, e.Attempt, p.attempts[name])
		}
		if want == submitted {
			running += min(e.Attempt, 1)
			continue
		}
		succeeded++
		if tasks[0].State != queue.Succeeded || e.Manifest != want {
			t.Errorf("%s: %s, %q, want %q", name, tasks[0].State, e.Manifest, want)
		} else if !strings.HasPrefix(want, "manifest of") {
			l.hasResult(name, want)
		}
	}
	t.Logf("of %d jobs %d were done, %d others begun", len(p.states), succeeded, running)
	if succeeded == 0 {
		t.Error("nothing was done")
	}
}

// hasResult wants valid results of a job's task.
func (l *lab) hasResult(name, manifest string) {
	l.t.Helper()
	root, err := store.Open(store.Options{URL: l.path("outputs")})
	if err != nil {
		l.t.Fatal(err)
	}
	m, err := store.Result(l.t.Context(), root, name+"/demo")
	if err != nil || m == nil || m.Contents() != manifest {
		l.t.Errorf("%s: its results are %+v, %v, not %s", name, m, err, manifest)
	}
}

// TestPowerCut cuts the power of a machine with a server, workers and their store at random moments: what was acknowledged before is there when it starts
// again, and a queue that is lost is filled from the store. Metadata that was not synced may be there: ext4 writes that of all files together.
func TestPowerCut(t *testing.T) {
	if !apart(t) {
		return
	}
	cuts, seed := 3, uint64(7)
	if os.Getenv("VKSPLAT_LONG") == "1" {
		cuts, seed = 25, uint64(time.Now().UnixNano())
	}
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	m := newMachine(t)
	l := newLabIn(t, m.root())
	l.start("server")
	q := l.queue()
	l.start("one")
	l.start("two")
	ctx, cancel := context.WithCancel(t.Context())
	p := newPromises()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { p.submits(ctx, q) })
	group.Go(func() { p.looks(ctx, q) })
	group.Go(func() {
		if err := p.claims(ctx, q); err != nil {
			t.Error(err)
		}
	})
	for round := range cuts {
		p.waitForResults(t, round+1)
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		control := m.unsynced()
		known := p.copy()
		after := m.cut(round)
		if data, err := os.ReadFile(filepath.Join(after.root(), control)); err == nil && len(data) > 0 {
			t.Error("a cut loses nothing: a file that was not synced is there")
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) { again(t, after.root(), known) })
		after.gone()
	}
}

// again starts a server on what a cut left, then one that has lost its queue.
func again(t *testing.T, dir string, known *promises) {
	l := newLabIn(t, dir)
	l.start("server")
	known.check(t, l, l.queue())
	l.kill("server", syscall.SIGKILL)
	<-l.ended["server"]
	if err := os.RemoveAll(l.path("server")); err != nil {
		t.Fatal(err)
	}
	l.start("server")
	q := l.queue()
	data, err := os.ReadFile(l.path("roots.toml"))
	if err != nil {
		t.Fatal(err)
	}
	roots, err := store.ReadRoots(l.path("roots.toml"), data)
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := worker.NewInventory(roots)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Fsck(t.Context(), inventory, true); err != nil {
		t.Fatal(err)
	}
	known.ofStore().check(t, l, q)
	for name := range l.parts {
		l.kill(name, syscall.SIGKILL)
		<-l.ended[name]
	}
}

const apartVariable = "FARM_LAB_APART"

// apart runs a test again in a process with mounts of its own, and says whether this is that process.
func apart(t *testing.T) bool {
	if os.Getenv(apartVariable) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can mount what loses its power")
	}
	for _, need := range []string{"unshare", "mkfs.ext4", "fsfreeze", "mount"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skip(need + " is not installed (Debian: apt-get install util-linux mount e2fsprogs)")
		}
	}
	file := filepath.Join(t.TempDir(), "img")
	if err := errors.Join(os.WriteFile(file, nil, 0o666), os.Truncate(file, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("unshare", "-m", "sh", "-c", `mkfs.ext4 -q -F "$0" && mount -o loop "$0" /mnt`, file).CombinedOutput(); err != nil {
		t.Skipf("no loop device can be mounted here: %s", said)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), apartVariable+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return false
}
