package pipeline

import (
	"errors"
	"fmt"
	"math"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/picture"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// RenderConfig says how pictures are made.
type RenderConfig struct {
	Background  [3]float32 // 0..1
	Antialiased bool       // the model was trained so
	Near        float64    // near plane, in the frame of splats and cameras; 0: 0.01
	Focal       float64    // scene.TrainedFocal's: pictures of a longer one get a wider low-pass filter; 0: none does
	// pictures are bytes: picture.Picture.Pix; otherwise they are floats: picture.Picture.Color
	Packed bool
	Depth  bool         // picture.Picture.Depth is filled
	Spread bool         // picture.Picture.Spread is, too, which Depth must be
	Looks  bool         // Show is asked for
	Kept   int64        // bytes of RAM that the caller takes once the splats are loaded, in place of them
	Beside int64        // bytes of RAM a pixel that the caller takes while it encodes a picture
	Stop   func() error // asked before each part of a picture; its error ends Add; may be nil
	// Part is called after each part of a picture, with how many of its parts there are now; it may be nil.
	Part func(done, of int)
	// Smaller says in hints how this command gets smaller pictures, as in "make smaller pictures (--size)"; "" where
	// there is no way.
	Smaller string
}

// rendersInFlight is how many parts of pictures are on the device at a time, so that it never waits for the host.
const rendersInFlight = 3

// Renderer makes pictures of a finished model, several at a time. It serves one goroutine.
type Renderer struct {
	e      *engine
	cfg    RenderConfig
	splats int // of the model
	atOnce int
	queued int             // parts ever submitted
	flying []*drawing      // incomplete pictures, in their order
	subset *subset         // nil: the device holds the whole model
	paged  *paged          // of a model in parts; nil otherwise
	whole  picture.Picture // RenderInto's
}

// drawing is a picture that is being drawn.
type drawing struct {
	camera scene.Camera
	look   Look
	into   *picture.Picture
	done   func()
	left   int      // parts that have not been read back
	parts  []int    // of a model in parts, what the picture shows
	pages  []uint32 // where that is on the device
}

var renderKinds = []recipe.Kind{recipe.Render}

// inParts says how a Renderer's engine draws.
func (cfg *RenderConfig) inParts() *parts {
	return &parts{packed: cfg.Packed, depth: cfg.Depth, beside: cfg.Beside}
}

// newRenderPlan checks the arguments of a renderer.
func newRenderPlan(d *Device, degree int, cameras []scene.Camera, cfg RenderConfig) (*renderPlan, error) {
	if len(cameras) == 0 {
		return nil, errors.New("create renderer: no camera")
	}
	if cfg.Near == 0 {
		cfg.Near = 0.01
	}
	return &renderPlan{d, degree, cameras, cfg}, nil
}

// NewRenderer uploads s to the device, for views of these cameras; it makes room for larger ones when they come. Splats
// that the device has no room for are uploaded picture by picture: s must not change until Close.
func NewRenderer(d *Device, s *scene.Splats, cameras []scene.Camera, cfg RenderConfig) (r *Renderer, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p, err := newRenderPlan(d, s.Degree, cameras, cfg)
	if err != nil {
		return nil, err
	}
	w, tooMany := p.needs(s.N)
	if tooMany != nil { // for a binding
		if w, err = p.needs(p.mostSplats(s.N)); err != nil {
			return nil, tooMany
		}
		w.loading = loadingBytes(s.N, s.Degree)
	}
	w.kept = cfg.Kept
	if err := p.checkRAM(s.N, w); err != nil {
		return nil, err
	}
	if err = tooMany; err == nil {
		r, err = p.newWhole(s, w)
		if !IsShortage(err) || vk.RefusedByDriver(err) {
			return r, err
		}
	}
	if subset, failed := p.newSubset(s, w); failed == nil {
		return subset, nil
	} else if !IsShortage(failed) {
		err = failed
	}
	return nil, err
}

// newRenderer makes a renderer of n splats without a model.
func (p *renderPlan) newRenderer(n int, w renderNeeds) (*Renderer, error) {
	s, err := newSetup(p.d.dev, p.degree, p.cameras, renderKinds)
	if err != nil {
		return nil, err
	}
	s.looks, s.parts = p.cfg.Looks, p.cfg.inParts()
	e := newEngine(s)
	if err := e.allocate(rendersInFlight); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return &Renderer{e: e, cfg: p.cfg, splats: n, atOnce: w.atOnce(p.d.host)}, nil
}

// newWhole makes a renderer of a model that the device holds.
func (p *renderPlan) newWhole(s *scene.Splats, w renderNeeds) (*Renderer, error) {
	r, err := p.newRenderer(s.N, w)
	if err != nil {
		return nil, p.tooSmall(s.N, w, err)
	}
	model := r.e.setup.model
	model.setUnit(s.N)
	if err = model.upload(s); err == nil {
		err = r.e.fitPictures(s.N)
	}
	if err == nil {
		err = errors.Join(r.e.setup.setCounters(uint32(s.N)), r.e.memory.buildToFit())
	}
	if err != nil {
		return nil, errors.Join(p.tooSmall(s.N, w, err), r.Close())
	}
	return r, nil
}

// fitPictures chooses bands and the first capacity for drawing n splats, besides a model.
func (e *engine) fitPictures(n int) error {
	if err := e.fitParts(e.setup.startBands(1)); err != nil {
		return err
	}
	if !e.memory.fitIsects(e.memory.firstIsects(n)) {
		return fmt.Errorf("load model: %w: %s", ErrTooSmall, vk.BytesText(e.setup.dev.Budget()))
	}
	return nil
}

// AtOnce returns how many pictures may be in memory at once.
func (r *Renderer) AtOnce() int { return r.atOnce }

// Bands returns how many bands a picture is drawn in now.
func (r *Renderer) Bands() int { return r.e.setup.bands }

// RenderInto makes a picture: [Height][Width][3], not clamped, in the memory of out if that is large enough.
func (r *Renderer) RenderInto(out []float32, c scene.Camera) ([]float32, error) {
	return r.drawInto(out, c, LookColor)
}

// Show is RenderInto for a look, which needs RenderConfig.Looks. If a view does not fit the device, and the error is a
// shortage, others can be drawn afterwards: pictures in flight are dropped, and the number of bands starts again.
func (r *Renderer) Show(out []float32, c scene.Camera, look Look) ([]float32, error) {
	if !r.cfg.Looks {
		return nil, errors.New("show model: it supports colours only")
	}
	out, err := r.drawInto(out, c, look)
	if !IsShortage(err) {
		return out, err
	}
	r.flying = nil
	failed := r.e.programs.waitForAll()
	if failed == nil {
		failed = r.refit(r.e.setup.startBands(1))
	}
	if failed != nil {
		err = errors.Join(failed, err)
	}
	return out, err
}

// drawInto draws a picture and waits for it.
func (r *Renderer) drawInto(out []float32, c scene.Camera, look Look) ([]float32, error) {
	if r.cfg.Packed {
		return nil, errors.New("render: pictures are bytes")
	}
	p := &r.whole
	err := r.add(c, look, p, func() {})
	if err == nil {
		err = r.Drain()
	}
	if err != nil {
		return nil, err
	}
	n := c.Width * c.Height
	if cap(out) < 3*n {
		out = make([]float32, 3*n)
	}
	out = out[:3*n]
	for i := range n {
		copy(out[3*i:3*i+3], p.Color[4*i:])
	}
	return out, nil
}

// Add has the view of a camera drawn into a picture, whose memory is used again where it is large enough. done is
// called by Add or Drain once the picture is complete, picture by picture in the order in which they were added.
func (r *Renderer) Add(c scene.Camera, into *picture.Picture, done func()) error {
	return r.add(c, LookColor, into, done)
}

func (r *Renderer) add(c scene.Camera, look Look, into *picture.Picture, done func()) error {
	if c.Distortion != nil && !r.e.setup.lens.bent {
		return fmt.Errorf("render %s: through a lens, and the renderer was made for cameras without", c.Name)
	}
	if c.Distortion != nil && c.Moved() && !r.e.setup.lens.shutter {
		return fmt.Errorf("render %s: of a camera that moves, and the renderer was made for others", c.Name)
	}
	if err := r.makeRoom(c); err != nil {
		return err
	}
	n := c.Width * c.Height
	into.Width, into.Height = c.Width, c.Height
	into.Pix, into.Color, into.Depth, into.Spread = into.Pix[:0], into.Color[:0], into.Depth[:0], into.Spread[:0]
	if r.cfg.Packed {
		into.Pix = sized(into.Pix, 4*n)
	} else {
		into.Color = sized(into.Color, 4*n)
	}
	if r.cfg.Depth {
		into.Depth = sized(into.Depth, n)
	}
	if r.cfg.Spread {
		into.Spread = sized(into.Spread, n)
	}
	d := &drawing{camera: c, look: look, into: into, done: done}
	if r.paged != nil {
		var err error
		if d.parts, err = r.paged.choose(&c); err != nil {
			return errors.Join(err, r.Drain()) // those before it are complete
		}
	}
	r.flying = append(r.flying, d)
	return r.submit(d)
}

// sized returns a slice of n elements, in the memory of s where it is large enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Drain completes all pictures.
func (r *Renderer) Drain() error {
	for {
		if none, err := r.Next(); none || err != nil {
			return err
		}
	}
}

// Next completes the oldest part that is in flight; none says that there was none.
func (r *Renderer) Next() (none bool, err error) {
	for i := range r.e.programs.frames {
		if f := r.e.programs.frames[(r.queued+i)%len(r.e.programs.frames)]; f.ticket != 0 {
			_, err := r.collectPart(f)
			return false, err
		}
	}
	return true, nil
}

func (r *Renderer) makeRoom(c scene.Camera) error {
	e := r.e
	size, err := sizeOf([]scene.Camera{c})
	if err != nil {
		return err
	}
	if size = e.setup.drawn.union(size); size == e.setup.drawn {
		return nil
	}
	if err := r.Drain(); err != nil {
		return err
	}
	e.setup.drawn = size
	return r.refit(e.setup.startBands(1))
}

// refit makes room for pictures in bands or more. Nothing is in flight.
func (r *Renderer) refit(bands int) error {
	e := r.e
	if err := e.programs.free(); err != nil {
		return err
	}
	if err := e.fitParts(bands); err != nil {
		return err
	}
	capacity := e.memory.fewerIsects(max(e.setup.isectCapacity, e.memory.firstIsects(e.setup.model.capacity())))
	if capacity == 0 {
		return fmt.Errorf("render: %w: a picture of %d pixels", ErrTooSmall, e.setup.drawn.maxPixels)
	}
	e.setup.isectCapacity = capacity
	return e.memory.buildToFit()
}

// submit queues all parts of a picture. If an earlier part does not fit, they are queued together with it.
func (r *Renderer) submit(d *drawing) error {
	bands := r.e.setup.bands
	d.left = bands
	whole := true // one load does for all bands
	if r.paged != nil {
		if err := r.paged.load(d); err != nil {
			return err
		}
	}
	if r.subset != nil {
		fits, again, err := r.loadVisible(&d.camera, 0, d.camera.Height)
		if again || err != nil {
			return err
		}
		whole = fits
	}
	for band := range bands {
		if r.cfg.Stop != nil {
			if err := r.cfg.Stop(); err != nil {
				return err
			}
		}
		if !whole {
			if queued, err := r.loadBand(d, band); queued || err != nil {
				return err
			}
		}
		f := r.e.programs.frames[r.queued%len(r.e.programs.frames)]
		again, err := r.collectPart(f)
		if err != nil {
			return err
		}
		if again {
			return nil // with all that were flying
		}
		if err := r.submitPart(f, d, band); err != nil {
			return err
		}
	}
	return nil
}

// submitPart queues a part of a picture on a frame that has nothing in flight.
func (r *Renderer) submitPart(f *frame, d *drawing, band int) error {
	e := r.e
	f.part.drawn = d
	if f.part.first, f.part.height = partRows(d.camera.Height, band, e.setup.bands); f.part.height == 0 {
		d.left-- // a small picture among large ones
		f.part.drawn = nil
		r.deliver()
		return nil
	}
	if err := e.programs.recordBand(f, band); err != nil {
		return err
	}
	f.lens.set(&d.camera)
	viewParams(&f.hostParams.View, &d.camera, r.cfg.Near, e.setup.model.Degree, r.cfg.Antialiased, r.cfg.Background)
	f.hostParams.View.Widen = float32(r.cfg.widen(&d.camera))
	f.hostParams.Unit, f.hostParams.Look = uint32(r.queued), uint32(d.look)
	if d.look == LookDepth {
		f.hostParams.View.Background = [3]float32{}
	}
	if r.cfg.Depth {
		bare := &vk.Host(f.part.bare)[0]
		*bare = *f.hostParams
		bare.View.Background, bare.Look = [3]float32{}, layout.LookDepth
	}
	before := noPhoto
	if r.paged != nil {
		before = e.setup.listed(f, d.pages)
	}
	if err := e.programs.submit(f, recipe.Unit{Kind: recipe.Render}, false, &before); err != nil {
		return err
	}
	r.queued++
	return nil
}

// collectPart waits for the part on f and reads it back. again says that it did not fit, and that all pictures in
// flight are queued again.
func (r *Renderer) collectPart(f *frame) (again bool, err error) {
	if f.ticket == 0 {
		return false, nil
	}
	if err := r.e.programs.wait(f); err != nil {
		return false, err
	}
	if f.hostReport.Failed != 0 {
		return true, r.recover(*f.hostReport)
	}
	if err := f.verifier.judge(f.unit); err != nil {
		return false, err
	}
	f.readPart(&r.cfg)
	f.part.drawn.left--
	if r.cfg.Part != nil {
		r.cfg.Part(r.e.setup.bands-f.part.drawn.left, r.e.setup.bands)
	}
	r.deliver()
	return false, nil
}

// deliver hands over the pictures of which no part is missing.
func (r *Renderer) deliver() {
	for len(r.flying) > 0 && r.flying[0].left == 0 {
		d := r.flying[0]
		r.flying = r.flying[1:]
		d.done()
	}
}

// recover makes room for what did not fit and queues all pictures in flight again, even those that were read back in
// part: the number of bands may have changed.
func (r *Renderer) recover(report layout.Report) error {
	e := r.e
	if err := e.programs.waitForAll(); err != nil {
		return err
	}
	bands := e.setup.bands
	if err := e.recover(&report, e.setup.model.capacity()); err != nil {
		return err
	}
	if e.setup.bands != bands {
		if err := r.refit(e.setup.bands); err != nil {
			return err
		}
	}
	return r.requeue()
}

// requeue queues all pictures in flight from their first parts on. Nothing is on the device.
func (r *Renderer) requeue() error {
	again := r.flying
	r.flying = nil
	for _, d := range again {
		r.flying = append(r.flying, d)
		if err := r.submit(d); err != nil {
			return err
		}
	}
	return nil
}

// readPart copies a part to its place in the picture.
func (f *frame) readPart(cfg *RenderConfig) {
	p := f.part.drawn.into
	from, n := f.part.first*p.Width, f.part.height*p.Width
	if cfg.Packed {
		copy(p.Pix[4*from:4*(from+n)], f.part.color.Host())
	} else {
		copy(p.Color[4*from:4*(from+n)], vk.Host(vk.Cast[float32](f.part.color.View)))
	}
	if !cfg.Depth {
		return
	}
	for i, x := range vk.Host(f.part.depth)[:n] {
		z, share := float32(0), 1-x[3]
		if share > 0 {
			z = x[0] / share
		}
		p.Depth[from+i] = z
		if cfg.Spread {
			p.Spread[from+i] = 0
			if share > 0 {
				p.Spread[from+i] = float32(math.Sqrt(max(float64(x[2])/float64(share)-float64(z)*float64(z), 0)))
			}
		}
	}
}

// Close frees the renderer's device memory.
func (r *Renderer) Close() error {
	return errors.Join(r.e.close(), r.subset.free(r.e.setup.dev), r.paged.close())
}
