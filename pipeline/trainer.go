package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vksplat/pipeline/bench"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/vk"
)

// Trainer trains one scene on one device, or on several that each have a shard of its splats. Its methods delegate to
// its parts.
type Trainer struct {
	o        TrainerOptions
	run      *training
	shards   *shards
	poses    *aligner // nil: poses are given
	report   report
	pressure pressure
	queue    queue
	saver    saver
}

type start struct {
	first  int // splats before the run's first step
	step   int // steps done
	splats int
	known  knownSizes             // of the shards
	fill   func(t *Trainer) error // uploads the splats
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
		return t.shards.each(func(m *shard) error {
			if m.e.setup.world.alone() {
				return m.e.setup.model.upload(init)
			}
			return m.e.setup.model.upload(init.Take(shardSplats(t.shards.sizes(), m.e.setup.world.rank)))
		})
	}
	return newTrainer(d, cams, photos, sceneScale, cfg, o, start{first: init.N, splats: init.N, fill: fill})
}

func newTrainer(d *Device, cams []scene.Camera, source photos.Source, sceneScale float64, cfg recipe.Config,
	o TrainerOptions, s start) (*Trainer, error) {
	if err := checkTraining(cams, sceneScale, &cfg, &o); err != nil {
		return nil, err
	}
	run := &training{
		cfg: cfg, sceneScale: sceneScale, shell: o.Shell, cams: cams, cameras: cameraCount(o.Photos), start: s.first,
		carves: slices.Contains(trainKinds(&cfg, &o), recipe.Carve),
	}
	shards, err := newShards(append([]*Device{d}, o.Others...), source, run, &o, s)
	if err != nil {
		return nil, err
	}
	t := assemble(run, shards, o, s)
	if err := s.begin(t, source); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// checkTraining refuses arguments that cannot be trained.
func checkTraining(cams []scene.Camera, sceneScale float64, cfg *recipe.Config, o *TrainerOptions) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	switch {
	case len(cams) == 0:
		return errors.New("start training: no photo to train on")
	case !(sceneScale > 0):
		return fmt.Errorf("start training: scene scale %g, it must be positive", sceneScale)
	case len(o.Depths) > 0 && len(o.Depths) != len(cams):
		return fmt.Errorf("start training: %d depths for %d cameras", len(o.Depths), len(cams))
	case len(o.Photos) > 0 && len(o.Photos) != len(cams):
		return fmt.Errorf("start training: starts of %d photos for %d cameras", len(o.Photos), len(cams))
	}
	return errors.Join(o.Known.check(len(cams)), o.Normals.check(cams), checkPoses(cfg, cams, o),
		checkLenses(cfg, cams, o))
}

// assemble connects the parts of a trainer, whose devices have no buffers yet.
func assemble(run *training, s *shards, o TrainerOptions, from start) *Trainer {
	t := &Trainer{o: o, run: run, shards: s}
	t.report.progress.Splats = from.splats
	if run.cfg.RefineCameras {
		t.poses = &aligner{run: run, shard: s.first, onTrial: o.OnTrial}
	}
	t.saver = saver{run: run, shards: s, report: &t.report, queue: &t.queue}
	t.pressure = pressure{shards: s, o: &t.o, deviate: t.saver.deviate}
	t.queue = queue{run: run, shards: s, report: &t.report, pressure: &t.pressure, poses: t.poses,
		writer: &t.saver.writer, interludes: o.Interludes, level: run.cfg.Level(from.step)}
	t.queue.next.Number = 1
	return t
}

// begin makes the buffers of a trainer and fills them. What an error leaves is Close's to free.
func (s start) begin(t *Trainer, source photos.Source) error {
	if err := t.saver.addExtra(&t.o, t.poses); err != nil {
		return err
	}
	if t.o.comparesDepths() {
		if err := t.shards.each(func(m *shard) error { return m.e.setup.loadDepths(t.run, &t.o) }); err != nil {
			return err
		}
	}
	sources := photos.Shared(source, len(t.shards.list))
	err := t.shards.each(func(m *shard) error { return m.begin(sources[m.e.setup.world.rank], t.run, &t.o) })
	if err != nil {
		return err
	}
	if err := checkCeiling(&t.run.cfg, t.run.start, t.shards.ceiling()); err != nil {
		return err
	}
	if err := s.fill(t); err != nil {
		return err
	}
	if t.poses != nil {
		if err := t.poses.resume(); err != nil {
			return err
		}
	}
	if err := t.shards.join(); err != nil {
		return err
	}
	if err := t.shards.each(func(m *shard) error { return m.e.ready(m.splats, 1) }); err != nil {
		return err
	}
	return t.shards.each(func(m *shard) error {
		m.e.programs.beforeAlloc = t.saver.writer.Finish
		return m.e.memory.buildToFit()
	})
}

