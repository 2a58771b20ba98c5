package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"vksplat/farm/child"
	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/scene"
)

// run is one attempt at a task.
type run struct {
	*node
	job    *job
	task   *spec.Task
	lease  *queue.Lease
	device *Device
	log    *slog.Logger

	outputs store.Root // of the job's results, until the child begins
	unlock  func()     // gives the device to others
	away    bool       // the child said last that it does nothing but wait for its store
}

// outcome is what becomes of a task after an attempt.
type outcome int

const (
	succeeded  outcome = iota
	failed             // no attempt can do it
	again              // another may
	handedBack         // it was stopped from outside: the attempt does not count
	declined           // nor does it where another worker may be able to do what this one cannot
	dropped            // it is another worker's
)

// waits tells that the store is waited for before the child begins.
func (r *run) waits(cause error) {
	if cause != nil {
		r.lease.Progress(0, 0, task.Waiting(cause))
		r.lease.Alive()
	}
}

// saysFull says whether what a child said last is that there was no room, in its store or on the disk here. It comes as text alone: also from what the child ran itself.
func saysFull(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{syscall.ENOSPC.Error(), syscall.EDQUOT.Error(), store.FullText}, func(text string) bool { return strings.Contains(said, text) })
}

// judge says what follows where the child was stopped because of cause, nil for not at all, and ended with a code. A child that crashed, as in its driver, ends
// with a code of wrong usage too, but without a word. What is not set up here may be so on other nodes: that ends a task only where this one is alone. A store that is
// away, and a disk that is full, is no fault of the task, however often it is tried.
func judge(cause error, code int, spoke, away, alone bool) outcome {
	switch {
	case errors.Is(cause, queue.ErrLost):
		return dropped
	case code == task.ExitDone:
		return succeeded
	case errors.Is(cause, queue.ErrStalled), errors.Is(cause, queue.ErrTimeout):
		return again
	case cause != nil:
		return handedBack
	case code == task.ExitRetry && away:
		return declined
	case code == task.ExitSetup && !alone:
		return again
	case task.Judge(code) == task.Failed && spoke:
		return failed
	}
	return again
}

// lastWord is the context of the last writes about a task: it ends some time after the worker, or after the task's lease, whatever comes first.
func lastWord(worker, lease context.Context, afterWorker, afterLease time.Duration) (context.Context, context.CancelFunc) {
	end, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		leaves, ends := worker.Done(), lease.Done()
		var left, finished <-chan time.Time
		for {
			select {
			case <-leaves:
				leaves, left = nil, time.After(afterWorker)
			case <-ends:
				ends, finished = nil, time.After(afterLease)
			case <-left:
				return
			case <-finished:
				return
			case <-end.Done():
				return
			}
		}
	}()
	return end, cancel
}

// note logs that the queue could not be told. What the entry says then decides.
func (r *run) note(err error) {
	if err != nil {
		r.log.Warn("the queue was not told", "cause", err)
	}
}

// do runs the child and tells the queue how it went.
func (r *run) do(ctx, end context.Context) (lost bool) {
	r.outputs = r.outputs.Attend(ctx, r.waits)
	err := r.astray()
	if err == nil && r.lease.Generation > 0 {
		err = r.clearOld(r.outputs)
	}
	if err == nil && r.Mirror {
		err = r.job.mirror(r.outputs, r.now(ctx, r.job.Job))
	}
	if err != nil {
		err = store.Explain("open store", r.job.Store.Outputs, err)
		r.finish(end, err, judgeError(err, r.Alone))
		rest(ctx, declineFor)
		return false
	}
	r.log.Info("task begins")
	ear, cause, ended := r.child(ctx)
	r.using(nil) // telling the queue may take long
	code := codeOf(ended)
	what := judge(cause, code, ear.said != "", r.away || saysFull(ear.said), r.Alone)
	if what == succeeded {
		if err := r.commit(end); err != nil {
			r.finish(end, err, again)
		}
		return false
	}
	said := cause
	if said == nil {
		said = ear.complaint(ended)
	}
	r.finish(end, said, what)
	if code == task.ExitSetup {
		rest(ctx, declineFor) // others go first
	}
	return code == task.ExitRetry && r.device != nil && r.Lost != "" && strings.Contains(ear.said, r.Lost)
}

// judgeOpen is the outcome of an error of opening the job, where cause says why the lease ended, nil for not at all: no other node can do what makes no sense,
// but it may have a disk that works.
func judgeOpen(cause, err error) outcome {
	switch {
	case cause != nil:
		return judge(cause, task.ExitRetry, false, false, false)
	case errors.Is(err, spec.ErrSpec):
		return failed
	case store.IsFull(err):
		return declined
	}
	return again
}

// judgeError is the outcome of an error of the store here. A share that is not mounted on one worker of a farm, or read-only, is no reason to fail a job that others can
// do, nor is a job that names a root which nobody has one to put all workers into quarantine. On a machine alone nobody else can do it.
func judgeError(err error, alone bool) outcome {
	switch {
	case store.IsAway(err):
		return declined // it comes again
	case !errors.Is(err, store.ErrSetup):
		return again
	case alone:
		return failed
	}
	return declined
}

// finish tells the queue about an attempt that did not succeed.
func (r *run) finish(end context.Context, cause error, what outcome) {
	if what == declined {
		r.decline(end, scene.ErrorText(cause))
		return
	}
	r.log.Info("task ended", "cause", cause)
	switch what {
	case failed:
		r.note(r.lease.Fail(end, cause))
	case again:
		r.note(r.lease.Retry(end, cause, 0))
	default: // of a lease that is lost, too: this ends its upkeep, and is refused
		r.note(r.lease.Handback(end))
	}
}

