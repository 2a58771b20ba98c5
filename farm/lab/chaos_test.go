//go:build linux

package lab

import (
	"bytes"
	"context"
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

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/worker"
)

// lab is a farm of processes.
type lab struct {
	t       *testing.T
	program string // of all parts
	dir     string
	listen  string
	lock    sync.Mutex
	parts   map[string]*exec.Cmd
	ended   map[string]chan struct{}
}

func newLab(t *testing.T) *lab { return newLabIn(t, t.TempDir()) }

// newLabIn is newLab in a folder, where a farm may have been before.
func newLabIn(t *testing.T, dir string) *lab {
	l := &lab{t: t, program: os.Args[0], dir: dir, parts: map[string]*exec.Cmd{}, ended: map[string]chan struct{}{}}
	var err error
	if l.listen, err = FreeAddress(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.path("outputs"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("roots.toml"), fmt.Appendf(nil, "inputs = %q\noutputs = %q\n", l.dir, l.path("outputs")), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name := range l.parts {
			l.kill(name, syscall.SIGKILL)
			<-l.ended[name]
		}
	})
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }
func (l *lab) token() string           { return l.path("server/admin.token") }

// start starts a part as a process, which ends with this one.
func (l *lab) start(name string) {
	l.t.Helper()
	part, args := "worker", []string{l.token(), l.dir, name}
	if name == "server" {
		part, args = "server", []string{l.path("server"), l.listen}
	}
	cmd := exec.Command(l.program, args...)
	cmd.Env = append(os.Environ(), partVariable+"="+part, clockVariable+"="+l.clock(name))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.OpenFile(l.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		l.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // who kills it knows
		_ = log.Close()
		close(ended)
	}()
	l.lock.Lock()
	defer l.lock.Unlock()
	l.parts[name], l.ended[name] = cmd, ended
}

func (l *lab) kill(name string, s syscall.Signal) { _ = l.parts[name].Process.Signal(s) }

// restart kills a part and starts it again.
func (l *lab) restart(name string) {
	l.kill(name, syscall.SIGKILL)
	<-l.ended[name]
	l.start(name)
}

// killChild kills a task of a worker, if it has one.
func (l *lab) killChild(name string) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.parts[name].Process.Pid))
	for _, file := range threads {
		data, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
		}
	}
}

// queue connects once the server is there.
func (l *lab) queue() *queue.Queue {
	l.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		token, err := queue.ReadToken(l.token())
		if err == nil {
			token.URL = "nats://" + l.listen // it may be of a server that was here before
			if nc, err := queue.Dial(token, "test"); err == nil {
				if q, err := queue.Connect(l.t.Context(), nc, queue.Options{Version: "test"}); err == nil {
					l.t.Cleanup(nc.Close)
					return q
				}
				nc.Close()
			}
		}
		if time.Since(began) > patience {
			log, _ := os.ReadFile(l.path("server.log"))
			l.t.Fatalf("no server: %v\n%s", err, log)
		}
	}
}

// release lets nodes work again that are in quarantine, because so many of their tasks were killed.
func (l *lab) release(q *queue.Queue, nodes []string) {
	for l.t.Context().Err() == nil {
		for _, name := range nodes {
			_ = q.Undrain(l.t.Context(), name) // the next time
		}
		time.Sleep(time.Second)
	}
}

func (l *lab) submit(q *queue.Queue, document string) *spec.Job {
	l.t.Helper()
	job, err := spec.Parse("test.toml", []byte(document))
	if err != nil {
		l.t.Fatal(err)
	}
	plan, err := worker.JobPlan(job, "tester")
	if err != nil {
		l.t.Fatal(err)
	}
	if err := q.Submit(l.t.Context(), plan); err != nil {
		l.t.Fatal(err)
	}
	return job
}

// wait waits for the end of a job and returns its tasks.
func (l *lab) wait(q *queue.Queue, job string, most time.Duration) (queue.JobStatus, []queue.TaskStatus) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), most)
	defer cancel()
	_, err := q.Wait(ctx, job)
	status, tasks, showErr := q.Show(l.t.Context(), job)
	if err != nil || showErr != nil {
		for _, t := range tasks {
			if !t.State.Ended() {
				l.t.Logf("%s: %s %+v", t.Name, t.State, t.Entry)
			}
		}
		for name := range l.parts {
			log, _ := os.ReadFile(l.path(name + ".log"))
			l.t.Logf("%s:\n%s", name, log[max(0, len(log)-2000):])
		}
		l.t.Fatalf("job %s: %v %v, %v", job, err, showErr, status.Counts)
	}
	return status, tasks
}