// trainingSetup returns the setup of a device that trains, without buffers.
func trainingSetup(dev *vk.Device, at world, cams []scene.Camera, photos photos.Source, cfg *recipe.Config,
	o *TrainerOptions) (*setup, error) {
	s, err := newSetup(dev, cfg.SHDegree, cams, trainKinds(cfg, o))
	if err != nil {
		return nil, err
	}
	pictures, err := sizeOf(o.Pictures)
	if err != nil {
		return nil, err
	}
	s.world, s.model.Rows, s.drawn = at, cfg.Rows(), s.drawn.union(pictures)
	s.looks = o.Interludes != nil
	s.compare = comparisonOf(cams, photos, cfg)
	s.strategy, s.hooks = strategyOf(cfg, o), o.hooks
	return s, nil
}

// RunTo trains up to a step, including the refinement after it; stopping and resuming there changes no byte. progress,
// which may be nil, is called after every step. When ctx is cancelled the steps in flight are finished and ctx's error
// returned; RunTo can be called again. After any other error the trainer is of no more use.
func (t *Trainer) RunTo(ctx context.Context, step int, progress func(Progress)) error {
	if t.queue.err != nil {
		return t.queue.err
	}
	start := time.Now()
	t.report.to = progress
	defer func() {
		t.report.to, t.report.elapsed = nil, t.report.elapsed+time.Since(start)
		t.o.Interludes.moves(true)
	}()
	if t.queue.err = t.queue.runTo(ctx, min(step, t.run.cfg.Iterations)); t.queue.err != nil {
		return t.queue.err
	}
	return ctx.Err()
}

// Complete reports whether everything is done: all steps, and what belongs to the last of them.
func (t *Trainer) Complete() bool { return t.queue.next.Step >= t.run.cfg.Iterations }

// Changed reports whether anything was trained since the trainer was made.
func (t *Trainer) Changed() bool { return t.queue.submitted > 0 }

func (t *Trainer) Step() int { return t.report.progress.Step }

// NSplats returns the number of splats after the last step.
func (t *Trainer) NSplats() int { return t.report.progress.Splats }

func (t *Trainer) Seconds() float64 { return t.report.elapsed.Seconds() }

// PassTimes returns the times of a step's passes on the first device. It is empty if that has no timestamps.
func (t *Trainer) PassTimes() *bench.PassTimes { return &t.report.passes }

// MemoryStats says how a run uses the memory of its devices. Of several devices, all but TotalBytes and the numbers of
// splats are those of the one whose peak is highest.
type MemoryStats struct {
	DeviceBytes     int64 // sum of all vkAllocateMemory now
	PeakDeviceBytes int64 // the most that it was
	Allocations     int   // calls of vkAllocateMemory
	TotalBytes      int64 // of all devices now, and what RAM shared with them has room for copies of the model
	LastGrowth      int   // step of the last unit that did not fit; 0: none, or before training
	Ceiling         int   // the most splats that the model may grow to
	CeilingFits     bool  // the devices have room for that many by their plans; else the run may end for want of memory
	CeilingHits     int   // how many times a splat could not grow because of the ceiling
}

func (t *Trainer) MemoryStats() MemoryStats {
	most := MemoryStats{LastGrowth: t.pressure.lastGrowth, Ceiling: t.shards.ceiling(), CeilingFits: true,
		CeilingHits: t.report.ceilingHits}
	for _, m := range t.shards.list {
		s, info := m.e.setup.dev.Stats(), m.e.setup.dev.Info()
		if s.PeakAllocated > most.PeakDeviceBytes {
			most.DeviceBytes, most.PeakDeviceBytes, most.Allocations = s.Allocated, s.PeakAllocated, s.AllocCalls
		}
		if info.Unified() {
			s.Allocated = min(s.Allocated+2*m.e.setup.model.stagingBytes(), s.Budget)
		}
		most.TotalBytes += s.Allocated
		most.CeilingFits = most.CeilingFits && m.maxSplats <= m.plan.Ceiling
	}
	return most
}

// RenderInto makes a picture of the model as its file is drawn, with all its SH coefficients, even those that training
// has not reached yet: [Height][Width][3], not clamped. It uses the memory of out if that is large enough.
func (t *Trainer) RenderInto(out []float32, c scene.Camera) ([]float32, error) {
	if err := t.queue.wait(); err != nil {
		return nil, err
	}
	return t.shards.first.e.picturize(out, c, &t.run.cfg)
}

// Close frees the trainer's device memory, after a checkpoint that is being written.
func (t *Trainer) Close() error {
	if t.o.Interludes != nil {
		t.o.Interludes.end()
	}
	t.saver.writer.Finish()
	return t.shards.close()
}

// SetRun sets what checkpoints say of the run. Call it before the first of them.
func (t *Trainer) SetRun(r RunRecord) { t.saver.record = r }

// SetFingerprint sets the capture's fingerprint and its parts, which take time to compute. Call it before the first
// checkpoint.
func (t *Trainer) SetFingerprint(text string, parts checkpoint.PartsRecord) {
	t.saver.record.Capture.Fingerprint, t.saver.record.Capture.Parts = text, parts
}
