package pipeline

import (
	"errors"

	"vksplat/pipeline/recipe"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// parts has an engine draw pictures a band of rows of tiles at a time, each by a program of its own, which copies it to
// mapped memory. So neither device memory nor a binding needs room for a whole picture, and several pictures are in
// flight. Bands do not change bytes: each is drawn by the picture's own camera.
type parts struct {
	packed bool // bytes are read back, not floats
	depth  bool // depths are drawn too
	// bytes a pixel that the caller takes of RAM while it encodes a picture: RenderConfig.Beside
	beside int64
}

// framePart holds the buffers of a frame for the part that is in flight on it.
type framePart struct {
	band  int              // that its program draws
	color vk.Slice[uint32] // [pixels] packed or [pixels][4] floats, mapped
	// [pixels] sum of weight times z, of weights, of weight times z squared, final transmittance; mapped
	depth  vk.Slice[[4]float32]
	bare   vk.Slice[layout.StepParams] // [1] params without background, mapped
	list   vk.Slice[uint32]            // [listWords] of a model in parts: see pages.listed; mapped
	drawn  *drawing                    // what the part is of
	first  int                         // the part's first row of pixels
	height int                         // and its rows
}

// words returns how many words of a pixel are read back as its colour.
func (p *parts) words() int {
	if p.packed {
		return 1
	}
	return 4
}

// bytes returns the size of a pixel as it is read back.
func (p *parts) bytes() int64 {
	if p.depth {
		return 4*int64(p.words()) + 16
	}
	return 4 * int64(p.words())
}

// partPixels returns how many pixels the largest of a picture's bands has.
func (s viewSize) partPixels(bands int) int {
	return min(s.maxPixels, s.maxWidth*layout.TileSize*((s.maxRows+bands-1)/bands))
}

// partRows returns the rows of pixels [first, first + height) of a band of a picture.
func partRows(height, band, bands int) (first, rows int) {
	n := layout.Tiles(height)
	first = n * band / bands * layout.TileSize
	return first, min(height, n*(band+1)/bands*layout.TileSize) - first
}

// recordPart lists the drawing of a band and its copies to mapped memory, which may be larger: programs are built for
// more bands before it is reallocated.
func (v *view) recordPart(band int) {
	v.makeIsects(band)
	v.rasterize(band, false)
	if v.s.parts.packed {
		packed := vk.ScratchOf[uint32](v.r, "packed_pixels", v.size.maxPixels)
		v.pack(v.render, packed)
		v.r.Copy(v.f.part.color.At(0, v.size.maxPixels).View, packed.View)
	} else {
		v.r.Copy(v.f.part.color.At(0, 4*v.size.maxPixels).View, v.render.View)
	}
	if !v.s.parts.depth {
		return
	}
	v.look(v.f.part.bare) // depth_keys -> shapes paints
	depths := vk.ScratchOf[[4]float32](v.r, "render_depth", v.size.maxPixels)
	v.blendTiles(v.f.part.bare, depths, band, false)
	v.r.Copy(v.f.part.depth.At(0, v.size.maxPixels).View, depths.View)
}

// pack makes bytes of a picture.
func (v *view) pack(render vk.Slice[[4]float32], packed vk.Slice[uint32]) {
	n := v.size.maxPixels
	v.r.Dispatch(&shaders.Pack{Render: render, PackedPixels: packed, Push: shaders.PackPush{N: uint32(n)}},
		vk.Items(n, 256))
}

// phantomPart returns the mapped buffers of a frame as phantoms.
func (s *setup) phantomPart() framePart {
	n := s.drawn.partPixels(s.bands)
	p := framePart{color: phantom[uint32](s.dev, n*s.parts.words(), 4)}
	if s.parts.depth {
		p.depth, p.bare = phantom[[4]float32](s.dev, n, 16), phantom[layout.StepParams](s.dev, 1, 1<<10)
	}
	if s.model.pages != nil {
		p.list = phantom[uint32](s.dev, s.model.pages.listWords(), 4)
	}
	return p
}

// fitParts makes as few bands as there is room for besides the model, and the mapped memory that they are read back to.
// There are no programs.
func (e *engine) fitParts(bands int) error {
	for ; ; bands = min(2*bands, e.setup.mostBands()) {
		e.setup.bands = bands
		err := e.allocateParts()
		if err == nil && (e.memory.isectLimit(bands) >= minIsects || bands == e.setup.mostBands()) {
			return nil
		}
		if err != nil && (!errors.Is(err, vk.ErrOutOfMemory) || bands == e.setup.mostBands()) {
			return err
		}
	}
}

// allocateParts makes the mapped memory of all frames.
func (e *engine) allocateParts() error {
	n := e.setup.drawn.partPixels(e.setup.bands)
	for _, f := range e.programs.frames {
		f.freePart(e.setup.dev)
	}
	for _, f := range e.programs.frames {
		var err error
		f.part.band = 0
		if f.part.color, err = vk.Make[uint32](e.setup.dev, vk.Readback, n*e.setup.parts.words(),
			"picture staging"); err != nil {
			return err
		}
		if e.setup.model.pages != nil {
			if f.part.list, err = vk.Make[uint32](e.setup.dev, vk.Upload, e.setup.model.pages.listWords(),
				"page list"); err != nil {
				return err
			}
		}
		if !e.setup.parts.depth {
			continue
		}
		if f.part.depth, err = vk.Make[[4]float32](e.setup.dev, vk.Readback, n, "depth staging"); err != nil {
			return err
		}
		if f.part.bare, err = vk.Make[layout.StepParams](e.setup.dev, vk.Upload, 1,
			"params without background"); err != nil {
			return err
		}
	}
	return nil
}

// freePart frees the frame's mapped memory for parts.
func (f *frame) freePart(dev *vk.Device) {
	for _, v := range []*vk.View{&f.part.color.View, &f.part.depth.View, &f.part.bare.View, &f.part.list.View} {
		if !v.IsZero() {
			dev.Free(*v)
			*v = vk.View{}
		}
	}
}

// recordBand makes f's program draw a band.
func (p *programs) recordBand(f *frame, band int) error {
	s := slot{&f.programs[recipe.Render], f, recipe.Render, false}
	if f.part.band != band {
		if err := s.clear(); err != nil {
			return err
		}
	}
	f.part.band = band
	return p.refresh(s)
}
