package pipeline

import (
	"errors"
	"fmt"

	"vksplat/scene"
	"vksplat/vk"
)

// picturize renders a camera into host memory: [Height][Width][3], not clamped. Nothing may be in flight.
func (e *engine) picturize(c scene.Camera, degree int, near float64, antialiased bool, background [3]float32) ([]float32, error) {
	if c.Width < 1 || c.Height < 1 || c.Width*c.Height > e.maxPixels || tiles(c.Width)*tiles(c.Height) > e.maxTiles || tiles(c.Height) > e.maxRows {
		return nil, fmt.Errorf("pipeline: render %s: %dx%d pixels, more than this renderer was made for", c.Name, c.Width, c.Height)
	}
	f := e.frames[0]
	for {
		viewParams(&f.hostParams.View, &c, near, degree, antialiased, background)
		f.hostParams.Unit = 0 // never the number of a unit of training
		if err := e.submit(f, unit{kind: unitRender}, vk.View{}); err != nil {
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
	pixels := vk.Host(e.picture)
	out := make([]float32, 3*c.Width*c.Height)
	for i := range c.Width * c.Height {
		copy(out[3*i:], pixels[i][:3])
	}
	return out, nil
}

// bytesPerSplat returns what a splat costs beside its chunk: projected, extents, keys, the sort's copies, offsets, v_projected. A refinement needs less.
func (e *engine) bytesPerSplat() int64 {
	if e.strategy.absgrad {
		return 36 + 12 + 4 + 4*4 + 4 + 36 + 12 + 8
	}
	return 36 + 12 + 4 + 4*4 + 4 + 36 + 12
}

// minIsects is the smallest number of (tile, splat) pairs that a band is made for.
const minIsects = 1 << 14

// splatCeiling returns the most splats that a model may grow to: what was asked for, what memory allows, what bindings span. Whole chunks, so that
// buffers made for all chunks fit too; each splat is granted four isects.
func (e *engine) splatCeiling(asked int) int {
	size := int64(e.model.chunkSplats)
	perChunk := size * (int64(e.model.rows())*4 + e.bytesPerSplat() + 4*e.bytesPerIsect())
	s := e.dev.Stats()
	// Memory comes in blocks of a few MiB for each kind of use; a small budget loses a part to what is left over in them.
	slack := min(e.dev.Budget()/3, 16<<20)
	free := (e.dev.Budget()-slack-s.InUse-e.pixelBytes())*9/10 - int64(e.model.nParams)*size*4 - minIsects*e.bytesPerIsect()
	chunks := max(0, free/perChunk)
	if chunks == 0 && free > e.model.chunkBytes()+size*e.bytesPerSplat() {
		chunks = 1
	}
	n := min(chunks, maxBinding(e.dev)/36/size, 1<<30/size) * size
	if asked > 0 {
		n = min(n, int64(asked))
	}
	return int(n)
}

// RenderConfig says how pictures are made.
type RenderConfig struct {
	Background  [3]float32 // 0..1
	Antialiased bool       // the model was trained so
	Near        float64    // near plane, in the frame of splats and cameras; 0: 0.01
}

// Renderer makes pictures of a finished model.
type Renderer struct {
	e   *engine
	cfg RenderConfig
	n   int
}

// NewRenderer puts s on the device, for views no larger than the largest of cameras.
func NewRenderer(d *Device, s *scene.Splats, cameras []scene.Camera, cfg RenderConfig) (*Renderer, error) {
	if cfg.Near == 0 {
		cfg.Near = 0.01
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(cameras) == 0 {
		return nil, errors.New("pipeline: create renderer: no camera")
	}
	e, err := newEngine(d.dev, s.Degree, cameras, []unitKind{unitRender}, 1, false)
	if err != nil {
		return nil, err
	}
	if most := e.splatCeiling(0); s.N > most {
		return nil, fmt.Errorf("pipeline: create renderer: %w: %d splats, %d fit", ErrTooSmall, s.N, most)
	}
	if err := e.load(s, 1, 1); err != nil {
		return nil, err
	}
	return &Renderer{e: e, cfg: cfg, n: s.N}, e.build()
}

// Render makes a picture: [Height][Width][3], not clamped.
func (r *Renderer) Render(c scene.Camera) ([]float32, error) {
	return r.e.picturize(c, r.e.model.degree, r.cfg.Near, r.cfg.Antialiased, r.cfg.Background)
}

// Close frees the renderer's device memory.
func (r *Renderer) Close() error { return r.e.close() }