// check wants the right bytes of all tasks that succeeded, and an error of those that did not. Failed are those that must fail, by what they
// say; those that say nothing must be skipped.
func (l *lab) check(job *spec.Job, tasks []queue.TaskStatus, failed map[string]string) {
	l.t.Helper()
	root, err := store.Open(store.Options{URL: l.path("outputs")})
	if err != nil {
		l.t.Fatal(err)
	}
	plan, err := job.Plan()
	if err != nil {
		l.t.Fatal(err)
	}
	for i, t := range tasks {
		if want, fails := failed[t.Name]; fails {
			state := queue.Failed
			if want == "" {
				state = queue.Skipped
			}
			if t.State != state || !strings.Contains(t.Entry.Error, want) {
				l.t.Errorf("%s: %s, %q, want %s, %q", t.Name, t.State, t.Entry.Error, state, want)
			}
			continue
		}
		if t.State != queue.Succeeded {
			l.t.Errorf("%s: %s after %d attempts: %s", t.Name, t.State, t.Entry.Attempt, t.Entry.Error)
			continue
		}
		m, err := store.Result(l.t.Context(), root, task.KeyOf(job, &plan.Tasks[i]))
		if err != nil || m == nil || m.Contents() != t.Entry.Manifest {
			l.t.Errorf("%s: its manifest is %v, %v, not %s", t.Name, m, err, t.Entry.Manifest)
			continue
		}
		data, err := os.ReadFile(filepath.Join(l.path("outputs"), job.Name, t.Name, "out", "result"))
		if err != nil || !bytes.Equal(data, stubResult(&plan.Tasks[i])) {
			l.t.Errorf("%s: its result is %x, %v", t.Name, data, err)
		}
	}
}

// chaosJob has n tasks, a tenth of which need others. Some fail for good.
func chaosJob(n int) (document string, failed map[string]string) {
	var b strings.Builder
	b.WriteString("version = 1\nname = \"chaos\"\n[retry]\nmax_attempts = 1000\nbackoff = \"50ms\"\nbackoff_max = \"200ms\"\nkeep_going = true\n[limits]\nlease = \"1s\"\nstall_timeout = \"1s\"\n")
	failed = map[string]string{}
	for i := range n {
		points, needs := 200, ""
		if i%13 == 5 {
			points = pointsBad
			failed[fmt.Sprintf("t%03d", i)] = "no photos"
		} else if i%7 == 3 {
			points = pointsCrash
		}
		if i%10 == 9 {
			need := fmt.Sprintf("t%03d", i-9)
			needs = fmt.Sprintf("needs = [%q]\n", need)
			if _, fails := failed[need]; fails {
				failed[fmt.Sprintf("t%03d", i)] = ""
			}
		}
		fmt.Fprintf(&b, "[[task]]\nkind = \"demo\"\nid = \"t%03d\"\npoints = %d\n%s", i, points, needs)
	}
	return b.String(), failed
}

// TestChaos kills and stops what a farm is made of. Every task ends with exactly one valid manifest, or says why not.
func TestChaos(t *testing.T) {
	tasks, blows, seed := 40, 20, uint64(7)
	if os.Getenv("VKSPLAT_LONG") != "" {
		tasks, blows = 300, 200
	}
	l := newLab(t)
	l.start("server")
	q := l.queue()
	workers := []string{"one", "two", "three"}
	for _, name := range workers {
		l.start(name)
	}
	document, failed := chaosJob(tasks)
	job := l.submit(q, document)
	random := rand.New(rand.NewPCG(seed, 1))
	counts := map[string]int{}
	for range blows {
		name := workers[random.IntN(len(workers))]
		what := []string{"worker", "worker", "child", "child", "child", "stop", "child", "worker", "stop", "server"}[random.IntN(10)]
		counts[what]++
		switch what {
		case "worker":
			l.restart(name)
		case "child":
			l.killChild(name)
		case "server":
			l.restart("server")
		case "stop": // longer than its lease: others take its tasks, and it comes back
			l.kill(name, syscall.SIGSTOP)
			time.AfterFunc(testLease*3/2, func() {
				l.lock.Lock()
				defer l.lock.Unlock()
				l.kill(name, syscall.SIGCONT)
			})
		}
		time.Sleep(time.Duration(50+random.IntN(200)) * time.Millisecond)
	}
	go l.release(q, workers)
	status, list := l.wait(q, job.Name, time.Duration(tasks)*2*time.Second)
	l.check(job, list, failed)
	attempts := 0
	for _, task := range list {
		attempts += task.Entry.Attempt
	}
	t.Logf("%v, %d attempts, blows %v", status.Counts, attempts, counts)
	if attempts <= tasks {
		t.Error("no task was tried twice: nothing was tested")
	}
}
