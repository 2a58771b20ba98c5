//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// chaos is a job that is run again and again, and disturbed.
type chaos struct {
	t        *testing.T
	dir      string
	document string
	random   *rand.Rand
	mounted  bool // disks can be full
	job      *spec.Job
	plan     *spec.Plan
	done     map[string]int // deeds

	lock    sync.Mutex
	runs    int
	tried   map[string]int               // attempts, by task
	last    map[string]*local.TaskStatus // by task
	watched map[string][]*chaosAttempt   // attempts at a training, by task
	outages []span                       // of the store or the work folder

	process *os.Process
	over    chan struct{} // closed when the process has ended
	code    int
}

func (c *chaos) outputs() string { return filepath.Join(c.dir, "outputs") }
func (c *chaos) work() string    { return filepath.Join(c.dir, "work") }

// newChaos makes the folders. The disks of the results and of the work are small.
func newChaos(t *testing.T, random *rand.Rand, document string) *chaos {
	c := &chaos{t: t, dir: t.TempDir(), random: random, mounted: os.Getenv(ownProcess) != "", done: map[string]int{},
		tried: map[string]int{}, last: map[string]*local.TaskStatus{}, watched: map[string][]*chaosAttempt{}}
	t.Setenv("XDG_STATE_HOME", filepath.Join(c.dir, "state"))
	c.document = filepath.Join(c.dir, "job.toml")
	must.Do(t, errors.Join(os.WriteFile(c.document, []byte(document), 0o666), os.WriteFile(filepath.Join(c.dir,
		"broken.ply"), []byte("ply\nthis is none\n"), 0o666)))
	if !c.mounted {
		t.Log("no disk is full: this user has no mount namespaces")
	}
	for dir, size := range map[string]string{c.outputs(): "size=256m", c.work(): "size=64m"} {
		must.Do(t, os.Mkdir(dir, 0o777))
		if c.mounted {
			must.Do(t, syscall.Mount("none", dir, "tmpfs", 0, size))
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		}
	}
	var err error
	if c.job, err = spec.Parse(c.document, []byte(document)); err == nil {
		c.plan, err = c.job.Plan()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the job, and listens.
func (c *chaos) start() {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command("vksplat", "farm", "run", c.document, "-o", c.outputs(), "--work", c.work(), "--progress",
		"json")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.lock.Lock()
	c.runs++
	for _, last := range c.last {
		if last.State == local.Running { // it ended with the run before: running again is another attempt
			last.State = ""
		}
	}
	before := map[string]bool{} // what has results already
	for i := range c.plan.Tasks {
		name := c.plan.Tasks[i].Name
		_, err := os.Stat(filepath.Join(c.outputs(), chaosJob, filepath.FromSlash(name), "out", "MANIFEST.json"))
		before[name] = err == nil
	}
	c.lock.Unlock()
	over := make(chan struct{})
	c.process, c.over = cmd.Process, over
	go func() {
		defer close(over)
		c.listen(said, before)
		_ = cmd.Wait() // its code says enough
		c.code = cmd.ProcessState.ExitCode()
		_ = log.Close()
	}()
}

// listen takes in what a run says, and wants nothing to run that was done when it began.
func (c *chaos) listen(said io.Reader, before map[string]bool) {
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Event string `json:"event"`
			local.TaskStatus
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Event != "task" {
			continue
		}
		c.lock.Lock()
		t := line.TaskStatus
		if t.State == local.Running && before[t.Task] {
			c.t.Errorf("run %d runs %s again, which was done", c.runs, t.Task)
			before[t.Task] = false
		}
		if was := c.last[t.Task]; t.State == local.Running && (was == nil || was.State != local.Running) {
			c.tried[t.Task]++
		}
		c.last[t.Task] = &t
		c.hear(&t)
		c.lock.Unlock()
	}
}

// killed kills the run, and waits for its end.
func (c *chaos) killed() {
	_ = c.process.Signal(syscall.SIGKILL) // it may have ended
	<-c.over
	for _, t := range c.last { // nobody says how their attempts ended
		if t.State == local.Running {
			t.State = local.Ready
		}
	}
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
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	from := time.Now()
	time.Sleep(time.Second + time.Duration(c.random.IntN(2000))*time.Millisecond)
	if err := errors.Join(err, os.Remove(ballast)); err != nil {
		c.t.Errorf("fill %s: %v", dir, err)
	}
	c.lock.Lock()
	c.outages = append(c.outages, span{from, time.Now()})
	c.lock.Unlock()
	return true
}

// deeds are what is done to a job that runs. They say whether it was done.
var deeds = []struct {
	name  string
	mount bool
	do    func(c *chaos) bool
}{
	{"run killed", false, func(c *chaos) bool { c.killed(); return true }},
	{"run killed, its work folder lost", false, func(c *chaos) bool {
		c.killed()
		entries, err := os.ReadDir(c.work())
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.work(), e.Name())))
		}
		if err != nil {
			c.t.Errorf("lose the work folder: %v", err)
		}
		return true
	}},
	{"child killed", false, func(c *chaos) bool {
		for { // a task may just be fetching its inputs
			if pids := children(c.process.Pid); len(pids) > 0 {
				return syscall.Kill(pids[c.random.IntN(len(pids))], syscall.SIGKILL) == nil
			}
			select {
			case <-c.over:
				return false
			case <-time.After(5 * time.Millisecond):
			}
		}
	}},
	{"run stopped", false, func(c *chaos) bool {
		if c.process.Signal(syscall.SIGTERM) != nil {
			return false
		}
		<-c.over
		return true
	}},
	{"store full", true, func(c *chaos) bool { return c.fill(c.outputs()) }},
	{"work folder full", true, func(c *chaos) bool { return c.fill(c.work()) }},
}

