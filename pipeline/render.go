package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// picturize renders a camera into host memory: [Height][Width][3], not clamped; out's, if it is large enough. Nothing
// may be in flight.
func (e *engine) picturize(out []float32, c scene.Camera, cfg *recipe.Config) ([]float32, error) {
	if err := e.enlarge(c); err != nil {
		return nil, err
	}
	for {
		r, err := e.draw(c, cfg, LookColor)
		if err != nil {
			return nil, err
		}
		if r.Failed == 0 {
			return e.drawnPicture(out, c)
		}
		if err := e.recoverPicture(r); err != nil {
			return nil, err
		}
	}
}

// draw draws a camera's picture, and returns the report: it may not have fit.
func (e *engine) draw(c scene.Camera, cfg *recipe.Config, look Look) (*layout.Report, error) {
	background := cfg.Background
	if look == LookDepth {
		background = [3]float32{}
	}
	e.programs.team.Begin()
	for _, m := range e.peers {
		f := m.programs.frames[0]
		f.lens.set(&c)
		viewParams(&f.hostParams.View, &c, cfg.Near, cfg.SHDegree, cfg.Antialiased, background)
		f.hostParams.Look = uint32(look)
		f.hostParams.Unit = 0 // never the number of a unit of training
		f.peers.setPicture(f.hostParams)
		if err := m.programs.submit(f, recipe.Unit{Kind: recipe.Render}, false, &noPhoto); err != nil {
			return nil, e.programs.team.Fail(err)
		}
	}
	var r layout.Report
	for i, m := range e.peers {
		f := m.programs.frames[0]
		if err := m.programs.wait(f); err != nil {
			return nil, e.programs.team.Fail(err)
		}
		if r.Failed |= f.hostReport.Failed; i == 0 {
			r = *f.hostReport
		}
	}
	return &r, e.programs.team.Failure()
}

// recoverPicture grows what a picture needed on all devices, and clears the failure; r is e's report.
func (e *engine) recoverPicture(r *layout.Report) error {
	if e.programs.team == nil {
		return e.recover(r, e.setup.model.capacity())
	}
	var reports []*layout.Report
	for _, m := range e.peers {
		reports = append(reports, m.programs.frames[0].hostReport)
	}
	err := e.growPackets(reports)
	for i, m := range e.peers {
		if err == nil {
			err = m.recover(reports[i], m.setup.model.capacity())
		}
	}
	return err
}

// drawnPicture reads the picture that draw drew.
func (e *engine) drawnPicture(out []float32, c scene.Camera) ([]float32, error) {
	f := e.programs.frames[0]
	if err := f.verifier.judge(f.unit); err != nil {
		return nil, err
	}
	return e.readPicture(out, f.programs[recipe.Render].Kept(f.picture.View), c.Width*c.Height)
}

// picturePiece is how many pixels of a picture are read at once: 1 MB.
const picturePiece = 1 << 16

const pictureStaging = 16 * picturePiece

// readPicture returns n pixels of a picture as [n][3], in the memory of out if it is large enough. The picture lies in
// scratch memory, so that it needs none of its own while models are trained.
func (e *engine) readPicture(out []float32, drawn vk.View, n int) (_ []float32, err error) {
	if cap(out) < 3*n {
		out = make([]float32, 3*n)
	}
	out = out[:3*n]
	picture := vk.Cast[[4]float32](drawn)
	staging, err := vk.Make[[4]float32](e.setup.dev, vk.Readback, min(n, picturePiece), "picture staging")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.setup.dev.Free(staging.View)) }()
	copier, err := e.setup.dev.NewCopier()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copier.Close()) }()
	s := e.setup.dev.NewSubmission()
	s.Add(copier)
	for first := 0; first < n; first += picturePiece {
		count := min(picturePiece, n-first)
		if err := copier.Record(staging.At(0, count).View, picture.At(first, count).View); err != nil {
			return nil, err
		}
		t, err := e.setup.dev.Submit(s)
		if err == nil {
			err = e.setup.dev.Wait(t)
		}
		if err != nil {
			return nil, err
		}
		for i, pixel := range vk.Host(staging)[:count] {
			copy(out[3*(first+i):], pixel[:3])
		}
	}
	return out, nil
}

// enlarge makes room for pictures of camera c. Nothing may be in flight.
func (e *engine) enlarge(c scene.Camera) error {
	size, err := sizeOf([]scene.Camera{c})
	if err != nil {
		return err
	}
	if size = e.setup.drawn.union(size); size == e.setup.drawn {
		return nil
	}
	e.programs.beforeAlloc()
	if err := e.programs.free(); err != nil {
		return err
	}
	before, had := e.setup.drawn, e.setup.isectCapacity
	e.setup.drawn = size
	if !e.memory.fitIsects(e.setup.isectCapacity) {
		err = fmt.Errorf("render %s: %w: a picture of %dx%d pixels", c.Name, ErrTooSmall, c.Width, c.Height)
	}
	if err == nil {
		return e.memory.buildToFit()
	}
	// as before, so that training can continue
	e.setup.drawn, e.setup.isectCapacity = before, had
	return errors.Join(err, e.memory.buildToFit())
}
