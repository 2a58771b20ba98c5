package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/vk"
)

// Trainer trains one scene on one device, or on several that share its splats. It schedules units: a few are in flight,
// and where one did not fit, the queue goes back to it (queue.go). Its parts know the rest.
type Trainer struct {
	*member // the first, whose device makes pictures
	group
	training
	report
	checkpoints
	o TrainerOptions

	ctx           context.Context // of the run at the moment
	next          recipe.Unit     // to submit
	queued        int             // units ever submitted, for the choice of the frame
	views         []int           // of the unit that is submitted, by member
	staged        []stagedPhoto   // likewise
	evened        uint32          // number of the unit before which shares were made equal last, if they had to be
	level         int             // that programs are made for, see atLevel
	lastGrowth    int             // step at which device memory was last taken
	posesTried    bool            // it is decided whether poses are refined
	memoryLimited int             // step from which on memory decided the bytes; -1: none
	err           error           // sticks
}

// NewTrainer prepares to train init on the photos of cams: everything in the training frame (scene.Capture.Normalise).
// sceneScale is the capture's.
func NewTrainer(d *Device, cams []scene.Camera, photos photos.Source, init *scene.Splats, sceneScale float64,
	cfg recipe.Config, o TrainerOptions) (*Trainer, error) {
	switch {
	case init.N == 0:
		return nil, errors.New("start training: no splat to start with")
	case init.Degree > cfg.SHDegree:
		return nil, fmt.Errorf("start training: splats of SH degree %d for a model of degree %d",
			init.Degree, cfg.SHDegree)
	}
	if err := init.Validate(); err != nil {
		return nil, err
	}
	init = thinned(&cfg, init)
	fill := func(t *Trainer) error {
		return t.each(func(m *member) error {
			if m.e.setup.world.alone() {
				return m.e.setup.model.upload(init)
			}
			return m.e.setup.model.upload(init.Take(dealt(t.shares(), m.e.setup.world.rank)))
		})
	}
	return newTrainer(d, cams, photos, sceneScale, cfg, o, start{first: init.N, splats: init.N, fill: fill})
}

// start is what a trainer begins with.
type start struct {
	first  int // splats before the run's first step
	step   int // steps done
	splats int
	deal   deal                   // of the splats to the devices
	fill   func(t *Trainer) error // puts the splats into the model
}

