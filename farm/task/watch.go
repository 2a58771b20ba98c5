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

// watchEvery is the time between two looks at a child.
const watchEvery = 250 * time.Millisecond

// saveWithin is how long a child that was asked to stop may take to save.
const saveWithin = 2 * time.Minute

// StopWithin is how long a task that is asked to stop may take: its child saves, and a minute uploads what it saved.
// Whoever stops a task must not kill it sooner.
const StopWithin = saveWithin + time.Minute

// supervisor runs child processes.
type supervisor struct {
	*attempt
	logs  sync.WaitGroup // uploads of the log
	shown preview        // used by the goroutine that watches the child
	table string         // of scores, as the last child reported
}

// child runs this program with arguments, watches it and uploads checkpoints meanwhile. What it prints goes to the log.
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
	s.outputs = s.attend(ctx, s.outputs) // its patience is another than that of what came before
	uploads := &store.Uploads{Root: s.outputs, Task: s.key, Dir: dir, Until: s.until()}
	endLog := s.followLog()
	err = s.watch(ctx, dir, uploads, stop, c)
	endLog()
	s.lookAtPreview(true)
	if err == nil {
		return nil // it came to its end, even where it was asked to stop
	}
	if err = s.childError(args[0], err); soft.Err() != nil {
		err = context.Cause(soft)
	}
	// What it saved goes up in any case: another machine may do better.
	lost := s.upload(context.WithoutCancel(ctx), dir, uploads)
	return errors.Join(err, store.Explain("upload checkpoint", s.key, lost))
}

// watch waits until the child has ended. Meanwhile it uploads checkpoints, and stops a child that makes no progress or
// takes too long.
func (s *supervisor) watch(ctx context.Context, dir *os.Root, uploads *store.Uploads, stop context.CancelCauseFunc,
	c *child.Child) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	limits := &s.task.Limits
	began := time.Now()
	pace := s.newPace(began, s.stored)
	var sending chan error // an upload that goes on
	stopped := false
	beat := pulse{looked: began}
	for {
		select {
		case <-c.Done():
			err := c.Wait()
			s.childEnds()
			if err != nil || sending != nil { // else there may be another child
				s.freeDevice()
			}
			if sending != nil {
				<-sending // the next upload sees what is missing
			}
			return err
		case err := <-sending: // one that failed is made good by the next, or reported by the last
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
		case s.quiet() > limits.StallTimeout: // it hangs, and would not hear that it should stop
			stop(errStalled)
			c.Kill()
			stopped = true
		case limits.TaskTimeout > 0 && time.Since(began) > limits.TaskTimeout:
			stop(errTimeout)
			stopped = true
		case pace.due(time.Now(), s.newest()) && sending == nil:
			pace.begins(time.Now(), s.trains())
			sending = make(chan error, 1)
			go func(to chan<- error) { to <- s.upload(ctx, dir, uploads) }(sending)
		}
	}
}

// count looks how many pictures a render has: it does not say.
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

// upload sends the work so far as a checkpoint, where there is something new.
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
		// else a newer one has replaced it
		if !errors.Is(err, fs.ErrNotExist) || s.newest() == step || ctx.Err() != nil {
			return err
		}
	}
}

// logEvery is the time between two uploads of the log of a task that runs: people look at it. Tests do not wait.
var logEvery = 15 * time.Second

// followLog uploads the log while it grows, until end is called. That waits for no upload: the task may still hold its
// device. The last one waits for logs.
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

// childError words a child's error for the user, who knows no cache.
func (s *supervisor) childError(command string, err error) error {
	var f *child.Failure
	if !errors.As(err, &f) {
		return err
	}
	names := s.named(place.inStore)
	f.Text = names.Replace(f.Text)
	return fault.WithHint(fmt.Errorf("vksplat %s: %w", command, f), names.Replace(fault.Hint(err)))
}

// logged puts the lines of a child into the log. Places have names that the user knows.
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