// await polls until what the run reports satisfies a condition, which is called with lock held. It fails the test if
// the run ends before that, or at the deadline.
func (c *chaos) await(what string, deadline time.Time, reached func() bool) {
	poll := func() bool {
		c.lock.Lock()
		defer c.lock.Unlock()
		return reached()
	}
	for !poll() {
		select {
		case <-c.over:
			c.t.Fatalf("await %s: the run ended with exit code %d", what, c.code)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("await %s: not reported within the time allowed", what)
		}
	}
}

// interrupt kills the run once a training has a checkpoint in the store, restarts it, and waits until the training has
// resumed. The training must be too long to finish meanwhile.
func (c *chaos) interrupt(deadline time.Time) {
	trained := func(attempts int) func() bool {
		return func() bool {
			for name, list := range c.watched {
				if len(list) >= attempts && list[len(list)-1].start() > 0 && c.stored(name) > 0 {
					return true
				}
			}
			return false
		}
	}
	c.await("a checkpoint", deadline, trained(1))
	c.killed()
	c.start()
	c.await("a resumed training", deadline, trained(2))
}

// disturb kills the run at its first task, then does deeds, each as often as others, until the job is done. A run that
// has ended is started again, unless it has done all there is.
func (c *chaos) disturb(most int, deadline time.Time) {
	var order []int
	c.start()
	defer c.killed()
	c.await("a task", deadline, func() bool { return len(c.tried) > 0 })
	c.killed()
	c.start()
	c.done[deeds[0].name]++
	for did := 1; ; {
		select {
		case <-c.over:
			if c.code == fault.ExitFailure { // some tasks must fail
				return
			}
			c.start()
		case <-time.After(time.Duration(300+c.random.IntN(900)) * time.Millisecond):
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			c.t.Fatalf("the job does not end; disturbed by %v\n%s", c.done, log[max(0, len(log)-4000):])
		}
		if did >= most {
			continue
		}
		if len(order) == 0 {
			order = c.random.Perm(len(deeds))
		}
		deed := deeds[order[0]]
		order = order[1:]
		if (!deed.mount || c.mounted) && deed.do(c) {
			c.done[deed.name]++
			did++
		}
	}
}
