package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"vksplat/farm/store"
	"vksplat/internal/child"
	"vksplat/internal/fault"
)

// watchEvery is the interval between looks at a child.
const watchEvery = 250 * time.Millisecond

// saveWithin bounds how long a child may save once asked to stop.
const saveWithin = 2 * time.Minute

// StopWithin bounds how long a task takes to stop: its child saves, and a minute uploads that. Do not kill it sooner.
const StopWithin = saveWithin + time.Minute

// supervisor runs child processes.
type supervisor struct {
	*attempt
	logs  sync.WaitGroup // uploads of the log
	shown preview        // used by the goroutine that watches the child
	table string         // of scores, as the last child reported
}

// child runs and watches this program with arguments, and uploads checkpoints. Its output goes to the log.
func (s *supervisor) child(ctx context.Context, dir *os.Root, args []string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.childStarts(args[0])
	soft, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c, err := child.Start(soft, s.Program, args, child.Options{Stdout: s.logged(), Stderr: s.logged(), Apart: true,
		Grace: saveWithin, OnEvent: s.onEvent})
	if err != nil {
		s.childEnds()
		return err
	}
	s.alive()
	s.outputs = s.attend(ctx, s.outputs) // with fresh patience
	uploads := &store.Uploads{Root: s.outputs, Task: s.key, Dir: dir, Until: s.until()}
	endLog := s.followLog()
	err = s.watch(ctx, dir, uploads, stop, c)
	endLog()
	s.lookAtPreview(true)
	if err == nil {
		return nil // even if it was asked to stop
	}
	if err = s.childError(args[0], err); soft.Err() != nil {
		err = context.Cause(soft)
	}
	// Another machine may continue from what it saved.
	lost := s.upload(context.WithoutCancel(ctx), dir, uploads)
	return errors.Join(err, store.Explain("upload checkpoint", s.key, lost))
}

// watch waits for the child, uploads checkpoints, and stops a child that stalls or takes too long.
func (s *supervisor) watch(ctx context.Context, dir *os.Root, uploads *store.Uploads, stop context.CancelCauseFunc,
	c *child.Child) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	limits := &s.task.Limits
	began := time.Now()
	pace := s.newPace(began, s.stored)
	var sending chan error // an upload in progress
	stopped := false
	beat := pulse{looked: began}
	for {
		select {
		case <-c.Done():
			err := c.Wait()
			s.childEnds()
			if err != nil || sending != nil { // no child follows
				s.freeDevice()
			}
			if sending != nil {
				<-sending // the next upload sends the rest
			}
			return err
		case err := <-sending: // on an error the next one repeats it, or the last one reports it
			if sending = nil; err != nil {
				pace.failed(time.Now())
			}
		case <-tick.C:
		}
		s.count()
		s.lookAtPreview(false)
		if s.task.Kind.Silent && beat.beats(c.PID()) {
			s.alive()
		}
		switch {
		case stopped:
		case ctx.Err() != nil:
			stopped = true
			s.say("stopping once it is saved", true)
		case s.quiet() > limits.StallTimeout: // it hangs: asking is no use
			stop(errStalled)
			c.Kill()
			stopped = true
		case limits.TaskTimeout > 0 && time.Since(began) > limits.TaskTimeout:
			stop(errTimeout)
			stopped = true
		case pace.uploadDue(time.Now(), s.newest()) && sending == nil:
			pace.begins(time.Now(), s.trains())
			sending = make(chan error, 1)
			go func(to chan<- error) { to <- s.upload(ctx, dir, uploads) }(sending)
		}
	}
}

// count counts the pictures of a render, which reports none.
func (s *supervisor) count() {
	if !s.task.Kind.Draws {
		return
	}
	s.mutex.Lock()
	before := s.now.Step
	s.mutex.Unlock()
	if n := s.pictures(); n != before {
		s.step(n, s.task.Frames.Count(), false)
	}
}

// upload uploads the newest local checkpoint.
func (s *supervisor) upload(ctx context.Context, dir *os.Root, u *store.Uploads) error {
	for {
		step := s.newest()
		if step == 0 || !s.resumes() {
			return nil
		}
		names, err := store.LocalFiles(dir, func(name string) bool {
			at := checkpointStep(name)
			return at >= 0 && at != step
		})
		if err != nil {
			return err
		}
		err = u.Save(ctx, names, s.made(step))
		// retry if a newer checkpoint has replaced it
		if !errors.Is(err, fs.ErrNotExist) || s.newest() == step || ctx.Err() != nil {
			return err
		}
	}
}

// logEvery is the interval between uploads of a running task's log. Tests shorten it.
var logEvery = 15 * time.Second

// followLog uploads the log while it grows, until end is called. End waits for no upload, see logs: the task may still
// hold its device.
func (s *supervisor) followLog() (end func()) {
	stop, root := make(chan struct{}), s.outputs
	s.logs.Go(func() {
		tick := time.NewTicker(logEvery)
		defer tick.Stop()
		for before := int64(0); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if info, err := os.Stat(s.log.Name()); err == nil && info.Size() > before {
				before = info.Size()
				s.uploadLog(root)
			}
		}
	})
	return func() { close(stop) }
}

// childError words a child's error with keys for local paths.
func (s *supervisor) childError(command string, err error) error {
	var f *child.Failure
	if !errors.As(err, &f) {
		return err
	}
	names := s.named(place.inStore)
	f.Text = names.Replace(f.Text)
	return fault.WithHint(fmt.Errorf("vksplat %s: %w", command, f), names.Replace(fault.Hint(err)))
}

// logged writes the lines of a child to the log, with keys for local paths.
func (s *supervisor) logged() *child.Lines {
	names := s.named(place.inStore)
	return &child.Lines{OnLine: func(line []byte) {
		s.alive()
		s.note(names.Replace(string(line)))
	}}
}

// onEvent applies what a child reports.
func (s *supervisor) onEvent(e *child.Event) {
	s.alive()
	if e.Event == child.EventTable {
		s.table = e.Text
	}
	if s.trains() || s.task.Kind.Stages {
		s.progress(e)
	}
}
