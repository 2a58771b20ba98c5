package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// child runs this program with arguments, watches it and uploads checkpoints meanwhile. What it prints goes to the log.
func (r *runner) child(ctx context.Context, dir *os.Root, args []string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.begins(args[0])
	soft, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c, err := child.Start(soft, r.Program, args, child.Options{Stdout: r.logged(), Stderr: r.logged(), Apart: true,
		Grace: saveWithin, OnEvent: r.onEvent})
	if err != nil {
		r.idles()
		return err
	}
	r.alive()
	r.outputs = r.attend(ctx, r.outputs) // its patience is another than that of what came before
	uploads := &store.Uploads{Root: r.outputs, Task: r.key, Dir: dir, Until: r.until()}
	endLog := r.followLog()
	err = r.watch(ctx, dir, uploads, stop, c)
	endLog()
	r.lookAtPreview(true)
	if err == nil {
		return nil // it came to its end, even where it was asked to stop
	}
	if err = r.childError(args[0], err); soft.Err() != nil {
		err = context.Cause(soft)
	}
	// What it saved goes up in any case: another machine may do better.
	lost := r.upload(context.WithoutCancel(ctx), dir, uploads)
	return errors.Join(err, store.Explain("upload checkpoint", r.key, lost))
}

// watch waits until the child has ended. Meanwhile it uploads checkpoints, and stops a child that makes no progress or
// takes too long.
func (r *runner) watch(ctx context.Context, dir *os.Root, uploads *store.Uploads, stop context.CancelCauseFunc,
	c *child.Child) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	limits := &r.task.Limits
	began := time.Now()
	pace := r.newPace(began, r.stored)
	var sending chan error // an upload that goes on
	stopped := false
	beat := pulse{looked: began}
	for {
		select {
		case <-c.Done():
			err := c.Wait()
			r.idles()
			if err != nil || sending != nil { // else there may be another child
				r.leavesDevice()
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
		r.count()
		r.lookAtPreview(false)
		if r.task.Kind.Silent && beat.beats(c.PID()) {
			r.alive()
		}
		switch {
		case stopped:
		case ctx.Err() != nil:
			stopped = true
			r.say("stopping once it is saved", true)
		case r.quiet() > limits.StallTimeout: // it hangs, and would not hear that it should stop
			stop(errStalled)
			c.Kill()
			stopped = true
		case limits.TaskTimeout > 0 && time.Since(began) > limits.TaskTimeout:
			stop(errTimeout)
			stopped = true
		case pace.due(time.Now(), r.newest()) && sending == nil:
			pace.begins(time.Now(), r.trains())
			sending = make(chan error, 1)
			go func(to chan<- error) { to <- r.upload(ctx, dir, uploads) }(sending)
		}
	}
}

// count looks how many pictures a render has: it does not say.
func (r *runner) count() {
	if !r.task.Kind.Draws {
		return
	}
	r.mutex.Lock()
	before := r.now.Step
	r.mutex.Unlock()
	if n := r.pictures(); n != before {
		r.step(n, r.task.Frames.Count(), false)
	}
}

// upload sends the work so far as a checkpoint, where there is something new.
func (r *runner) upload(ctx context.Context, dir *os.Root, u *store.Uploads) error {
	for {
		step := r.newest()
		if step == 0 || !r.resumes() {
			return nil
		}
		names, err := store.LocalFiles(dir, func(name string) bool {
			at := checkpointStep(name)
			return at >= 0 && at != step
		})
		if err != nil {
			return err
		}
		err = u.Save(ctx, names, r.made(step))
		// else a newer one has replaced it
		if !errors.Is(err, fs.ErrNotExist) || r.newest() == step || ctx.Err() != nil {
			return err
		}
	}
}

// logEvery is the time between two uploads of the log of a task that runs: people look at it. Tests do not wait.
var logEvery = 15 * time.Second

// followLog uploads the log while it grows, until end is called. That waits for no upload: the task may still hold its
// device. The last one waits for logs.
func (r *runner) followLog() (end func()) {
	stop, root := make(chan struct{}), r.outputs
	r.logs.Go(func() {
		tick := time.NewTicker(logEvery)
		defer tick.Stop()
		for before := int64(0); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if info, err := os.Stat(r.log.Name()); err == nil && info.Size() > before {
				before = info.Size()
				r.uploadLog(root)
			}
		}
	})
	return func() { close(stop) }
}

// childError words a child's error for the user, who knows no cache.
func (r *runner) childError(command string, err error) error {
	var f *child.Failure
	if !errors.As(err, &f) {
		return err
	}
	names := r.named(place.inStore)
	f.Text = names.Replace(f.Text)
	return fault.WithHint(fmt.Errorf("vksplat %s: %w", command, f), names.Replace(fault.Hint(err)))
}

// logged puts the lines of a child into the log. Places have names that the user knows.
func (r *runner) logged() *child.Lines {
	names := r.named(place.inStore)
	return &child.Lines{OnLine: func(line []byte) {
		r.alive()
		r.note(names.Replace(string(line)))
	}}
}

// onEvent applies what a child reports.
func (r *runner) onEvent(e *child.Event) {
	r.alive()
	if e.Event == child.EventTable {
		r.table = e.Text
	}
	if r.trains() || r.task.Kind.Stages {
		r.progress(e)
	}
}
