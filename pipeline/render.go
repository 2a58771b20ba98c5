package pipeline

import (
	"errors"
	"fmt"

	"vksplat/scene"
	"vksplat/vk"
)

// picturize renders a camera into host memory: [Height][Width][3], not clamped; out's, if it is large enough. Nothing may be in flight.
func (e *engine) picturize(out []float32, c scene.Camera, degree int, near float64, antialiased bool, background [3]float32, look Look) ([]float32, error) {
	if err := e.enlarge(c); err != nil {
		return nil, err
	}
	f := e.frames[0]
	for {
		viewParams(&f.hostParams.View, &c, near, degree, antialiased, background)
		f.hostParams.Look = uint32(look)
		f.hostParams.Unit = 0 // never the number of a unit of training
		if err := e.submit(f, unit{kind: unitRender}, false, vk.View{}, nil); err != nil {
			return nil, err
		}
		if err := e.wait(f); err != nil {
			return nil, err
		}
		if f.hostReport.Failed == 0 {
			break
		}
		r := *f.hostReport
		if err := e.recover(&r, e.model.capacity()); err != nil {
			return nil, err
		}
	}
	if err := f.verifier.judge(f.unit); err != nil {
		return nil, err
	}
	return e.readPicture(out, f.programs[unitRender].Kept(f.picture.View), c.Width*c.Height)
}

// picturePiece is how many pixels of a picture are read at once: 1 MB.
const picturePiece = 1 << 16

// pictureStaging is what reading pictures takes.
const pictureStaging = 16 * picturePiece

// readPicture returns n pixels of a picture as [n][3], in the memory of out if it is large enough. The picture is where it was drawn, in scratch memory, so that
// it takes none of its own while models are trained.
func (e *engine) readPicture(out []float32, drawn vk.View, n int) (_ []float32, err error) {
	if cap(out) < 3*n {
		out = make([]float32, 3*n)
	}
	out = out[:3*n]
	picture := vk.Cast[[4]float32](drawn)
	staging, err := vk.Make[[4]float32](e.dev, vk.Readback, min(n, picturePiece), "picture staging")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.dev.Free(staging.View)) }()
	copier, err := e.dev.NewCopier()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copier.Close()) }()
	s := e.dev.NewSubmission()
	s.Add(copier)
	for first := 0; first < n; first += picturePiece {
		count := min(picturePiece, n-first)
		if err := copier.Record(staging.At(0, count).View, picture.At(first, count).View); err != nil {
			return nil, err
		}
		t, err := e.dev.Submit(s)
		if err == nil {
			err = e.dev.Wait(t)
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
	if size = e.drawn.union(size); size == e.drawn {
		return nil
	}
	if e.yield != nil {
		e.yield()
	}
	if err := e.startAfresh(); err != nil {
		return err
	}
	before, had := e.drawn, e.isectCapacity
	e.drawn = size
	e.isectCapacity = e.fewerIsects(e.isectCapacity)
	if e.isectCapacity == 0 {
		err = fmt.Errorf("pipeline: render %s: %w: a picture of %dx%d pixels", c.Name, ErrTooSmall, c.Width, c.Height)
	}
	if err == nil {
		return e.buildToFit()
	}
	// Back to what there was, so that training can go on.
	e.drawn, e.isectCapacity = before, had
	return errors.Join(err, e.buildToFit())
}

// RenderConfig says how pictures are made.
type RenderConfig struct {
	Background  [3]float32 // 0..1
	Antialiased bool       // the model was trained so
	Near        float64    // near plane, in the frame of splats and cameras; 0: 0.01
}

// Renderer makes pictures of a finished model.
type Renderer struct {
	e      *engine
	cfg    RenderConfig
	atOnce int
}

// NewRenderer puts s on the device, for views of these cameras; room for larger ones is made when they come.
func NewRenderer(d *Device, s *scene.Splats, cameras []scene.Camera, cfg RenderConfig) (r *Renderer, err error) {
	if cfg.Near == 0 {
		cfg.Near = 0.01
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(cameras) == 0 {
		return nil, errors.New("pipeline: create renderer: no camera")
	}
	w, err := d.renderNeeds(s.N, s.Degree, cameras)
	if err == nil {
		err = d.ramForRender(s.N, w)
	}
	if err != nil {
		return nil, err
	}
	e, err := newEngine(d.dev, s.Degree, cameras, []unitKind{unitRender}, 1, false)
	if err != nil {
		return nil, d.shortOfRender(s.N, w, err)
	}
	e.model.setUnit(s.N)
	if err = e.load(s, 1, 1); err == nil {
		err = e.buildToFit()
	}
	if err != nil {
		return nil, errors.Join(d.shortOfRender(s.N, w, err), e.close())
	}
	return &Renderer{e: e, cfg: cfg, atOnce: w.atOnce(d.host)}, nil
}

// AtOnce returns how many pictures may be in memory at once.
func (r *Renderer) AtOnce() int { return r.atOnce }

// RenderInto makes a picture: [Height][Width][3], not clamped, in memory that the caller has done with, if it is large enough.
func (r *Renderer) RenderInto(out []float32, c scene.Camera) ([]float32, error) {
	return r.e.picturize(out, c, r.e.model.degree, r.cfg.Near, r.cfg.Antialiased, r.cfg.Background, LookColor)
}

// Close frees the renderer's device memory.
func (r *Renderer) Close() error { return r.e.close() }
