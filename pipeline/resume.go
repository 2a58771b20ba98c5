package pipeline

import (
	"slices"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// NewTrainerFrom prepares to resume the run that wrote c: the next step gives the bytes that the undisturbed run has
// after it, whatever the size of chunks, the budget of memory and the capacities are here. cams must be in the frame of
// c.Header.Frame. cfg is that of the run, or differs from it as if it had been changed at this step (see Changes), its
// ceiling of splats included. Close c afterwards.
func NewTrainerFrom(d *Device, cams []scene.Camera, photos photos.Source, c *checkpoint.File, cfg recipe.Config,
	o TrainerOptions) (*Trainer, error) {
	h := &c.Header
	if err := c.Accepts(cfg, len(cams)); err != nil {
		return nil, err
	}
	if err := c.Verify(); err != nil {
		return nil, err
	}
	cfg = cfg.StartedFor(h.ScheduleIterations)
	o.Ceiling, o.Shell = c.Ceiling(cfg), h.Shell
	s := start{first: h.StartSplats, step: h.Step, splats: h.Splats, known: knownSizesOf(h, 1+len(o.Others)),
		fill: func(t *Trainer) error { return t.saver.read(c) }}
	t, err := newTrainer(d, cams, photos, h.Frame.SceneScale, cfg, o, s)
	if err != nil {
		return nil, err
	}
	t.saver.resume(h, &o)
	return t, nil
}

// knownSizesOf returns the shards of n devices when the checkpoint was written, if there were as many, and not one.
func knownSizesOf(h *checkpoint.Header, n int) (known knownSizes) {
	if len(h.Team) != n {
		return known
	}
	for _, s := range h.Team {
		known.splats, known.ceilings = append(known.splats, s.Splats), append(known.ceilings, s.Most)
	}
	if slices.Contains(known.ceilings, 0) {
		known.ceilings = nil
	}
	return known
}

// DevicesBefore names the devices that ran the steps before a checkpoint; same says that they give the same bytes as
// those of the trainer.
func (t *Trainer) DevicesBefore(h *checkpoint.Header) (text string, same bool) {
	return checkpoint.DeviceList(h.Devices()), t.shards.sameDevices(h)
}

// Deviations returns why the bytes may differ from those of an uninterrupted run; none if they are the same.
func (t *Trainer) Deviations() []checkpoint.Deviation { return slices.Clone(t.saver.deviations) }

// Deviate notes in all later checkpoints that from now on an undisturbed run may have other bytes.
func (t *Trainer) Deviate(reason string) { t.saver.deviate(t.queue.next, reason) }

// StartStep returns the steps that were done when the trainer was made: not 0 for one that resumed a checkpoint.
func (t *Trainer) StartStep() int { return t.saver.startStep }

// CheckpointBytes returns the size of a checkpoint of n splats, or of those there are if n is 0, without the header of
// some kilobytes.
func (t *Trainer) CheckpointBytes(n int) int64 {
	if n == 0 {
		n = t.NSplats()
	}
	return t.shards.state(t.saver.extra).BytesOf(n)
}

// SaveCheckpoint replaces path by a checkpoint of the trainer after the units in flight: in bounded host memory, and
// whole or not at all. It first waits for a checkpoint that is still being written. With background, training may
// continue as soon as SaveCheckpoint returns, if memory has room for a copy of the state, and Wait returns the error;
// otherwise the file is written at once. A trainer that is complete needs no copy: until the file is written, its model
// can be read and drawn. After RunTo has returned an error of want of memory (IsShortage), a checkpoint can still be
// written. A model that diverged is not written: the error wraps ErrDiverged, and training ends with it.
func (t *Trainer) SaveCheckpoint(path string, background bool) (*checkpoint.Write, error) {
	return t.saver.save(path, background, t.Complete())
}
