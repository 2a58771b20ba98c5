package photo

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Places says where the pixels of a camera's picture lie in pictures that were taken with its photo, such as depth
// maps, and along which rays.
type Places struct {
	cam    *scene.Camera
	lens   *sampler // nil: the picture is the photo, scaled
	sx, sy float64  // pixels of the other picture in one of the camera's
}

// PlacesIn prepares for another picture of width x height pixels of what the photo shows.
func PlacesIn(cam *scene.Camera, width, height int) (*Places, error) {
	p := &Places{cam: cam, sx: float64(width) / float64(cam.Width), sy: float64(height) / float64(cam.Height)}
	var err error
	if cam.Lens != nil {
		p.lens, err = newSampler(cam, width, height)
	}
	return p, err
}

// At returns the pixel of the other picture at the centre of the camera's pixel; ok is false where there is none.
func (p *Places) At(x, y int) (u, v int, ok bool) {
	px, py := float64(x)+0.5, float64(y)+0.5
	if p.lens == nil {
		return int(px * p.sx), int(py * p.sy), true
	}
	fx, fy, ok := p.lens.at(px, py)
	if p.lens.period > 0 {
		fx = math.Mod(fx+p.lens.period, p.lens.period)
	}
	ok = ok && fx >= 0 && fy >= 0 && fx < p.lens.o.Width && fy < p.lens.o.Height
	return int(fx), int(fy), ok
}

// Along returns how far along the ray of a pixel one unit of its length takes in depth, which is camera z.
func (p *Places) Along(x, y int) float64 {
	u, v := (float64(x)+0.5-p.cam.Cx)/p.cam.Fx, (float64(y)+0.5-p.cam.Cy)/p.cam.Fy
	if p.cam.Model == scene.Fisheye {
		return math.Cos(math.Hypot(u, v))
	}
	return 1 / math.Sqrt(1+u*u+v*v)
}

// Turn brings a direction from the axes of the camera that took the photo to those of the camera itself.
func (p *Places) Turn(direction [3]float64) [3]float64 {
	if p.lens == nil {
		return direction
	}
	return geom.Rotate(geom.Transposed(p.lens.r), direction)
}

// Turned reports whether the camera looks elsewhere than the one that took the photo, as the faces of a panorama do:
// depths along the photo's axis say nothing of its own then.
func (p *Places) Turned() bool {
	return p.lens != nil && (p.lens.period > 0 || p.lens.r != geom.Identity)
}
