package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// inFlight is the number of units that the device has queued at most: enough that it never waits for the host.
const inFlight = 3

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
	View    int // the photo of Step, among those trained on
	Level   int // times that width and height of the photos are halved for Step
}

// Trainer trains one scene on one device.
type Trainer struct {
	cfg        Config
	sceneScale float64
	cams       []scene.Camera
	photos     *photos
	e          *engine
	o          TrainerOptions
	plan       *Plan
	maxSplats  int
	start      int // splats that training starts with: what the schedule of their number begins at

	ctx        context.Context // of the run at the moment
	next       unit            // to submit
	queued     int             // units ever submitted, for the choice of the frame
	level      int             // that programs are made for, see atLevel
	pace       pace
	passes     passTimes
	meter      *meter // of Measure's steps; nil outside it
	progress   Progress
	ceiling    int            // splats that wanted to grow and found the ceiling, ever
	tell       func(Progress) // of RunTo's caller, nil outside it
	told       int            // step that tell was last called for
	lastGrowth int            // step at which device memory was last taken
	odd        int            // step from which on memory decided the bytes; -1: none
	elapsed    time.Duration
	err        error // sticks
	astray     error // a checkpoint found that the model diverged; sticks

	extra      []extraState     // state beside the splats, for checkpoints
	run        RunRecord        // for checkpoints
	writing    *CheckpointWrite // in the background; nil: none
	copies     copyMode         // tests: how checkpoints are taken
	deviations []Deviation      // why an undisturbed run may have other bytes
	startStep  int              // steps done by earlier trainers of the run
}

// NewTrainer prepares to train init on the photos of cams: everything in the training frame (scene.Capture.Normalise). sceneScale is the capture's.
func NewTrainer(d *Device, cams []scene.Camera, photos Photos, init *scene.Splats, sceneScale float64, cfg Config, o TrainerOptions) (*Trainer, error) {
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
	return newTrainer(d, cams, photos, sceneScale, cfg, o, start{first: init.N, splats: init.N, fill: func(t *Trainer) error { return t.e.model.upload(init) }})
}

// start is what a trainer begins with.
type start struct {
	first  int // splats before the run's first step
	step   int // steps done
	splats int
	fill   func(t *Trainer) error // puts the splats into the model
}

