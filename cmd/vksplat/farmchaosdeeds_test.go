//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/lab"
	"vksplat/farm/queue"
	"vksplat/farm/spec"
)

// inNamespace runs the test in a process that may mount.
func inNamespace(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownProcess+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// chaos is a farm of processes that are disturbed.
type chaos struct {
	t       *testing.T
	dir     string
	random  *rand.Rand
	mounted bool // disks can be full and read-only
	server  *chaosPart
	workers []*chaosPart
	network *lab.Proxy // of every other worker
	queue   *queue.Queue
	job     *spec.Job
	watched *chaosWatch
	done    map[string]int
}

// chaosPart is a process that is started again whenever it ends, as systemd does.
type chaosPart struct {
	name    string
	down    sync.Mutex // held while it shall not start again
	lock    sync.Mutex
	process *os.Process
	over    bool
	group   sync.WaitGroup
}

func (c *chaos) outputs() string         { return filepath.Join(c.dir, "outputs") }
func (c *chaos) token() string           { return filepath.Join(c.dir, "server", "admin.token") }
func (c *chaos) work(name string) string { return filepath.Join(c.dir, "work-"+name) }
func (c *chaos) small(name string) string {
	return "size=" + map[bool]string{true: "64m", false: "256m"}[strings.HasPrefix(name, "work")]
}

// newChaos starts a server and workers. The disks of the results and of the first worker are small.
func newChaos(t *testing.T, random *rand.Rand) *chaos {
	c := &chaos{t: t, dir: t.TempDir(), random: random, mounted: os.Getenv(ownProcess) != "", done: map[string]int{}}
	t.Setenv("XDG_STATE_HOME", filepath.Join(c.dir, "state"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(c.dir, "broken.ply"), []byte("ply\nthis is none\n"), 0o666))
	if !c.mounted {
		t.Log("no disk is full or read-only: this user has no mount namespaces")
	}
	for _, name := range []string{"outputs", "work-w0"} {
		dir := filepath.Join(c.dir, name)
		must(os.Mkdir(dir, 0o777))
		if c.mounted {
			must(syscall.Mount("none", dir, "tmpfs", 0, c.small(name)))
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		}
	}
	address := freeAddress(t)
	server := filepath.Join(c.dir, "server")
	c.server = c.start("server", "serve", "--dir", server, "--listen", address, "--lease", chaosLease.String(), "--verbose")
	for began := time.Now(); c.queue == nil; time.Sleep(50 * time.Millisecond) {
		if token, err := queue.ReadToken(c.token()); err == nil {
			if nc, err := queue.Dial(token, "test"); err == nil {
				t.Cleanup(nc.Close)
				if q, err := queue.Connect(t.Context(), nc, queue.Options{Version: programVersion()}); err == nil { // it may not have set up the farm yet
					c.queue = q
				}
			}
		}
		if time.Since(began) > time.Minute {
			t.Fatal("no server: ", c.log("server"))
		}
	}
	var err error
	c.network, err = lab.NewProxy(address)
	must(err)
	t.Cleanup(func() { _ = c.network.Close() })
	for i := range chaosWorkers {
		name := fmt.Sprintf("w%d", i)
		token := filepath.Join(c.dir, name+".token")
		vksplat(t, "farm", "token", "--dir", server, "--role", "worker", "--name", name, "-o", token)
		if i%2 == 0 {
			must(redirect(token, c.network.Addr()))
		}
		// Two of them share their devices, as on one machine.
		c.workers = append(c.workers, c.start(name, "worker", "--token", token, "--root", "inputs="+c.dir, "--root", "outputs="+c.outputs(), "--name", name,
			"--work", c.work(name), "--locks", filepath.Join(c.dir, "locks-"+strconv.Itoa(max(i, 1))), "--verbose"))
	}
	return c
}

// redirect makes a token lead to another address.
func redirect(file, address string) error {
	token, err := queue.ReadToken(file)
	if err != nil {
		return err
	}
	token.URL = "nats://" + address
	data, err := json.Marshal(token)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func (c *chaos) logFile(name string) string { return filepath.Join(c.dir, name+".log") }

// log is the end of what a part said.
func (c *chaos) log(name string) string {
	data, _ := os.ReadFile(c.logFile(name))
	return fmt.Sprintf("%s:\n%s", name, data[max(0, len(data)-4000):])
}

// start starts a part, again and again until the test ends.
func (c *chaos) start(name string, args ...string) *chaosPart {
	p := &chaosPart{name: name}
	log, err := os.OpenFile(c.logFile(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		c.t.Fatal(err)
	}
	p.group.Go(func() {
		defer log.Close()
		for p.once(log, append([]string{"farm"}, args...)) {
			time.Sleep(200 * time.Millisecond)
		}
	})
	c.t.Cleanup(func() {
		p.lock.Lock()
		p.over = true
		p.lock.Unlock()
		p.signal(syscall.SIGKILL)
		p.group.Wait()
		if c.t.Failed() {
			c.t.Log(c.log(name))
		}
	})
	return p
}

// once runs it once, and says whether it shall run again.
func (p *chaosPart) once(log *os.File, args []string) bool {
	cmd := exec.Command("vksplat", args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !p.begin(cmd) {
		return false
	}
	_ = cmd.Wait() // who kills it knows
	return true
}

// begin starts a process of the part, unless the test is over.
func (p *chaosPart) begin(cmd *exec.Cmd) bool {
	p.down.Lock()
	defer p.down.Unlock()
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.over || cmd.Start() != nil {
		return false
	}
	p.process = cmd.Process
	return true
}

func (p *chaosPart) signal(s syscall.Signal) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.process != nil {
		_ = p.process.Signal(s) // it may have ended
	}
}

func (p *chaosPart) pid() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.process.Pid
}

// below lists the processes that descend from one, by generation.
func below(pid int) (generations [][]int) {
	for parents := []int{pid}; ; {
		var next []int
		for _, parent := range parents {
			next = append(next, children(parent)...)
		}
		if len(next) == 0 {
			return generations
		}
		generations, parents = append(generations, next), next
	}
}

// killBelow kills a process of a generation below a part: 0 is run-task, 1 its child.
func (c *chaos) killBelow(p *chaosPart, generation int) bool {
	all := below(p.pid())
	if len(all) <= generation {
		return false
	}
	pids := all[generation]
	return syscall.Kill(pids[c.random.IntN(len(pids))], syscall.SIGKILL) == nil
}

// stop halts processes for longer than a lease.
func stop(pids []int) bool {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
	}
	time.Sleep(chaosLease * 3 / 2)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return len(pids) > 0
}

// fill takes all room of a disk for a while.
func (c *chaos) fill(dir string) bool {
	ballast := filepath.Join(dir, ".ballast")
	f, err := os.Create(ballast)
	for piece := 1 << 20; err == nil && piece >= 1<<10; { // ever smaller ones
		if _, writeErr := f.Write(make([]byte, piece)); errors.Is(writeErr, syscall.ENOSPC) {
			piece /= 4
		} else {
			err = writeErr
		}
	}
	err = errors.Join(err, f.Close())
	from := time.Now()
	time.Sleep(time.Second + time.Duration(c.random.IntN(2000))*time.Millisecond)
	if err := errors.Join(err, os.Remove(ballast)); err != nil {
		c.t.Errorf("fill %s: %v", dir, err)
	}
	c.watched.outage(from, time.Now())
	return true
}

// lock makes the store read-only for a while.
func (c *chaos) lock() bool {
	remount := func(flags uintptr) error {
		return syscall.Mount("", c.outputs(), "", syscall.MS_REMOUNT|syscall.MS_BIND|flags, "")
	}
	err := remount(syscall.MS_RDONLY)
	for try := 0; errors.Is(err, syscall.EBUSY) && try < 300; try++ { // somebody writes right now
		time.Sleep(10 * time.Millisecond)
		err = remount(syscall.MS_RDONLY)
	}
	if errors.Is(err, syscall.EBUSY) {
		return false
	}
	from := time.Now()
	time.Sleep(time.Second + time.Duration(c.random.IntN(2000))*time.Millisecond)
	if err := errors.Join(err, remount(0)); err != nil {
		c.t.Errorf("make the store read-only and back: %v", err)
	}
	c.watched.outage(from, time.Now())
	return true
}

// deeds are what is done to a farm. They say whether it was done.
var deeds = []struct {
	name  string
	mount bool
	do    func(c *chaos, worker *chaosPart) bool
}{
	{"worker killed", false, func(_ *chaos, w *chaosPart) bool { w.signal(syscall.SIGKILL); return true }},
	{"server killed", false, func(c *chaos, _ *chaosPart) bool { c.server.signal(syscall.SIGKILL); return true }},
	{"run-task killed", false, func(c *chaos, w *chaosPart) bool { return c.killBelow(w, 0) }},
	{"its child killed", false, func(c *chaos, w *chaosPart) bool { return c.killBelow(w, 1) }},
	{"worker stopped", false, func(_ *chaos, w *chaosPart) bool { return stop([]int{w.pid()}) }},
	{"machine stopped", false, func(_ *chaos, w *chaosPart) bool {
		pids := []int{w.pid()}
		for _, generation := range below(w.pid()) {
			pids = append(pids, generation...)
		}
		return stop(pids)
	}},
	{"network frozen", false, func(c *chaos, _ *chaosPart) bool { c.network.Freeze(chaosLease*3/2, false); return true }},
	{"network cut", false, func(c *chaos, _ *chaosPart) bool { c.network.Freeze(chaosLease/2, true); return true }},
	{"store full", true, func(c *chaos, _ *chaosPart) bool { return c.fill(c.outputs()) }},
	{"work folder full", true, func(c *chaos, _ *chaosPart) bool { return c.fill(c.work("w0")) }},
	{"store read-only", true, func(c *chaos, _ *chaosPart) bool { return c.lock() }},
}

// release ends quarantines, as a person would who knows why so much fails.
func (c *chaos) release(ctx context.Context) {
	for ctx.Err() == nil {
		for _, w := range c.workers {
			_ = c.queue.Undrain(ctx, w.name) // the next time
		}
		time.Sleep(time.Second)
	}
}

// disturb does deeds, each as often as others, until the job has ended.
func (c *chaos) disturb(ctx context.Context, most int, done <-chan error) {
	go c.release(ctx)
	var order []int
	for did := 0; ; {
		select {
		case err := <-done:
			if err != nil {
				status, tasks, _ := c.queue.Show(context.WithoutCancel(ctx), chaosJob)
				for _, t := range tasks {
					if !t.State.Ended() {
						c.t.Logf("%s: %s %+v", t.Name, t.State, t.Entry)
					}
				}
				c.t.Errorf("the job does not end: %v, %v; disturbed by %v", err, status.Counts, c.done)
			}
			return
		case <-time.After(time.Duration(200+c.random.IntN(1000)) * time.Millisecond):
		}
		if did >= most {
			continue
		}
		if len(order) == 0 {
			order = c.random.Perm(len(deeds))
		}
		deed := deeds[order[0]]
		order = order[1:]
		if deed.mount && !c.mounted {
			continue
		}
		if deed.do(c, c.workers[c.random.IntN(len(c.workers))]) {
			c.done[deed.name]++
			did++
		}
	}
}
