package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// inFlight is the number of units that the device has queued at most: enough that it never waits for the host.
const inFlight = 3

// TrainView is a photo to train on: its camera, in the training frame, and its pixels, of the camera's size.
type TrainView struct {
	Camera scene.Camera
	Image  scene.Image
}

// Progress says how far a run is. Loss is of the step's one view, without the regularisers; L1, MSE and SSIM are means over the pixels and windows that
// count, in the loss each is weighed by the share of the photo that counts.
type Progress struct {
	Step    int // steps done
	Loss    float32
	L1      float32
	MSE     float32
	SSIM    float32
	Alpha   float32 // mean |alpha - photo's alpha| with alpha loss, else 0
	Counted int     // pixels of the photo that count: what its mask leaves of it
	Splats  int
	Visible int // of Step's view
	Isects  int // (tile, splat) pairs of Step's view
}

// Trainer trains one scene on one device.
type Trainer struct {
	cfg        Config
	sceneScale float64
	views      []TrainView
	photos     *photos
	e          *engine
	maxSplats  int
	start      int // splats that training starts with: what the schedule of their number begins at

	next       unit  // to submit
	queued     int   // units ever submitted, for the choice of the frame
	epoch      int   // of order
	order      []int // of the views in epoch
	fixedOrder bool  // tests: order is of the steps
	pace       pace
	passes     passTimes
	progress   Progress
	ceiling    int            // splats that wanted to grow and found the ceiling, ever
	tell       func(Progress) // of RunTo's caller, nil outside it
	told       int            // step that tell was last called for
	lastGrowth int            // step at which device memory was last taken
	elapsed    time.Duration
	err        error // sticks

	extra      []extraState     // state beside the splats, for checkpoints
	run        RunRecord        // for checkpoints
	writing    *CheckpointWrite // in the background; nil: none
	copies     copyMode         // tests: how checkpoints are taken
	deviations []Deviation      // why an undisturbed run may have other bytes
	startStep  int              // steps done by earlier trainers of the run
}

// NewTrainer prepares to train init on views: everything in the training frame (scene.Capture.Normalise). sceneScale is the capture's.
func NewTrainer(d *Device, views []TrainView, init *scene.Splats, sceneScale float64, cfg Config) (*Trainer, error) {
	switch {
	case init.N == 0:
		return nil, errors.New("pipeline: start training: no splat to start with")
	case init.Degree > cfg.SHDegree:
		return nil, fmt.Errorf("pipeline: start training: splats of SH degree %d for a model of degree %d", init.Degree, cfg.SHDegree)
	}
	if err := init.Validate(); err != nil {
		return nil, err
	}
	init = cfg.thinned(init)
	return newTrainer(d, views, sceneScale, cfg, start{first: init.N, splats: init.N, fill: func(t *Trainer) error { return t.e.model.upload(init) }})
}

// start is what a trainer begins with.
type start struct {
	first   int // splats before the run's first step
	splats  int
	ceiling int                    // 0: what Config and memory allow
	fill    func(t *Trainer) error // puts the splats into the model
}

// newTrainer prepares to train on views.
func newTrainer(d *Device, views []TrainView, sceneScale float64, cfg Config, s start) (*Trainer, error) {
	if err := checkTraining(views, sceneScale, cfg); err != nil {
		return nil, err
	}
	cameras := make([]scene.Camera, len(views))
	for i := range views {
		cameras[i] = views[i].Camera
	}
	kinds := []unitKind{unitStep, unitRender}
	if cfg.RefineEvery > 0 {
		kinds = append(kinds, unitRefine, unitReset)
	}
	e, err := newEngine(d.dev, cfg.SHDegree, cameras, kinds, inFlight, false)
	if err != nil {
		return nil, err
	}
	e.compare = comparisonOf(views, &cfg)
	e.strategy = strategy{
		mcmc: cfg.Strategy == StrategyMCMC, noise: cfg.Strategy == StrategyMCMC && cfg.NoiseLR > 0, absgrad: cfg.AbsGrad,
		exact: cfg.Strategy == StrategyDefault && cfg.Splats > 0,
	}
	t := &Trainer{start: s.first, cfg: cfg, sceneScale: sceneScale, views: views, e: e, epoch: -1, next: unit{number: 1}}
	if cfg.Exposure {
		if e.exposures, err = newExposures(d.dev, len(views)); err != nil {
			return nil, err
		}
		t.extra = append(t.extra, e.exposures.state())
	}
	t.progress.Splats = s.splats
	t.pace.off = d.dev.Info().Type == vk.CPU
	if t.photos, err = newPhotos(d.dev, views, inFlight); err != nil {
		return nil, err
	}
	if t.maxSplats = s.ceiling; t.maxSplats == 0 {
		t.maxSplats = e.splatCeiling(cfg.MaxSplats)
	}
	if err := t.checkCeiling(); err != nil {
		return nil, err
	}
	if s.splats > t.maxSplats {
		return nil, fmt.Errorf("pipeline: start training: %w: %d splats to start with, %d fit", ErrTooSmall, s.splats, t.maxSplats)
	}
	if err := e.loadWith(s.splats, func() error { return s.fill(t) }, cfg.startCapacities, cfg.bands); err != nil {
		return nil, err
	}
	e.yield = t.FinishWrites
	return t, e.build()
}