// newTrainer prepares to train on the photos of cams.
func newTrainer(d *Device, cams []scene.Camera, photos Photos, sceneScale float64, cfg Config, o TrainerOptions, s start) (*Trainer, error) {
	if err := checkTraining(cams, sceneScale, cfg); err != nil {
		return nil, err
	}
	plan, err := d.Plan(cams, s.splats, cfg, o)
	if err != nil {
		return nil, err
	}
	e, err := trainingShape(d.dev, cams, photos, &cfg, &o)
	if err != nil {
		return nil, err
	}
	e.pool, e.isectPlan = d.dev.NewScratchPool(), plan.Isects
	e.model.unit, e.model.growth = plan.ChunkSplats, plan.growth
	t := &Trainer{start: s.first, cfg: cfg, sceneScale: sceneScale, cams: cams, e: e, o: o, plan: plan, odd: -1, level: cfg.level(s.step), ctx: context.Background()}
	e.compare.shrunk = t.level > 0
	if err := t.begin(d, photos, s); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// begin makes what t has on the device. What an error leaves is Close's to free.
func (t *Trainer) begin(d *Device, photos Photos, s start) (err error) {
	e, cfg := t.e, &t.cfg
	if err := e.allocate(inFlight); err != nil {
		return err
	}
	t.next.number = 1
	// A run that goes on keeps its ceiling even where less was planned: it may never get there.
	t.maxSplats = max(t.plan.Ceiling, t.o.Ceiling)
	if cfg.Exposure {
		if e.exposures, err = newExposures(d.dev, len(t.cams)); err != nil {
			return err
		}
		t.extra = append(t.extra, e.exposures.state())
	}
	t.progress.Splats = s.splats
	t.pace.off = d.dev.Info().Type == vk.CPU
	if t.photos, err = newPhotos(d.dev, t.cams, photos, cfg, t.plan, t.o); err != nil {
		return err
	}
	if err := cfg.checkCeiling(t.start, t.maxSplats); err != nil {
		return err
	}
	if err := e.loadWith(s.splats, func() error { return s.fill(t) }, cfg.startCapacities, cfg.bands); err != nil {
		return err
	}
	e.yield = t.FinishWrites
	return e.buildToFit()
}

// trainingShape makes the engine of training without its buffers.
func trainingShape(dev *vk.Device, cams []scene.Camera, photos Photos, cfg *Config, o *TrainerOptions) (*engine, error) {
	e, err := newShape(dev, cfg.SHDegree, cams, trainKinds(cfg), false)
	if err != nil {
		return nil, err
	}
	e.model.chunkRows = rowsOf(cfg.SHDegree, cfg.Precision)
	pictures, err := sizeOf(o.Pictures)
	if err != nil {
		return nil, err
	}
	e.drawn = e.drawn.union(pictures)
	e.looks = o.Interludes != nil
	e.compare = comparisonOf(cams, photos, cfg)
	e.strategy = strategy{
		mcmc: cfg.Strategy == StrategyMCMC, noise: cfg.Strategy == StrategyMCMC && cfg.NoiseLR > 0, absgrad: cfg.AbsGrad,
		exact: cfg.Strategy == StrategyDefault && cfg.Splats > 0,
	}
	return e, nil
}

func checkTraining(cams []scene.Camera, sceneScale float64, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	switch {
	case len(cams) == 0:
		return errors.New("pipeline: start training: no photo to train on")
	case !(sceneScale > 0):
		return fmt.Errorf("pipeline: start training: scene scale %g, it must be positive", sceneScale)
	}
	return nil
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

// setParams fills what the kernels of u, which is about view, read.
func (t *Trainer) setParams(p *layout.StepParams, u unit, view int) {
	degree := min(u.step/t.cfg.SHInterval, t.cfg.SHDegree)
	viewParams(&p.View, &t.cams[view], t.cfg.Near, degree, t.cfg.Antialiased, t.cfg.backgroundOf(u.step))
	t.cfg.levelParams(p, u.step)
	p.Unit, p.Step = u.number, uint32(u.step)
	p.SeedLo, p.SeedHi = uint32(t.cfg.Seed), uint32(t.cfg.Seed>>32)
	t.cfg.optimiserParams(p, u.step, t.sceneScale)
	t.cfg.photoParams(p, u.step, view, t.photos.flags[view])
	t.cfg.strategyParams(p, u.step, t.sceneScale)
	p.TargetSplats = 0
	if u.kind == unitRefine {
		p.TargetSplats = uint32(t.cfg.targetSplats(t.start, t.maxSplats, u.step))
	}
	p.MaxSplats, p.SplatCapacity = uint32(t.maxSplats), uint32(t.e.model.capacity())
}

// advance submits the next unit, after taking in what its frame was busy with.
func (t *Trainer) advance() error {
	if again, err := t.atLevel(); err != nil || again {
		return err
	}
	slot := t.queued % len(t.e.frames)
	f := t.e.frames[slot]
	if f.ticket != 0 {
		again, err := t.collect(f)
		if err != nil || again {
			return err
		}
	}
	u := t.next
	var src vk.View
	var keep *vk.Copier
	view := t.photos.order.at(u.step)
	if u.kind == unitStep {
		var err error
		if view, src, keep, err = t.photos.ready(t.ctx, slot, u.step); err != nil {
			return err
		}
	}
	t.setParams(f.hostParams, u, view)
	if err := t.e.submit(f, u, u.kind == unitStep && slot == 0 && t.pace.due(t.meter != nil), src, keep); err != nil {
		return err
	}
	t.o.Interludes.moves(true)
	t.queued++
	t.next = t.after(u)
	return nil
}

// collect waits for f and takes in its report. again says that the unit, or one before it, did not fit: there is room now, and the queue starts anew
// from the first unit that failed.
func (t *Trainer) collect(f *frame) (again bool, err error) {
	start := time.Now()
	if err := t.e.wait(f); err != nil {
		return false, err
	}
	t.meter.wait(time.Since(start))
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
		if x := float64(r.Loss); math.IsNaN(x) || math.IsInf(x, 0) {
			return false, fmt.Errorf("pipeline: train step %d: %w: the loss is no finite number", f.unit.step+1, ErrDiverged)
		}
		t.progress.Step = f.unit.step + 1
		t.progress.Loss, t.progress.L1, t.progress.MSE, t.progress.SSIM = r.Loss, r.L1, r.Mse, r.Ssim
		t.progress.Alpha, t.progress.Counted = r.AlphaL1, int(r.NCounted)
		t.progress.View = t.photos.order.at(f.unit.step)
		t.progress.Visible, t.progress.Isects, t.progress.Level = int(r.NVisible), int(r.NIsects), t.cfg.level(f.unit.step)
		timed := f.ran == f.timed
		if timed {
			t.passes.observe(f.ran)
		}
		t.meter.observe(f.ran, t.progress)
		if t.tell != nil && t.progress.Step > t.told {
			t.told = t.progress.Step
			t.tell(t.progress)
		}
		if timed && t.pace.observe(f.ran, t.e.bands < t.e.mostBands() && !t.pace.undivided) {
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
	return t.makeRoom(&r, failed.step)
}

// repace rebuilds the programs for submits of the right length. Nothing may be lost: everything in flight is taken in first.
func (t *Trainer) repace() error {
	if again, err := t.drain(); err != nil || again {
		return err // programs are built anew then, and measured again
	}
	t.e.split[unitStep] = t.pace.split
	if t.pace.moreBands {
		divided, err := t.e.divide()
		if err != nil {
			return err
		}
		t.pace.reset()
		t.pace.undivided = !divided
		t.e.split[unitStep] = nil
	}
	return t.e.buildToFit()
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
	t.ctx, t.tell = ctx, progress
	defer func() {
		t.ctx, t.tell, t.elapsed = context.Background(), nil, t.elapsed+time.Since(start)
		t.o.Interludes.moves(true)
	}()
	for again := true; again; {
		for t.next.step < min(step, t.cfg.Iterations) && ctx.Err() == nil {
			err := t.checkAstray()
			if err == nil {
				err = t.interlude()
			}
			if err == nil && ctx.Err() == nil { // an interlude may end the run
				err = t.advance()
			}
			if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, ctx.Err())) {
				t.err = err
				return err
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

// Complete reports whether everything is done: all steps, and what belongs to the last of them.
func (t *Trainer) Complete() bool { return t.next.step >= t.cfg.Iterations }

// NSplats returns the number of splats after the last step.
func (t *Trainer) NSplats() int { return t.progress.Splats }

// Seconds returns the time that Run took.
func (t *Trainer) Seconds() float64 { return t.elapsed.Seconds() }

// CeilingHits returns how many times a splat wanted to grow and found the model at its ceiling.
func (t *Trainer) CeilingHits() int { return t.ceiling }

// PlannedBytes returns the memory that training takes of the device's budget before it grows.
func (t *Trainer) PlannedBytes() int64 {
	s := t.e.dev.Stats()
	if info := t.e.dev.Info(); !info.Unified() {
		return s.Allocated
	}
	return min(s.Allocated+2*t.e.model.stagingBytes(), s.Budget)
}

// Plan returns what was planned before anything was taken.
func (t *Trainer) Plan() Plan { return *t.plan }

// NotReproducibleFrom returns the step from which on bytes depend on what memory the device had, because the model's ceiling had to come down; -1: none.
func (t *Trainer) NotReproducibleFrom() int { return t.odd }

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

// Render makes a picture of the model: [Height][Width][3], not clamped.
func (t *Trainer) Render(c scene.Camera) ([]float32, error) { return t.RenderInto(nil, c) }

// RenderInto is Render into memory that the caller has done with, if it is large enough.
func (t *Trainer) RenderInto(out []float32, c scene.Camera) ([]float32, error) {
	if err := t.takeIn(); err != nil {
		return nil, err
	}
	return t.e.picturize(out, c, t.degree(), t.cfg.Near, t.cfg.Antialiased, t.cfg.Background)
}

// degree is that of the spherical harmonics by now.
func (t *Trainer) degree() int { return min(t.progress.Step/t.cfg.SHInterval, t.cfg.SHDegree) }

// Close frees the trainer's device memory, after a checkpoint that is being written has been.
func (t *Trainer) Close() error {
	if t.o.Interludes != nil {
		t.o.Interludes.end()
	}
	t.FinishWrites()
	var err error
	if t.photos != nil { // not so where it could not be made
		err = t.photos.close()
	}
	return errors.Join(err, t.e.close())
}