// commit tells the queue that the results are there, once they are.
func (r *run) commit(end context.Context) error {
	if err := r.lease.Verify(end); errors.Is(err, queue.ErrCanceled) || errors.Is(err, queue.ErrLost) {
		r.finish(end, err, handedBack)
		return nil
	} else if err != nil {
		return err
	}
	m, err := r.results()
	if err != nil {
		return fmt.Errorf("the child said that it is done, but its results cannot be read: %w", err)
	}
	r.log.Info("task done", "files", len(m.Files))
	r.lease.Generation = m.Generation // the store may be ahead of a queue that was lost: the next generation has to be above both
	r.note(r.lease.Succeed(end, m.Contents()))
	return nil
}

// results reads the manifest of what the child has made. Its root is opened anew: what was opened hours ago may be what a share has hidden since, or is not any more.
func (r *run) results() (*store.Manifest, error) {
	roots, err := r.roots(r.job.Name)
	if err != nil {
		return nil, err
	}
	outputs, err := roots.Open(r.job.Store.Outputs)
	if err != nil {
		return nil, err
	}
	m, err := store.ReadManifest(outputs, store.OutOf(task.KeyOf(r.job.Job, r.task)))
	switch {
	case err != nil:
		return nil, err
	case m.Hash != r.job.plan.Hash(r.task.Index):
		return nil, errors.New("its results are of another task of this name")
	case m.Generation < r.lease.Generation:
		return nil, errors.New("its results are older than the wish to have them anew")
	}
	return m, nil
}

// openRoots opens the roots of the job, and returns that of its results.
func (r *run) openRoots() (store.Root, error) {
	roots, err := r.roots(r.job.Name)
	if err != nil {
		return nil, err
	}
	if _, err := roots.Open(r.job.Store.Inputs); err != nil {
		return nil, err
	}
	return roots.Open(r.job.Store.Outputs)
}

// roots are those of a job on this machine.
func (n *node) roots(job string) (store.Roots, error) {
	file := n.Roots(job)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &scene.Error{Op: "read roots", Path: file, Err: err, Hint: "start the worker again: it writes the file", Kind: store.ErrSetup}
	}
	return store.ReadRoots(file, data)
}

// child runs run-task until it ends, and returns what it said, why it was stopped, nil where it was not, and how it ended.
func (r *run) child(ctx context.Context) (errs *ear, cause, ended error) {
	args := append(r.Command[1:len(r.Command):len(r.Command)], "--spec="+r.job.file, "--index="+strconv.Itoa(r.lease.Index), "--attempt="+strconv.Itoa(r.lease.Attempt),
		"--fenced", "--roots="+r.Roots(r.job.Name), "--work="+r.Work, "--progress=json")
	if r.device != nil {
		args = append(args, "--device="+r.device.ID)
	}
	if r.CacheMax > 0 {
		args = append(args, "--cache-size="+strconv.FormatInt(r.CacheMax, 10))
	}
	said := &ear{r: r}
	errs = &ear{r: r, errors: true}
	soft, stop := context.WithCancelCause(r.lease.Context())
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(task.ErrStopped) })()
	var running atomic.Pointer[os.Process]
	kill := func() {
		if p := running.Load(); p != nil {
			_ = p.Kill() // it may have ended
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-soft.Done():
		}
		why := context.Cause(soft)
		r.log.Info("the child is stopped", "cause", why)
		grace := task.StopWithin
		if errors.Is(why, queue.ErrLost) || errors.Is(why, queue.ErrStalled) { // nobody wants its work, or it hears nothing
			grace = 0
		}
		select {
		case <-done:
		case <-time.After(grace):
			kill()
		case <-r.Kill:
			kill()
		}
	}()
	ended = child.Run(soft, r.Command[0], args, child.Options{Stdout: &child.Lines{Heard: said.heard}, Stderr: &child.Lines{Heard: errs.heard}, Apart: true, Running: &running})
	if soft.Err() != nil {
		cause = context.Cause(soft)
	}
	close(done)
	return errs, cause, ended
}

// codeOf is the exit code of a child: 128 and the signal's number where one ended it, -1 where it could not be started.
func codeOf(ended error) int {
	var exit *exec.ExitError
	switch {
	case ended == nil:
		return task.ExitDone
	case errors.As(ended, &exit):
		return exit.ExitCode() // -1 for a signal: another attempt may succeed
	}
	return -1
}

// ear listens to what a child prints: progress on standard output, everything else.
type ear struct {
	r      *run
	errors bool
	said   string // its last error
	phase  string // what it does
	life   int64  // its signs of life
}

// heard takes in a line.
func (e *ear) heard(line []byte) {
	var p task.Progress
	if !e.errors && json.Unmarshal(line, &p) == nil && p.Task != "" {
		e.r.using(&p)
		e.r.away = p.Away
		e.r.lease.Pace(p.Rate, p.Unit)
		e.r.lease.Progress(int64(p.Step), int64(p.Of), p.Message)
		if p.Life != e.life {
			e.life = p.Life
			e.r.lease.Alive()
		}
		if p.Preview != "" {
			if err := e.r.sendPreview(p.Preview); err != nil {
				e.r.log.Warn("a picture of the task is not shown", "cause", err)
			}
		}
		if p.Message != e.phase {
			e.phase = p.Message
			e.r.lease.Log(p.Message)
		}
		return
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(line)), "?")
	if text == "" {
		return
	}
	if said, isError := strings.CutPrefix(text, "vksplat: error: "); isError {
		e.said = said
	}
	e.r.lease.Log(text)
}

// complaint is what a child that failed said, or else how it ended.
func (e *ear) complaint(ended error) error {
	if e.said != "" {
		return errors.New(e.said)
	}
	return fmt.Errorf("the task's process ended without a message: %w", ended)
}
