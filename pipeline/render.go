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
		f.hostParams.Unit++
		if err := e.submit(f, unit{kind: unitRender, number: f.hostParams.Unit}, vk.View{}); err != nil {
			return nil, err
		}
		if err := e.wait(f); err != nil {
			return nil, err
		}
		if f.hostReport.Failed == 0 {
			break
		}
		r := *f.hostReport
		if err := e.recover(&r); err != nil {
			return nil, err
		}
	}
	pixels := vk.Host(e.picture)
	out := make([]float32, 3*c.Width*c.Height)
	for i := range c.Width * c.Height {
		copy(out[3*i:], pixels[i][:3])
	}
	return out, nil
}

// splatCeiling returns the most splats that a model may grow to: what was asked for, what memory allows, what bindings span.
func (e *engine) splatCeiling(asked int) int {
	l := e.dev.Info().Limits
	perSplat := int64(e.model.rows())*4 + 120 + 8*bytesPerIsect/2
	s := e.dev.Stats()
	free := (e.dev.Budget() - s.Allocated - int64(e.maxPixels)*80) * 9 / 10
	chunks := max(0, free/(perSplat*int64(e.model.chunkSplats)))
	if chunks == 0 && free > e.model.chunkBytes() {
		chunks = 1
	}
	n := min(chunks*int64(e.model.chunkSplats), l.MaxStorageBufferRange/36, 1<<30)
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
		return nil, fmt.Errorf("pipeline: create renderer: %w: %d splats, %d fit", errTooSmall, s.N, most)
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
