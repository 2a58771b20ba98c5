package pipeline

import (
	"errors"
	"math"

	"vksplat/scene"
)

// ErrFrameTooFull says that a frame's camera sees more than fits the memory that training has. A smaller frame may do.
var ErrFrameTooFull = errors.New("show model: the view holds more splats than fit in memory")

// Show makes a picture for a viewer: as RenderInto, but of a look, and without changing the plan, the bands and the
// buffers of training. The size is reduced to that of the photos, and a view that does not fit is ErrFrameTooFull. It
// needs TrainerOptions.Interludes, and returns the camera that was drawn.
func (t *Trainer) Show(out []float32, c scene.Camera, look Look) ([]float32, scene.Camera, error) {
	e := t.shards.first.e
	if !e.setup.looks {
		return nil, c, errors.New("show model: this training was started without a viewer")
	}
	if err := t.queue.wait(); err != nil {
		return nil, c, err
	}
	c = e.setup.reduced(c)
	r, err := e.draw(c, &t.run.cfg, look)
	if err != nil {
		return nil, c, err
	}
	if r.Failed != 0 {
		return nil, c, errors.Join(ErrFrameTooFull, e.clearFailures())
	}
	out, err = e.drawnPicture(out, c)
	return out, c, err
}

// reduced gives a camera's view no more pixels, tiles and rows of tiles than programs are made for.
func (s *setup) reduced(c scene.Camera) scene.Camera {
	for f := 1.0; ; f *= 0.97 {
		small := c
		if f < 1 {
			small = c.Rescaled(max(1, int(math.Round(f*float64(c.Width)))),
				max(1, int(math.Round(f*float64(c.Height)))))
		}
		if s.drawn.union(viewSize{}.with(&small)) == s.drawn {
			return small
		}
	}
}
