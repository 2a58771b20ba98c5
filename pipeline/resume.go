package pipeline

import (
	"fmt"
	"slices"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// NewTrainerFrom prepares to go on with the run that wrote c: the next step gives the bytes that the undisturbed run
// has after it, whatever the size of chunks, the budget of memory and the capacities are here. cams must be in the
// frame of c.Header.Frame. cfg is that of the run; Changes tells differences, with which the run goes on as if they had
// been made at this step, its ceiling of splats among them. Close c afterwards.
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
	s := start{first: h.StartSplats, step: h.Step, splats: h.Splats, deal: dealOf(h, 1+len(o.Others)),
		fill: func(t *Trainer) error { return t.readState(c) }}
	t, err := newTrainer(d, cams, photos, h.Frame.SceneScale, cfg, o, s)
	if err != nil {
		return nil, err
	}
	t.goOn(h)
	return t, nil
}

// goOn takes over what a checkpoint says of the run.
func (t *Trainer) goOn(h *checkpoint.Header) {
	t.next = h.Next
	// With another schedule what would have come next may not come at all.
	for !t.cfg.Comes(t.next, t.carves) {
		number := t.next.Number
		t.next = t.cfg.After(t.next, t.carves)
		t.next.Number = number
	}
	t.progress.Step, t.reported, t.startStep = h.Step, h.Step, h.Step
	t.ceilingHits = h.CeilingHits
	t.deviations = slices.Clone(h.Deviations)
	t.run = RunRecord{Version: h.Version, Capture: h.Capture, Frame: h.Frame}
	if before, same := t.DevicesBefore(h); !same {
		t.Deviate(fmt.Sprintf("device changed: %s -> %s", before, checkpoint.DeviceList(t.records())))
	}
	if what := t.dealtAnew(h); what != "" {
		t.Deviate(what + " anew")
		if t.o.Warn != nil {
			t.o.Warn("the devices have no room for the shares that they had: " + what + " anew, and the bytes may " +
				"differ from those of an undisturbed run")
		}
	}
}

// dealtAnew words what as many devices as wrote a checkpoint have otherwise than those had, because their memory does
// not allow it; "" where that is nothing.
func (t *Trainer) dealtAnew(h *checkpoint.Header) string {
	d := dealOf(h, len(t.members))
	switch {
	case d.splats != nil && !slices.Equal(d.splats, t.shares()):
		return "the splats were dealt out to the devices"
	case d.divides(t.o.Ceiling) && !slices.Equal(d.ceilings, t.ceilings()):
		return "the ceiling of splats was divided among the devices"
	}
	return ""
}

// DevicesBefore words the devices that ran the steps before a checkpoint; same says that they give the same bytes as
// those that go on.
func (t *Trainer) DevicesBefore(h *checkpoint.Header) (text string, same bool) {
	before, now := h.Devices(), t.records()
	return checkpoint.DeviceList(before), slices.EqualFunc(before, now, checkpoint.DeviceRecord.Same)
}

// Changed reports whether anything was trained since the trainer was made.
func (t *Trainer) Changed() bool { return t.queued > 0 }

// Ceiling returns the most splats that the model may grow to. fits is false where the memory of the devices is too
// small for that many: the run may end for want of memory.
func (t *Trainer) Ceiling() (splats int, fits bool) {
	fits = true
	for _, m := range t.members {
		fits = fits && m.maxSplats <= m.plan.Ceiling
	}
	return t.ceiling(), fits
}

// readState fills the models from a checkpoint.
func (t *Trainer) readState(c *checkpoint.File) error {
	if err := t.each(func(m *member) error { return m.e.setup.model.reserve(m.splats) }); err != nil {
		return err
	}
	live := t.liveState(t.extra)
	dealt := len(t.members) > 1 && !slices.Equal(dealOf(&c.Header, len(t.members)).splats, t.shares())
	if err := live.Read(c, dealt); err != nil {
		return err
	}
	return t.carryAppearances()
}

// dealOf returns what each of n devices had of the splats when the checkpoint was written, if they were so many, and
// not one.
func dealOf(h *checkpoint.Header, n int) (d deal) {
	if len(h.Team) != n {
		return d
	}
	for _, s := range h.Team {
		d.splats, d.ceilings = append(d.splats, s.Splats), append(d.ceilings, s.Most)
	}
	if slices.Contains(d.ceilings, 0) {
		d.ceilings = nil
	}
	return d
}
