package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// Changes lists what differs between the run that wrote the checkpoint and one of cfg on capture: each of them would
// lead to other bytes. More iterations are no change: the schedule stays that of the first start.
func (c *Checkpoint) Changes(cfg recipe.Config, capture CaptureRecord) []recipe.Change {
	h := &c.Header
	list := h.Config.Changes(cfg)
	n := len(list)
	for _, x := range []struct{ key, old, now string }{
		{"photos", strconv.Itoa(h.Capture.Photos), strconv.Itoa(capture.Photos)},
		{"held-out photos", strconv.Itoa(h.Capture.HeldOut), strconv.Itoa(capture.HeldOut)},
		{"resolution", h.Capture.Resolution, capture.Resolution},
		{"points", strconv.Itoa(h.Capture.Points), strconv.Itoa(capture.Points)},
	} {
		if x.old != x.now {
			list = append(list, recipe.Change{Key: "capture's " + x.key, Old: x.old, New: x.now})
		}
	}
	short := func(s string) string { return s[:min(len(s), 12)] }
	if len(list) == n && h.Capture.Split != capture.Split { // as many, but others
		list = append(list, recipe.Change{Key: "capture's choice of held-out photos",
			Old: short(h.Capture.Split), New: short(capture.Split)})
	}
	if len(list) == n && h.Capture.Fingerprint != capture.Fingerprint { // same sizes, other contents
		list = append(list, recipe.Change{Key: "capture's contents", Old: short(h.Capture.Fingerprint),
			New: short(capture.Fingerprint)})
	}
	return list
}

// Accepts returns an error of kind fault.ErrUsage where the state in the checkpoint cannot become that of a run of cfg
// on so many photos.
func (c *Checkpoint) Accepts(cfg recipe.Config, photos int) error {
	h := &c.Header
	refused := func(hint, format string, args ...any) error {
		return &fault.Error{Op: "resume", Path: c.path, Kind: fault.ErrUsage, Err: fmt.Errorf(format, args...),
			Hint: hint}
	}
	switch {
	case cfg.SHDegree != h.SHDegree:
		return refused(fmt.Sprintf("give %s %d, or train anew", fault.Setting("sh-degree"), h.SHDegree),
			"a model of SH degree %d cannot become one of degree %d", h.SHDegree, cfg.SHDegree)
	case cfg.Precision != h.Config.Precision:
		return refused(fmt.Sprintf("give %s %s, or train anew", fault.Setting("precision"), h.Config.Precision),
			"a run of %s precision cannot go on in %s precision", h.Config.Precision, cfg.Precision)
	case cfg.Exposure && !h.Config.Exposure:
		return refused("leave out "+fault.Setting("exposure")+", or train anew",
			"a run without %s cannot go on with it", fault.Setting("exposure"))
	case !cfg.Exposure && h.Config.Exposure:
		return refused("give "+fault.Setting("exposure")+", or train anew",
			"a run with %s cannot go on without it", fault.Setting("exposure"))
	case cfg.Exposure && photos != c.exposures():
		return refused("give the photos that the run was started with, or train anew",
			"the exposures of %d photos cannot become those of %d", c.exposures(), photos)
	case cfg.Iterations < h.Step:
		return refused(fmt.Sprintf("give %s %d or more, or name an earlier checkpoint with %s=FILE",
			fault.Setting("iterations"), h.Step, fault.Setting(
				"resume")), "%d steps are done, %d are asked for", h.Step, cfg.Iterations)
	}
	return nil
}

// exposures returns how many photos have an exposure in the checkpoint.
func (c *Checkpoint) exposures() int {
	for _, t := range c.Tensors() {
		if t.Name == exposuresTensor && len(t.Shape) > 0 {
			return t.Shape[0]
		}
	}
	return 0
}

// NewTrainerFrom prepares to go on with the run that wrote c: the next step gives the bytes that the undisturbed run
// has after it, whatever the size of chunks, the budget of memory and the capacities are here. cams must be in the
// frame of c.Header.Frame. cfg is that of the run; Changes tells differences, with which the run goes on as if they had
// been made at this step, its ceiling of splats among them. Close c afterwards.
func NewTrainerFrom(d *Device, cams []scene.Camera, photos photos.Source, c *Checkpoint, cfg recipe.Config,
	o TrainerOptions) (*Trainer, error) {
	h := &c.Header
	if err := c.Accepts(cfg, len(cams)); err != nil {
		return nil, err
	}
	if err := c.Verify(); err != nil {
		return nil, err
	}
	cfg.ScheduleIterations = h.ScheduleIterations
	o.Ceiling = c.Ceiling(cfg)
	s := start{first: h.StartSplats, step: h.Step, splats: h.Splats, deal: h.deal(1 + len(o.Others)),
		fill: func(t *Trainer) error { return t.readState(c) }}
	t, err := newTrainer(d, cams, photos, h.Frame.SceneScale, cfg, o, s)
	if err != nil {
		return nil, err
	}
	t.goOn(h)
	return t, nil
}

// Ceiling returns the ceiling of splats for a run of cfg that goes on with the checkpoint: that of the run so far,
// unless cfg has another one, or unless memory ran short and the ceiling came down, which it need not stay where there
// is more; then 0. A model that has more splats than cfg allows goes on with them and does not grow.
func (c *Checkpoint) Ceiling(cfg recipe.Config) int {
	lowered := slices.ContainsFunc(c.Header.Deviations, func(d Deviation) bool {
		return strings.HasPrefix(d.Reason,
			ranShort)
	})
	switch {
	case !lowered && cfg.MaxSplats == c.Header.Config.MaxSplats:
		return c.Header.SplatCeiling
	case cfg.MaxSplats > 0 && cfg.MaxSplats < c.Header.Splats:
		return c.Header.Splats
	}
	return 0
}

// goOn takes over what a checkpoint says of the run.
func (t *Trainer) goOn(h *CheckpointHeader) {
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
		t.Deviate(fmt.Sprintf("device changed: %s -> %s", before, deviceList(t.records())))
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
func (t *Trainer) dealtAnew(h *CheckpointHeader) string {
	d := h.deal(len(t.members))
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
func (t *Trainer) DevicesBefore(h *CheckpointHeader) (text string, same bool) {
	before, now := h.devices(), t.records()
	return deviceList(before), slices.EqualFunc(before, now, DeviceRecord.Same)
}

// deviceList words devices.
func deviceList(list []DeviceRecord) string {
	var texts []string
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, " + ")
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
