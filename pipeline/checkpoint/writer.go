package checkpoint

import (
	"errors"
	"time"

	"vksplat/pipeline/failure"
	"vksplat/scene/safetensors"
	"vksplat/vk"
)

type Content struct {
	Header Header
	Aside  string // a text that is no state of training and that File.Aside gives back; "": none
	State  State
	Stays  bool // State stays as it is until Finish: no copy is needed to write it in the background
	Strays int  // splats that may be no finite numbers
}

type Writer struct {
	Copies   CopyMode // tests: how checkpoints are taken
	writing  *Write   // in the background; nil: none
	reads    bool     // it reads the state itself, which must stay as it is
	diverged error    // a checkpoint found that the model diverged; sticks
}

type CopyMode int

const (
	CopyIfRoom CopyMode = iota // a copy in device memory where the budget has room for one
	CopyNever                  // training stands until the file is written
	CopyDevice                 // tests: in device memory, read through staging memory
	CopyMapped                 // tests: in memory that the host reads
)

type Write struct {
	Path   string
	Step   int           // steps done
	Bytes  int64         // of the file
	Behind bool          // the file is written in the background
	Copied bool          // so that training paused for a copy alone
	Pause  time.Duration // time that training stood still

	took time.Duration
	err  error
	done chan struct{}
}

// Wait waits until the file is written, or was not, and returns why.
func (w *Write) Wait() error {
	<-w.done
	return w.err
}

// Done reports whether Wait would return at once.
func (w *Write) Done() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Took returns the time from the call to the whole file, once Done.
func (w *Write) Took() time.Duration { return w.took }

// copyOf returns a copy of s, each part on its device, or nil where there is no room for one.
func (w *Writer) copyOf(s State) (taken State, err error) {
	for _, share := range s {
		kind := vk.DeviceLocal
		if info := share.Dev.Info(); info.Unified() && w.Copies != CopyDevice || w.Copies == CopyMapped {
			kind = vk.Readback // device memory is host memory: no need to stage it
		}
		if !w.roomForCopy(share) {
			return nil, taken.free()
		}
		one, err := share.copied(kind)
		if errors.Is(err, vk.ErrOutOfMemory) {
			return nil, taken.free()
		}
		if err != nil {
			return nil, errors.Join(err, taken.free())
		}
		taken = append(taken, one)
	}
	return taken, nil
}

// roomForCopy reports whether a device's budget has room for a copy of its state. A part stays free for what may come
// meanwhile.
func (w *Writer) roomForCopy(s *Share) bool {
	use := s.Dev.Stats()
	return w.Copies != CopyNever && s.bytes() <= (use.Budget-use.InUse)/4*3
}

// Save replaces path by a checkpoint: bounded host memory, written aside, whole or not at all. Training stands since
// stopped. With background, and where the state stays or memory has room for a copy of it, it may go on as soon as Save
// returns, and the error is Wait's; otherwise the file is written then. A checkpoint that is still being written must
// have been waited for.
func (w *Writer) Save(path string, c Content, stopped time.Time, background bool) (*Write, error) {
	c.Header.Format, c.Header.Generator, c.Header.Activations = format, generatorName, activations
	metadata, err := c.Header.metadata()
	if err != nil {
		return nil, err
	}
	if c.Aside != "" {
		metadata[asideKey] = c.Aside
	}
	now := &Write{Path: path, Step: c.Header.Step, done: make(chan struct{})}
	if now.Bytes, err = safetensors.Size(metadata, c.State.infos()); err != nil {
		return nil, err
	}
	finish := func(s State) {
		now.err = errors.Join(s.save(path, metadata, c.Strays), s.free())
		now.took = time.Since(stopped)
		close(now.done)
	}
	if background {
		s := c.State
		if !c.Stays {
			if s, err = w.copyOf(s); err != nil {
				return nil, err
			}
			now.Copied = s != nil
		}
		if now.Behind = s != nil; now.Behind {
			now.Pause = time.Since(stopped)
			w.writing, w.reads = now, c.Stays
			go finish(s)
			return now, nil
		}
	}
	finish(c.State)
	w.note(now.err)
	now.Pause = time.Since(stopped)
	return now, now.err
}

// Finish waits until no checkpoint is being written: what was copied for it is free again then.
func (w *Writer) Finish() {
	if w.writing != nil {
		<-w.writing.done
		w.note(w.writing.err)
		w.writing, w.reads = nil, false
	}
}

// Settle is Finish before the state changes: a checkpoint of a copy goes on.
func (w *Writer) Settle() {
	if w.reads {
		w.Finish()
	}
}

// Diverged returns the error of a checkpoint that was not written because the model diverged, once that is known.
func (w *Writer) Diverged() error {
	if w.writing != nil && w.writing.Done() {
		w.Finish()
	}
	return w.diverged
}

// note keeps the error of a write if it says that the model diverged: training on is of no use.
func (w *Writer) note(err error) {
	if w.diverged == nil && errors.Is(err, failure.ErrDiverged) {
		w.diverged = err
	}
}
