package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/failure"
	"vksplat/pipeline/recipe"
)

// RunRecord is the part of a checkpoint's header that the caller of a trainer knows.
type RunRecord struct {
	Version string // of the program
	Preset  string // that the configuration began with
	Capture checkpoint.CaptureRecord
	Frame   checkpoint.FrameRecord
	// Aside returns, when nothing is in flight, a text that is no state of training and that checkpoint.File.Aside
	// returns; nil or "": none.
	Aside func() string
}

type saver struct {
	run    *training
	shards *shards
	report *report
	queue  *queue

	record     RunRecord
	extra      []checkpoint.Extra // state besides the splats, of the first device
	writer     checkpoint.Writer
	deviations []checkpoint.Deviation // why an undisturbed run may have other bytes
	startStep  int                    // steps done by earlier trainers of the run
}

// addExtra makes the state besides the splats.
func (s *saver) addExtra(o *TrainerOptions, poses *aligner) error {
	cfg := &s.run.cfg
	if cfg.Appearance() {
		if err := s.shards.addAppearances(firstAppearances(len(s.run.cams), o.Photos, cfg)); err != nil {
			return err
		}
		s.extra = append(s.extra, s.shards.first.e.setup.appearances.state())
	}
	if cfg.Robust {
		if err := s.shards.addHistories(); err != nil {
			return err
		}
		s.extra = append(s.extra, s.shards.first.e.setup.histories.state())
	}
	if poses != nil {
		if err := poses.add(o.Anchors); err != nil {
			return err
		}
		s.extra = append(s.extra, s.shards.first.e.setup.poses.state())
	}
	return nil
}

// header returns the header of a checkpoint. Nothing may be in flight.
func (s *saver) header() checkpoint.Header {
	n, next, cfg, first := len(s.run.cams), s.queue.next, &s.run.cfg, s.shards.first
	turn := first.photos.order.turn(next.Step)
	return checkpoint.Header{
		Version: s.record.Version, Step: next.StepsBefore(), Seed: cfg.Seed,
		Splats: s.report.progress.Splats, StartSplats: s.run.start, SHDegree: cfg.SHDegree,
		SplatCeiling: s.shards.ceiling(), CeilingHits: s.report.ceilingHits, ScheduleIterations: cfg.DecaySteps(),
		Next: next, Order: checkpoint.OrderRecord{Epoch: turn / n, Position: turn % n},
		Config: *cfg, Preset: s.record.Preset, Capture: s.record.Capture, Frame: s.record.Frame, Shell: s.run.shell,
		Device: checkpoint.RecordOf(first.e.setup.dev), Deviations: s.deviations, Team: s.shards.shardRecords(),
	}
}

// finishUnits collects everything in flight, so that the state is that between two units. It is so after a shortage of
// memory, too: the unit that did not fit, and all after it, changed nothing.
func (s *saver) finishUnits() error {
	q := s.queue
	if err := s.writer.Diverged(); err != nil {
		return err
	}
	if q.err != nil && !IsShortage(q.err) {
		return q.err
	}
	_, err := q.drain()
	// between two units the state is the same on all devices
	for err == nil && q.err == nil && s.shards.partlyDone(q.next.Number) {
		if err = q.advance(context.Background()); err == nil {
			_, err = q.drain()
		}
	}
	if failed := s.shards.first.e.programs.team.Failure(); failed != nil {
		return failed
	}
	if s.shards.partlyDone(q.next.Number) {
		return errors.Join(err, q.err, errPartlyDone)
	}
	if err == nil || q.err == nil {
		q.err = err
	}
	if err != nil && !IsShortage(err) {
		return err
	}
	return nil
}

// errPartlyDone says that there is no consistent state to save.
var errPartlyDone = errors.New("write checkpoint: a refinement is done on some of the devices only")