func checkTraining(views []TrainView, sceneScale float64, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	switch {
	case len(views) == 0:
		return errors.New("pipeline: start training: no photo to train on")
	case !(sceneScale > 0):
		return fmt.Errorf("pipeline: start training: scene scale %g, it must be positive", sceneScale)
	}
	for i := range views {
		if err := checkPhoto(&views[i]); err != nil {
			return err
		}
	}
	return nil
}

// viewOf returns the view that a step trains on: all of them once an epoch, in an order of each epoch's own.
func (t *Trainer) viewOf(step int) int {
	if t.fixedOrder {
		return t.order[min(step, len(t.order)-1)]
	}
	n := len(t.views)
	if epoch := step / n; epoch != t.epoch {
		t.epoch, t.order = epoch, scene.ViewOrder(t.cfg.Seed, epoch, n)
	}
	return t.order[step%n]
}

// after returns the unit that follows u.
func (t *Trainer) after(u unit) unit {
	u.number++
	switch {
	case u.kind == unitStep && t.cfg.refines(u.step):
		u.kind = unitRefine
	case u.kind != unitReset && t.cfg.resets(u.step):
		u.kind = unitReset
	default:
		u.kind, u.step = unitStep, u.step+1
	}
	return u
}

// setParams fills what the kernels of u read.
func (t *Trainer) setParams(p *layout.StepParams, u unit) {
	degree := min(u.step/t.cfg.SHInterval, t.cfg.SHDegree)
	viewParams(&p.View, &t.views[t.viewOf(u.step)].Camera, t.cfg.Near, degree, t.cfg.Antialiased, t.cfg.backgroundOf(u.step))
	p.Unit, p.Step = u.number, uint32(u.step)
	p.SeedLo, p.SeedHi = uint32(t.cfg.Seed), uint32(t.cfg.Seed>>32)
	t.cfg.optimiserParams(p, u.step, t.sceneScale)
	t.cfg.photoParams(p, u.step, t.viewOf(u.step), t.views[t.viewOf(u.step)].Image.Mask != nil)
	t.cfg.strategyParams(p, u.step, t.sceneScale)
	p.TargetSplats = 0
	if u.kind == unitRefine {
		p.TargetSplats = uint32(t.cfg.targetSplats(t.start, t.maxSplats, u.step))
	}
	p.MaxSplats, p.SplatCapacity = uint32(t.maxSplats), uint32(t.e.model.capacity())
}

// advance submits the next unit, after taking in what its frame was busy with.
func (t *Trainer) advance() error {
	slot := t.queued % len(t.e.frames)
	f := t.e.frames[slot]
	if f.ticket != 0 {
		again, err := t.collect(f)
		if err != nil || again {
			return err
		}
	}
	u := t.next
	t.setParams(f.hostParams, u)
	var src vk.View
	if u.kind == unitStep {
		src = t.photos.source(slot, t.viewOf(u.step))
	}
	if err := t.e.submit(f, u, src); err != nil {
		return err
	}
	t.queued++
	t.next = t.after(u)
	return nil
}

// collect waits for f and takes in its report. again says that the unit, or one before it, did not fit: there is room now, and the queue starts anew
// from the first unit that failed.
func (t *Trainer) collect(f *frame) (again bool, err error) {
	if err := t.e.wait(f); err != nil {
		return false, err
	}
	r := f.hostReport
	if r.Failed != 0 {
		return true, t.replay(*r)
	}
	if err := f.verifier.judge(f.unit); err != nil {
		return false, err
	}
	t.progress.Splats = int(r.NSplats)
	if r.NSplats == 0 {
		return false, fmt.Errorf("pipeline: train step %d: %w", f.unit.step+1, ErrNoSplats)
	}
	t.ceiling += int(r.MaxSplatsHit)
	if f.unit.kind == unitStep {
		t.progress.Step = f.unit.step + 1
		t.progress.Loss, t.progress.L1, t.progress.MSE, t.progress.SSIM = r.Loss, r.L1, r.Mse, r.Ssim
		t.progress.Alpha, t.progress.Counted = r.AlphaL1, int(r.NCounted)
		t.progress.Visible, t.progress.Isects = int(r.NVisible), int(r.NIsects)
		t.passes.observe(f.programs[unitStep])
		if t.tell != nil && t.progress.Step > t.told {
			t.told = t.progress.Step
			t.tell(t.progress)
		}
		if t.pace.observe(f.programs[unitStep], t.e.bands < t.e.maxRows) {
			return true, t.repace()
		}
	}
	return false, nil
}

