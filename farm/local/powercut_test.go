//go:build linux

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// machine is a computer whose power can be cut. Its file system, ext4, lies on a loop device, whose file is on a second
// ext4: that plays the volatile cache of a disk, as what the loop device is given stays in memory until it is flushed.
// The second lies on a loop device, whose file, the disk, is all that a cut leaves.
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

// newMachine makes one of three layers: the host, which can be halted, the cache and the machine's own file system. It
// needs the rights of root, in a mount namespace of its own, so that nothing stays mounted.
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

// lazy lets a file system keep much in memory before the kernel writes it unasked: new devices may keep next to
// nothing.
func (m *machine) lazy(on string) {
	m.t.Helper()
	device, err := exec.Command("findmnt", "-no", "SOURCE", on).Output()
	if err != nil {
		m.t.Fatal(err)
	}
	// in percent of what may be dirty
	file := filepath.Join("/sys/class/block", filepath.Base(strings.TrimSpace(string(device))), "bdi/min_ratio")
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

// gone ends a machine that came back. Roots of the store that nobody uses any more are closed when the memory is
// tidied.
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

// unsynced writes a file that is not synced, and returns its name: after a cut it must not be there with its content,
// or cuts lose nothing.
func (m *machine) unsynced() string {
	m.control++
	name := fmt.Sprintf("control-%d", m.control)
	if err := os.WriteFile(filepath.Join(m.root(), name), bytes.Repeat([]byte("x"), 10000), 0o666); err != nil {
		m.t.Fatal(err)
	}
	return name
}

// TestPowerCut cuts the power of a machine that runs a job at random moments: what was said to be done, or to have
// failed, before is so when it starts again, and the same call does the rest, and nothing twice. Metadata that was not
// synced may be there: ext4 writes that of all files together.
func TestPowerCut(t *testing.T) {
	if !apart(t) {
		return
	}
	cuts, seed := 3, uint64(7)
	if filetest.Long() {
		cuts, seed = 25, uint64(time.Now().UnixNano())
	}
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	m := newMachine(t)
	p := &promises{states: map[string]State{}}
	r := m.rig(t, cuts)
	var cut atomic.Int32 // rounds that are over
	r.do = inRounds(&cut, pretends(250*time.Millisecond))
	r.reported = p.take
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.run(ctx)
		ended <- err
	}()
	for round := range cuts {
		for began := time.Now(); len(p.copy()) < 10*(round+1); time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal("nothing is done")
			}
		}
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		control := m.unsynced()
		known := p.copy()
		after := m.cut(round)
		if data, err := os.ReadFile(filepath.Join(after.root(), control)); err == nil && len(data) > 0 {
			t.Error("a cut loses nothing: a file that was not synced is there")
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) { again(t, after, cuts, known) })
		after.gone()
		cut.Add(1)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// rig is one with its store and work on the machine, and a job of many small tasks.
func (m *machine) rig(t *testing.T, cuts int) *rig {
	r := newRig(t, fmt.Sprintf("[[task]]\nkind = \"demo\"\nid = \"d\"\nmatrix.seed = [%s]\n",
		strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers(roundTasks*cuts)), " ", ", "), "[]")))
	outputs := filepath.Join(m.root(), "outputs")
	must.Do(t, os.MkdirAll(outputs, 0o777))
	r.root = must.Get(store.Open(store.Options{URL: outputs}))(t)
	r.o.Roots["outputs"] = store.Options{URL: outputs}
	r.o.Others = 3
	return r
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// pretends fails every seventh task, and takes some time for the others.
func pretends(took time.Duration) func(context.Context, task.Options, string) error {
	return func(ctx context.Context, o task.Options, _ string) error {
		if o.Index%7 == 6 {
			return dataError("one of seven")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(took):
			return nil
		}
	}
}

// roundTasks is how many tasks there are for each cut.
const roundTasks = 60

// inRounds has the last tasks of each round wait until it is over, so that each cut comes before the end.
func inRounds(over *atomic.Int32, do func(context.Context, task.Options, string) error) func(context.Context,
	task.Options, string) error {
	return func(ctx context.Context, o task.Options, name string) error {
		for o.Index >= roundTasks*(int(over.Load())+1)-10 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * time.Millisecond):
			}
		}
		return do(ctx, o, name)
	}
}

// promises are how tasks ended, as it was said.
type promises struct {
	lock   sync.Mutex
	states map[string]State
}

func (p *promises) take(t TaskStatus) {
	if t.State != Done && t.State != Failed {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.states[t.Task] = t.State
}

func (p *promises) copy() map[string]State {
	p.lock.Lock()
	defer p.lock.Unlock()
	return maps.Clone(p.states)
}

// again runs the job on what a cut left.
func again(t *testing.T, after *machine, cuts int, known map[string]State) {
	r := after.rig(t, cuts)
	r.do = pretends(0)
	s := must.Get(r.run(t.Context()))(t)
	for _, name := range r.began {
		if known[name] != "" {
			t.Errorf("%s was %s, and ran again", name, known[name])
		}
	}
	for i := range s.Tasks {
		at := &s.Tasks[i]
		if was := known[at.Task]; was != "" && was != at.State {
			t.Errorf("%s was %s, and is %s", at.Task, was, at.State)
		}
		if want := map[bool]State{true: Failed, false: Done}[i%7 == 6]; at.State != want {
			t.Errorf("%s is %s, want %s", at.Task, at.State, want)
		}
		m, err := store.Result(t.Context(), r.root, "j/"+at.Task)
		if at.State == Done && (err != nil || m == nil) {
			t.Errorf("%s: its results are %+v, %v", at.Task, m, err)
		}
	}
	if len(r.began) == 0 {
		t.Error("the cut came when all was done: it tells nothing")
	}
	t.Logf("of %d tasks %d had ended before the cut, %d ran after it", len(s.Tasks), len(known), len(r.began))
}

const apartVariable = "VKSPLAT_LOCAL_APART"

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
	must.Do(t, errors.Join(os.WriteFile(file, nil, 0o666), os.Truncate(file, 8<<20)))
	if said, err := exec.Command("unshare", "-m", "sh", "-c", `mkfs.ext4 -q -F "$0" && mount -o loop "$0" /mnt`,
		file).CombinedOutput(); err != nil {
		t.Skipf("no loop device can be mounted here: %s", said)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), apartVariable+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must.Do(t, cmd.Run())
	return false
}
