package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"vksplat/pipeline/failure"
	"vksplat/scene/safetensors"
	"vksplat/scene/splatfile"
	"vksplat/vk"
)

// RunRecord is what checkpoints say of a run and its trainer does not know itself.
type RunRecord struct {
	Version string // of the program
	Capture CaptureRecord
	Frame   FrameRecord
	// Aside is asked, when nothing is in flight, for a text that is no state of training and that Checkpoint.Aside
	// gives back; nil or "": none.
	Aside func() string
}

// checkpoints is the part of a trainer that saves its state: what files say of the run, and the file that is being
// written.
type checkpoints struct {
	run        RunRecord
	extra      []extraState     // state beside the splats
	writing    *CheckpointWrite // in the background; nil: none
	copies     copyMode         // tests: how checkpoints are taken
	deviations []Deviation      // why an undisturbed run may have other bytes
	startStep  int              // steps done by earlier trainers of the run
	diverged   error            // a checkpoint found that the model diverged; sticks
}

// SetRun tells the trainer what its checkpoints say of the run. Call it before the first of them.
func (c *checkpoints) SetRun(r RunRecord) { c.run = r }

// SetFingerprint tells it the capture's fingerprint, which takes time to make. Call it before the first checkpoint.
func (c *checkpoints) SetFingerprint(text string) { c.run.Capture.Fingerprint = text }

// copyMode says how a checkpoint is taken.
type copyMode int

const (
	copyIfRoom copyMode = iota // a copy in device memory where the budget has room for one
	copyNever                  // training stands until the file is written
	copyDevice                 // tests: in device memory, read through staging memory
	copyMapped                 // tests: in memory that the host reads
)

// CheckpointWrite is the writing of one checkpoint.
type CheckpointWrite struct {
	Path   string
	Step   int           // steps done
	Bytes  int64         // of the file
	Copied bool          // training paused for a copy alone, and the file was written in the background
	Pause  time.Duration // time that training stood still

	took time.Duration
	err  error
	done chan struct{}
}

// Wait waits until the file is written, or was not, and returns why.
func (w *CheckpointWrite) Wait() error {
	<-w.done
	return w.err
}

// Done reports whether Wait would return at once.
func (w *CheckpointWrite) Done() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Took returns the time from the call to the whole file, once Done.
func (w *CheckpointWrite) Took() time.Duration { return w.took }

// header returns what a checkpoint says now. Nothing may be in flight.
func (t *Trainer) header() CheckpointHeader {
	n := len(t.cams)
	return CheckpointHeader{
		Format: checkpointFormat, Version: t.run.Version, Step: t.next.StepsBefore(), Seed: t.cfg.Seed,
		Splats: t.progress.Splats, StartSplats: t.start, SHDegree: t.cfg.SHDegree,
		SplatCeiling: t.ceiling(), CeilingHits: t.ceilingHits, ScheduleIterations: t.cfg.DecaySteps(),
		Next: t.next,
		Order: OrderRecord{Epoch: t.photos.order.turn(t.next.Step) / n,
			Position: t.photos.order.turn(t.next.Step) % n},
		Generator: generatorName, Config: t.cfg, Capture: t.run.Capture, Frame: t.run.Frame,
		Device:      deviceRecord(t.e.dev),
		Activations: activations, Deviations: t.deviations, Team: t.shareRecords(),
	}
}

// metadata words the header for a file.
func (h CheckpointHeader) metadata() (map[string]string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write checkpoint: %w", err)
	}
	return splatfile.CheckpointMetadata(string(text)), nil
}

// settle takes in everything in flight, so that the state is that between two units. After an error of want of memory
// it is so, too: the unit that found none, and all after it, changed nothing.
func (t *Trainer) settle() error {
	if t.diverged != nil {
		return t.diverged
	}
	if t.err != nil && !IsShortage(t.err) {
		return t.err
	}
	_, err := t.drain()
	for err == nil && t.err == nil && t.partly(t.next.Number) { // a state between two units is the same on all devices
		if err = t.advance(); err == nil {
			_, err = t.drain()
		}
	}
	if failure := t.e.team.Failure(); failure != nil {
		return failure
	}
	if t.partly(t.next.Number) {
		return errors.Join(err, t.err, errPartly)
	}
	if err == nil || t.err == nil {
		t.err = err
	}
	if err != nil && !IsShortage(err) {
		return err
	}
	return nil
}

