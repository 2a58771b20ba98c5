package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// frame holds the buffers and the state of a unit in flight. There are several, so that the device never waits for the
// host.
type frame struct {
	params     vk.Slice[layout.StepParams] // [1], mapped
	peers      peerParams
	report     vk.Slice[layout.Report] // [1], mapped
	hostParams *layout.StepParams
	hostReport *layout.Report
	submission *vk.Submission
	copier     *vk.Copier
	picture    vk.Slice[[4]float32] // in the scratch memory of the program of recipe.Render
	lens       frameLens
	part       framePart
	verifier   verifier
	programs   [recipe.NKinds]*vk.Program
	// a step with timestamps between its passes, which cost some microseconds each; only the first frame's, unless
	// programs.timeAll
	timed   *vk.Program
	photo   photoCopies
	unit    recipe.Unit
	ran     *vk.Program // the program that was submitted
	skipped bool        // the unit was not submitted: its device had done it before
	ticket  vk.Ticket   // 0: nothing in flight
	done    chan error  // in a team: the result of waiting for the unit
}

// engine is the device side that training and rendering share.
type engine struct {
	setup    *setup
	programs *programs
	memory   *memory
	peers    []*engine // that train or draw one model, by rank; the engine itself among them
}

// newEngine returns an engine without its buffers.
func newEngine(s *setup) *engine {
	e := &engine{setup: s, programs: &programs{setup: s, pool: s.dev.NewScratchPool(), beforeAlloc: func() {}}}
	e.memory = &memory{setup: s, programs: e.programs}
	e.peers = []*engine{e}
	return e
}

// allocate makes the buffers that live as long as the engine. What an error leaves is close's to free.
func (e *engine) allocate(inFlight int) (err error) {
	s := e.setup
	if s.counters, err = vk.Make[uint32](s.dev, vk.DeviceLocal, layout.NCounters, "counters"); err != nil {
		return err
	}
	if s.args, err = vk.Make[[3]uint32](s.dev, vk.DeviceLocal, layout.NArgs, "dispatch_args"); err != nil {
		return err
	}
	for range inFlight {
		f := &frame{submission: s.dev.NewSubmission(), done: make(chan error, 1)}
		e.programs.frames = append(e.programs.frames, f)
		if err := f.allocate(s); err != nil {
			return err
		}
	}
	return nil
}

func (f *frame) allocate(s *setup) (err error) {
	if f.params, err = vk.Make[layout.StepParams](s.dev, vk.Upload, 1, "params"); err != nil {
		return err
	}
	if f.report, err = vk.Make[layout.Report](s.dev, vk.Readback, 1, "report"); err != nil {
		return err
	}
	f.hostParams, f.hostReport = &vk.Host(f.params)[0], &vk.Host(f.report)[0]
	*f.hostParams, *f.hostReport = layout.StepParams{}, layout.Report{}
	if f.copier, err = s.dev.NewCopier(); err != nil {
		return err
	}
	if err := f.verifier.allocate(s); err != nil {
		return err
	}
	return errors.Join(f.peers.allocate(s, f.params), f.lens.allocate(s))
}

// ready chooses the first capacities for a model of n splats, which has been loaded.
func (e *engine) ready(n, bands int) error {
	e.setup.bands = e.setup.startBands(bands)
	if !e.memory.fitIsects(e.memory.firstIsects(n) * max(e.setup.hooks.capacities, 1)) {
		return fmt.Errorf("load model: %w: %s", ErrTooSmall, vk.BytesText(e.setup.dev.Budget()))
	}
	return e.setup.setCounters(uint32(n))
}

// close frees the engine, even an unfinished one. Device.Close frees what an error leaves.
func (e *engine) close() error {
	s := e.setup
	if err := s.dev.WaitIdle(); err != nil {
		return err
	}
	if err := e.programs.close(); err != nil {
		return err
	}
	for _, f := range e.programs.frames {
		f.close(s)
	}
	for _, v := range []vk.View{s.counters.View, s.args.View, s.voters.View} {
		if !v.IsZero() {
			s.dev.Free(v)
		}
	}
	if s.appearances != nil {
		s.appearances.close()
	}
	if s.histories != nil {
		s.histories.close()
	}
	if s.depths != nil {
		s.depths.close()
	}
	if s.poses != nil {
		s.poses.close()
	}
	s.model.close()
	return e.programs.pool.Close()
}

func (f *frame) close(s *setup) {
	if f.copier != nil {
		f.copier.Close()
	}
	s.dev.Free(f.params.View)
	s.dev.Free(f.report.View)
	f.peers.free(s)
	f.lens.free(s)
	f.verifier.free(s)
	f.freePart(s.dev)
}

// recover grows what a failed unit needed, at most to ceiling splats, and clears the failure. Nothing may be in flight.
func (e *engine) recover(r *layout.Report, ceiling int) error {
	e.programs.beforeAlloc()
	if r.Failed&layout.FailedSplats != 0 {
		if err := e.memory.growModel(int(r.Needed), ceiling); err != nil {
			return err
		}
	}
	if r.Failed&layout.FailedView != 0 {
		if err := e.growView(int(r.Needed)); err != nil {
			return err
		}
	}
	if r.Failed&layout.FailedIsects != 0 {
		n := int(r.Needed)
		more := max(n/16, min(n/4, moreIsects))
		if int(r.NSplats) >= ceiling {
			more /= 2 // the model no longer grows, so views hardly change
		}
		if err := e.memory.growIsects(r.Needed, more); err != nil {
			return err
		}
	}
	e.programs.split = [recipe.NKinds][]int{}
	if err := e.memory.buildToFit(); err != nil {
		return err
	}
	return e.setup.setCounters(r.NSplats)
}

// growView makes room for n projections, and for some more.
func (e *engine) growView(n int) error {
	if err := e.programs.free(); err != nil {
		return err
	}
	most := n
	for _, p := range e.peers {
		most += p.setup.model.capacity()
	}
	e.setup.viewSplats = team.RoundUp(min(n+n/4, most-n))
	if !e.memory.fitIsects(e.setup.isectCapacity) {
		return fmt.Errorf("grow view: %w: %d visible splats leave nothing for their pairs", ErrTooSmall, n)
	}
	return nil
}