// drain takes in everything in flight. again says that some of it did not fit and that the queue went back to it.
func (t *Trainer) drain() (again bool, err error) {
	for i := range t.e.frames {
		f := t.e.frames[(t.queued+i)%len(t.e.frames)] // oldest first
		if f.ticket == 0 {
			continue
		}
		if again, err := t.collect(f); err != nil || again {
			return again, err
		}
	}
	return false, nil
}

// replay grows what r says is too small and goes back to the unit that failed. It and everything queued after it have changed nothing.
func (t *Trainer) replay(r layout.Report) error {
	var failed *unit
	for _, f := range t.e.frames {
		if f.unit.number == r.FailedUnit {
			failed = &f.unit
		}
		if err := t.e.wait(f); err != nil {
			return err
		}
	}
	if failed == nil {
		return fmt.Errorf("pipeline: internal error: unit %d failed and is not in flight", r.FailedUnit)
	}
	t.next = *failed
	t.lastGrowth = failed.step
	t.pace.reset()
	return t.e.recover(&r, t.maxSplats)
}

// repace rebuilds the programs for submits of the right length. Nothing may be lost: everything in flight is taken in first.
func (t *Trainer) repace() error {
	if again, err := t.drain(); err != nil || again {
		return err // programs are built anew then, and measured again
	}
	t.e.split[unitStep] = t.pace.split
	if t.pace.moreBands {
		t.e.bands = min(2*t.e.bands, t.e.maxRows)
		t.pace.reset()
		t.e.split[unitStep] = nil
	}
	return t.e.build()
}

// Run trains to the configured number of steps. progress, which may be nil, is called after every step that the host has taken in. When ctx is
// cancelled the steps in flight are finished and ctx's error returned; Run can be called again to go on. After any other error the trainer is of no
// more use.
func (t *Trainer) Run(ctx context.Context, progress func(Progress)) error {
	return t.RunTo(ctx, t.cfg.Iterations, progress)
}

// RunTo is Run up to step steps, refinement after the last of them included. Stopping there and going on changes no byte.
func (t *Trainer) RunTo(ctx context.Context, step int, progress func(Progress)) error {
	if t.err != nil {
		return t.err
	}
	start := time.Now()
	defer func() { t.elapsed += time.Since(start) }()
	t.tell = progress
	defer func() { t.tell = nil }()
	for again := true; again; {
		for t.next.step < min(step, t.cfg.Iterations) && ctx.Err() == nil {
			if t.err = t.advance(); t.err != nil {
				return t.err
			}
		}
		// What is still in flight may turn out not to fit: then there is more to do.
		if again, t.err = t.drain(); t.err != nil {
			return t.err
		}
	}
	return ctx.Err()
}

// Step returns the number of steps done.
func (t *Trainer) Step() int { return t.progress.Step }

// NSplats returns the number of splats after the last step.
func (t *Trainer) NSplats() int { return t.progress.Splats }

// Seconds returns the time that Run took.
func (t *Trainer) Seconds() float64 { return t.elapsed.Seconds() }

// CeilingHits returns how many times a splat wanted to grow and found the model at its ceiling.
func (t *Trainer) CeilingHits() int { return t.ceiling }

// PlannedBytes returns the device memory that training starts with.
func (t *Trainer) PlannedBytes() int64 { return t.e.dev.Stats().Allocated }

// MemoryStats says what a run took of the device.
type MemoryStats struct {
	DeviceBytes     int64 // sum of all vkAllocateMemory now
	PeakDeviceBytes int64 // likewise at the peak
	Allocations     int   // calls of vkAllocateMemory
	LastGrowth      int   // step at which the last of them happened; 0: before training
}

// MemoryStats returns what the device has given so far.
func (t *Trainer) MemoryStats() MemoryStats {
	s := t.e.dev.Stats()
	return MemoryStats{DeviceBytes: s.Allocated, PeakDeviceBytes: s.PeakAllocated, Allocations: s.AllocCalls, LastGrowth: t.lastGrowth}
}

// Splats reads the model back, in the training frame.
func (t *Trainer) Splats() (*scene.Splats, error) {
	if _, err := t.drain(); err != nil {
		return nil, err
	}
	return t.e.model.download(t.progress.Splats)
}

// Render makes a picture of the model: [Height][Width][3], not clamped. The camera may be no larger than the largest that was trained on.
func (t *Trainer) Render(c scene.Camera) ([]float32, error) {
	if _, err := t.drain(); err != nil {
		return nil, err
	}
	degree := min(t.progress.Step/t.cfg.SHInterval, t.cfg.SHDegree)
	return t.e.picturize(c, degree, t.cfg.Near, t.cfg.Antialiased, t.cfg.Background)
}

// Close frees the trainer's device memory, after a checkpoint that is being written has been.
func (t *Trainer) Close() error {
	t.FinishWrites()
	return errors.Join(t.photos.close(), t.e.close())
}