// newTrainer prepares to train on the photos of cams.
func newTrainer(d *Device, cams []scene.Camera, source photos.Source, sceneScale float64, cfg recipe.Config,
	o TrainerOptions, s start) (*Trainer, error) {
	if err := checkTraining(cams, sceneScale, cfg); err != nil {
		return nil, err
	}
	if n := len(o.Depths); n > 0 && n != len(cams) {
		return nil, fmt.Errorf("start training: %d depths for %d cameras", n, len(cams))
	}
	if n := len(o.Photos); n > 0 && n != len(cams) {
		return nil, fmt.Errorf("start training: starts of %d photos for %d cameras", n, len(cams))
	}
	if err := errors.Join(o.Known.check(len(cams)), o.Normals.check(cams), checkPoses(&cfg, cams, &o),
		checkLenses(&cfg, cams, &o)); err != nil {
		return nil, err
	}
	t := &Trainer{
		training: training{
			cfg: cfg, sceneScale: sceneScale, shell: o.Shell, cams: cams, cameras: cameraCount(o.Photos),
			start:  s.first,
			carves: slices.Contains(trainKinds(&cfg, &o), recipe.Carve),
		},
		o: o, memoryLimited: -1, level: cfg.Level(s.step), ctx: context.Background(),
	}
	var err error
	if t.members, err = newMembers(append([]*Device{d}, o.Others...), source, &t.training, &t.o, s); err != nil {
		return nil, err
	}
	t.member = t.members[0]
	if err := t.begin(source, s); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// begin makes what t has on its devices. What an error leaves is Close's to free.
func (t *Trainer) begin(source photos.Source, s start) (err error) {
	cfg := &t.cfg
	t.next.Number = 1
	t.progress.Splats = s.splats
	sources := photos.Shared(source, len(t.members))
	if cfg.Appearance() {
		x, err := t.addAppearances(firstAppearances(len(t.cams), t.o.Photos, cfg))
		if err != nil {
			return err
		}
		t.extra = append(t.extra, x)
	}
	if cfg.Robust {
		x, err := t.addHistories()
		if err != nil {
			return err
		}
		t.extra = append(t.extra, x)
	}
	if cfg.RefinePoses {
		x, err := t.addPoses()
		if err != nil {
			return err
		}
		t.extra = append(t.extra, x)
	}
	if t.o.comparesDepths() {
		if err = t.each(func(m *member) error { return m.e.setup.loadDepths(&t.training, &t.o) }); err != nil {
			return err
		}
	}
	if err := t.each(func(m *member) error {
		return m.begin(sources[m.e.setup.world.rank], &t.training,
			&t.o)
	}); err != nil {
		return err
	}
	if err := checkCeiling(cfg, t.start, t.ceiling()); err != nil {
		return err
	}
	if err := s.fill(t); err != nil {
		return err
	}
	if err := t.resumePoses(); err != nil {
		return err
	}
	if err := t.join(); err != nil {
		return err
	}
	if err := t.each(func(m *member) error { return m.e.ready(m.splats, 1) }); err != nil {
		return err
	}
	return t.each(func(m *member) error {
		m.e.programs.beforeAlloc = t.finishWrites
		return m.e.memory.buildToFit()
	})
}

// trainingShape makes the engine of training without its buffers.
func trainingShape(dev *vk.Device, at world, cams []scene.Camera, photos photos.Source, cfg *recipe.Config,
	o *TrainerOptions) (*setup, error) {
	e, err := newSetup(dev, cfg.SHDegree, cams, trainKinds(cfg, o))
	if err != nil {
		return nil, err
	}
	e.world = at
	e.model.Rows = cfg.Rows()
	pictures, err := sizeOf(o.Pictures)
	if err != nil {
		return nil, err
	}
	e.drawn = e.drawn.union(pictures)
	e.looks = o.Interludes != nil
	e.compare = comparisonOf(cams, photos, cfg)
	e.strategy, e.hooks = strategyOf(cfg, o), o.hooks
	return e, nil
}

func checkTraining(cams []scene.Camera, sceneScale float64, cfg recipe.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	switch {
	case len(cams) == 0:
		return errors.New("start training: no photo to train on")
	case !(sceneScale > 0):
		return fmt.Errorf("start training: scene scale %g, it must be positive", sceneScale)
	}
	return nil
}

// Run trains to the configured number of steps. progress, which may be nil, is called after every step that the host
// has taken in. When ctx is cancelled the steps in flight are finished and ctx's error returned; Run can be called
// again to go on. After any other error the trainer is of no more use.
func (t *Trainer) Run(ctx context.Context, progress func(Progress)) error {
	return t.RunTo(ctx, t.cfg.Iterations, progress)
}

// RunTo is Run up to step steps, refinement after the last of them included. Stopping there and going on changes no
// byte.
func (t *Trainer) RunTo(ctx context.Context, step int, progress func(Progress)) error {
	if t.err != nil {
		return t.err
	}
	start := time.Now()
	t.ctx, t.to = ctx, progress
	defer func() {
		t.ctx, t.to, t.elapsed = context.Background(), nil, t.elapsed+time.Since(start)
		t.o.Interludes.moves(true)
	}()
	for again := true; again; {
		for t.next.Step < min(step, t.cfg.Iterations) && ctx.Err() == nil {
			err := t.writer.Diverged()
			if err == nil {
				var held time.Duration
				held, err = t.o.Interludes.attend(ctx, t.takeIn)
				t.elapsed -= held
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

// Complete reports whether everything is done: all steps, and what belongs to the last of them.
func (t *Trainer) Complete() bool { return t.next.Step >= t.cfg.Iterations }

// PlannedBytes returns the memory that training takes of the devices' budgets before it grows.
func (t *Trainer) PlannedBytes() int64 {
	sum := int64(0)
	for _, m := range t.members {
		s := m.e.setup.dev.Stats()
		if info := m.e.setup.dev.Info(); info.Unified() {
			s.Allocated = min(s.Allocated+2*m.e.setup.model.stagingBytes(), s.Budget)
		}
		sum += s.Allocated
	}
	return sum
}

// MemoryStats says what a run took of a device.
type MemoryStats struct {
	DeviceBytes     int64 // sum of all vkAllocateMemory now
	PeakDeviceBytes int64 // likewise at the peak
	Allocations     int   // calls of vkAllocateMemory
	LastGrowth      int   // step at which the last of them happened; 0: before training
}

// MemoryStats returns what the device has given so far, that of several which gave most.
func (t *Trainer) MemoryStats() (most MemoryStats) {
	for _, m := range t.members {
		if s := m.e.setup.dev.Stats(); s.PeakAllocated > most.PeakDeviceBytes {
			most = MemoryStats{DeviceBytes: s.Allocated, PeakDeviceBytes: s.PeakAllocated, Allocations: s.AllocCalls,
				LastGrowth: t.lastGrowth}
		}
	}
	return most
}

// RenderInto makes a picture of the model as its file is drawn: of all its SH coefficients, also of those that training
// has not come to yet, which are zero unless the model was begun with others. [Height][Width][3], not clamped. It is in
// out where that is large enough.
func (t *Trainer) RenderInto(out []float32, c scene.Camera) ([]float32, error) {
	if err := t.takeIn(); err != nil {
		return nil, err
	}
	return t.e.picturize(out, c, t.cfg.SHDegree, t.cfg.Near, t.cfg.Antialiased, t.cfg.Background)
}

// Close frees the trainer's device memory, after a checkpoint that is being written has been.
func (t *Trainer) Close() error {
	if t.o.Interludes != nil {
		t.o.Interludes.end()
	}
	t.finishWrites()
	return t.closeAll()
}