// IsShortage reports whether err is of want of memory. A trainer whose run ended with such an error can still write a
// checkpoint.
func IsShortage(err error) bool { return failure.IsShortage(err) }

// deviate notes in all later checkpoints that an undisturbed run may have other bytes from a unit on.
func (s *saver) deviate(u recipe.Unit, reason string) {
	s.deviations = append(s.deviations, checkpoint.Deviation{Step: u.StepsBefore(), Reason: reason})
}

func (s *saver) save(path string, background, complete bool) (*checkpoint.Write, error) {
	called := time.Now()
	s.writer.Finish()
	waited := time.Since(called)
	if err := s.finishUnits(); err != nil { // collecting the steps in flight is no pause
		return nil, err
	}
	stopped := time.Now().Add(-waited)
	c := checkpoint.Content{Header: s.header(), State: s.shards.state(s.extra), Strays: s.strays(),
		Stays: background && complete}
	if s.record.Aside != nil {
		c.Aside = s.record.Aside()
	}
	return s.writer.Save(path, c, stopped, background)
}

// strayShare: one in strayShare splats may hold numbers that are not finite before a refinement, which removes or
// relocates them.
const strayShare = 100

// strays returns how many such splats a checkpoint may hold now.
func (s *saver) strays() int {
	step := s.queue.next.Step
	if s.queue.next.Kind == recipe.Reset {
		step++ // its refinement is done
	}
	if !s.run.cfg.RefinesFrom(step) {
		return 0
	}
	return s.report.progress.Splats / strayShare
}

// resume restores what a checkpoint says of the run, besides its state.
func (s *saver) resume(h *checkpoint.Header, o *TrainerOptions) {
	cfg, q := &s.run.cfg, s.queue
	q.next = h.Next
	// With another schedule the unit that would have been next may never come.
	for !cfg.Comes(q.next, s.run.carves) {
		number := q.next.Number
		q.next = cfg.After(q.next, s.run.carves)
		q.next.Number = number
	}
	s.report.progress.Step, s.report.reported, s.startStep = h.Step, h.Step, h.Step
	s.report.ceilingHits = h.CeilingHits
	s.deviations = slices.Clone(h.Deviations)
	s.record = RunRecord{Version: h.Version, Capture: h.Capture, Frame: h.Frame}
	if !s.shards.sameDevices(h) {
		s.deviate(q.next, fmt.Sprintf("device changed: %s -> %s", checkpoint.DeviceList(h.Devices()),
			checkpoint.DeviceList(s.shards.deviceRecords())))
	}
	if what := s.changedShards(h, o.Ceiling); what != "" {
		s.deviate(q.next, what+" anew")
		if o.Warn != nil {
			o.Warn("the devices have no room for the shards that they had: " + what + " anew, and the bytes may " +
				"differ from those of an uninterrupted run")
		}
	}
}

// changedShards says what differs from the shards of a checkpoint by as many devices, because their memory does not
// allow them; "" if nothing does.
func (s *saver) changedShards(h *checkpoint.Header, ceiling int) string {
	known := knownSizesOf(h, len(s.shards.list))
	switch {
	case known.splats != nil && !slices.Equal(known.splats, s.shards.sizes()):
		return "the splats were dealt out to the devices"
	case known.divides(ceiling) && !slices.Equal(known.ceilings, s.shards.ceilings()):
		return "the ceiling of splats was divided among the devices"
	}
	return ""
}

// read fills the models, and the state besides, from a checkpoint.
func (s *saver) read(c *checkpoint.File) error {
	err := s.shards.each(func(m *shard) error { return m.e.setup.model.reserve(m.splats) })
	if err != nil {
		return err
	}
	n := len(s.shards.list)
	divide := n > 1 && !slices.Equal(knownSizesOf(&c.Header, n).splats, s.shards.sizes())
	if err := s.shards.state(s.extra).Read(c, divide); err != nil {
		return err
	}
	return s.shards.carryAppearances()
}
