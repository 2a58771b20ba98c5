package pipeline

import (
	"errors"
	"slices"
	"time"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/failure"
)

// RunRecord is what checkpoints say of a run and its trainer does not know itself.
type RunRecord struct {
	Version string // of the program
	Preset  string // that the configuration began with
	Capture checkpoint.CaptureRecord
	Frame   checkpoint.FrameRecord
	// Aside is asked, when nothing is in flight, for a text that is no state of training and that checkpoint.File.Aside
	// gives back; nil or "": none.
	Aside func() string
}

// checkpoints is the part of a trainer that saves its state: what files say of the run, and who writes them.
type checkpoints struct {
	run        RunRecord
	extra      []checkpoint.Extra // state beside the splats, known before they are filled in
	writer     checkpoint.Writer
	deviations []checkpoint.Deviation // why an undisturbed run may have other bytes
	startStep  int                    // steps done by earlier trainers of the run
}

// SetRun tells the trainer what its checkpoints say of the run. Call it before the first of them.
func (c *checkpoints) SetRun(r RunRecord) { c.run = r }

// SetFingerprint tells it the capture's fingerprint and of what that is made, which takes time. Call it before the
// first checkpoint.
func (c *checkpoints) SetFingerprint(text string, parts checkpoint.PartsRecord) {
	c.run.Capture.Fingerprint, c.run.Capture.Parts = text, parts
}

// Deviations returns why the bytes may differ from those of an undisturbed run; none if they are the same.
func (c *checkpoints) Deviations() []checkpoint.Deviation { return slices.Clone(c.deviations) }

// StartStep returns the steps that were done when the trainer was made: not 0 for one that goes on with a checkpoint.
func (c *checkpoints) StartStep() int { return c.startStep }

// header returns what a checkpoint says now. Nothing may be in flight.
func (t *Trainer) header() checkpoint.Header {
	n := len(t.cams)
	return checkpoint.Header{
		Version: t.run.Version, Step: t.next.StepsBefore(), Seed: t.cfg.Seed,
		Splats: t.progress.Splats, StartSplats: t.start, SHDegree: t.cfg.SHDegree,
		SplatCeiling: t.ceiling(), CeilingHits: t.ceilingHits, ScheduleIterations: t.cfg.DecaySteps(),
		Next: t.next,
		Order: checkpoint.OrderRecord{Epoch: t.photos.order.turn(t.next.Step) / n,
			Position: t.photos.order.turn(t.next.Step) % n},
		Config: t.cfg, Preset: t.run.Preset, Capture: t.run.Capture, Frame: t.run.Frame, Shell: t.shell,
		Device: checkpoint.RecordOf(t.e.setup.dev), Deviations: t.deviations, Team: t.shareRecords(),
	}
}

// settle takes in everything in flight, so that the state is that between two units. After an error of want of memory
// it is so, too: the unit that found none, and all after it, changed nothing.
func (t *Trainer) settle() error {
	if err := t.writer.Diverged(); err != nil {
		return err
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
	if failure := t.e.programs.team.Failure(); failure != nil {
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
	t.deviations = append(t.deviations, checkpoint.Deviation{Step: t.next.StepsBefore(), Reason: reason})
}

// CheckpointBytes returns the size of a checkpoint of n splats, 0 for as many as there are now, without the header of
// some kilobytes.
func (t *Trainer) CheckpointBytes(n int) int64 {
	if n == 0 {
		n = t.progress.Splats
	}
	return t.liveState(t.extra).BytesOf(n)
}

// SaveCheckpoint replaces path by a checkpoint of the trainer as it is after the units in flight: bounded host memory,
// written aside, whole or not at all. With background, and where memory has room for a copy of the state, training may
// go on as soon as SaveCheckpoint returns, and the error is Wait's; otherwise the file is written then. A checkpoint
// that is still being written is waited for first. After Run has returned an error of want of memory (IsShortage), a
// checkpoint can still be written. A model that diverged is not written, the error wraps ErrDiverged then, and training
// ends with it.
func (t *Trainer) SaveCheckpoint(path string, background bool) (*checkpoint.Write, error) {
	return t.saveCheckpoint(path, background, false)
}

// SaveLast is SaveCheckpoint in the background when training is done, without a copy: until the file is written, the
// model can be read and drawn. If it is trained on after all, that waits.
func (t *Trainer) SaveLast(path string) (*checkpoint.Write, error) {
	return t.saveCheckpoint(path, true, true)
}

func (t *Trainer) saveCheckpoint(path string, background, stays bool) (*checkpoint.Write, error) {
	called := time.Now()
	t.finishWrites()
	waited := time.Since(called)
	if err := t.settle(); err != nil { // the end of the steps in flight is no pause
		return nil, err
	}
	stopped := time.Now().Add(-waited)
	c := checkpoint.Content{Header: t.header(), State: t.liveState(t.extra), Strays: t.strays(), Stays: stays}
	if t.run.Aside != nil {
		c.Aside = t.run.Aside()
	}
	return t.writer.Save(path, c, stopped, background)
}

// finishWrites waits until no checkpoint is being written: what was copied for it is free again then.
func (c *checkpoints) finishWrites() { c.writer.Finish() }