// errPartly says that there is no whole state to save.
var errPartly = errors.New("write checkpoint: a refinement is done on some of the devices only")

// IsShortage reports whether err is of want of memory. A trainer whose run ended with such an error can still write a
// checkpoint.
func IsShortage(err error) bool {
	return failure.IsShortage(err)
}

// Deviate notes in all later checkpoints that from now on an undisturbed run may have other bytes.
func (t *Trainer) Deviate(reason string) {
	t.deviations = append(t.deviations, Deviation{Step: t.next.StepsBefore(), Reason: reason})
}

// CheckpointBytes returns the size of a checkpoint of n splats, 0 for as many as there are now, without the header of
// some kilobytes.
func (t *Trainer) CheckpointBytes(n int) int64 {
	if n == 0 {
		n = t.progress.Splats
	}
	return t.liveState(t.extra).bytesOf(n)
}

// SaveCheckpoint replaces path by a checkpoint of the trainer as it is after the units in flight: bounded host memory,
// written aside, whole or not at all. With background, and where memory has room for a copy of the state, training may
// go on as soon as SaveCheckpoint returns, and the error is Wait's; otherwise the file is written then. A checkpoint
// that is still being written is waited for first. After Run has returned an error of want of memory (IsShortage), a
// checkpoint can still be written. A model that diverged is not written, the error wraps ErrDiverged then, and training
// ends with it.
func (t *Trainer) SaveCheckpoint(path string, background bool) (*CheckpointWrite, error) {
	called := time.Now()
	t.FinishWrites()
	waited := time.Since(called)
	if err := t.settle(); err != nil { // the end of the steps in flight is no pause
		return nil, err
	}
	start := time.Now().Add(-waited)
	metadata, err := t.header().metadata()
	if err != nil {
		return nil, err
	}
	if t.run.Aside != nil {
		if text := t.run.Aside(); text != "" {
			metadata[asideKey] = text
		}
	}
	live := t.liveState(t.extra)
	w := &CheckpointWrite{Path: path, Step: t.next.StepsBefore(), done: make(chan struct{})}
	if w.Bytes, err = safetensors.Size(metadata, live.infos()); err != nil {
		return nil, err
	}
	strays := t.strays()
	finish := func(s wholeState) {
		w.err = errors.Join(s.save(path, metadata, strays), s.free())
		w.took = time.Since(start)
		close(w.done)
	}
	if background {
		s, err := t.copyOf(live)
		if err != nil {
			return nil, err
		}
		if w.Copied = s != nil; w.Copied {
			w.Pause = time.Since(start)
			t.writing = w
			go finish(s)
			return w, nil
		}
	}
	finish(live)
	t.noteDiverged(w.err)
	w.Pause = time.Since(start)
	return w, w.err
}

// FinishWrites waits until no checkpoint is being written: what was copied for it is free again then.
func (c *checkpoints) FinishWrites() {
	if c.writing != nil {
		<-c.writing.done
		c.noteDiverged(c.writing.err)
		c.writing = nil
	}
}

// copyOf returns a copy of s, each part on its device, or nil where there is no room for one.
func (c *checkpoints) copyOf(s wholeState) (taken wholeState, err error) {
	for _, share := range s {
		kind := vk.DeviceLocal
		if info := share.dev.Info(); info.Unified() && c.copies != copyDevice || c.copies == copyMapped {
			kind = vk.Readback // device memory is host memory: no need to stage it
		}
		if !c.roomForCopy(share) {
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
func (c *checkpoints) roomForCopy(s *state) bool {
	use := s.dev.Stats()
	return c.copies != copyNever && s.bytes() <= (use.Budget-use.InUse)/4*3
}

// Deviations returns why the bytes may be others than those of an undisturbed run; none where they are the same.
func (c *checkpoints) Deviations() []Deviation { return slices.Clone(c.deviations) }

// StartStep returns the steps that were done when the trainer was made: not 0 for one that goes on with a checkpoint.
func (c *checkpoints) StartStep() int { return c.startStep }
