package picture

import (
	"image"
	"io"
	"math"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

const (
	// normalReach is how many pixels the windows that planes are fitted to reach from their middles.
	normalReach = 2
	// normalRows is how many rows of pixels are done together.
	normalRows = 32
	// normalPixels is of how many pixels of a window the depths must be known.
	normalPixels = 6
	// normalNearer is how much farther windows must be closer to a plane, by the square of how many pixels.
	normalNearer = 8
	// normalCover is how much of a pixel splats must cover for its depth to count.
	normalCover = 0.5
	// bandBytes is what a worker keeps of a pixel in its rows: a ray, an inverse distance and a plane.
	bandBytes = 24 + 8 + 32
)

// NormalBytes is what Normals takes for a pixel: the picture that it makes, and what its workers keep. There are as
// many of these as that allows.
const NormalBytes = 4 + 12

type Rays struct {
	at       func(x, y float64) geom.Vec // of length 1, in the camera's axes; pixel centres are at +0.5
	distance bool                        // depths are distances, not along the camera's axis
}

func RaysOf(c scene.Camera) Rays {
	return Rays{at: func(x, y float64) geom.Vec {
		u, v := (x-c.Cx)/c.Fx, (y-c.Cy)/c.Fy
		if c.Model != scene.Fisheye {
			return geom.Vec{u, v, 1}.Unit()
		}
		r := math.Hypot(u, v)
		if r == 0 {
			return geom.Vec{0, 0, 1}
		}
		sin, cos := math.Sincos(r)
		return geom.Vec{u * sin / r, v * sin / r, cos}
	}}
}

func PanoramaRays(width, height int) Rays {
	return Rays{distance: true, at: func(x, y float64) geom.Vec { return panoramaDirection(x, y, width, height) }}
}

// Normals are the directions in which the surfaces look that the picture's depths show, as a picture: red, green, blue
// are x, y, z, 0 to 255 for -1 to 1, in the camera's axes (right, down, ahead); 0 where nothing is known. For every
// pixel it is that of the plane through the window, of those that the pixel is in, whose depths are closest to one: on
// the pixel's own side of an edge.
func (p *Picture) Normals(rays Rays) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
	workers := max((NormalBytes-4)*p.Height/(bandBytes*(normalRows+4*normalReach)), 1)
	parallel.Workers((p.Height+normalRows-1)/normalRows, workers, func() func(part int) {
		b := &normalBand{width: p.Width}
		return func(part int) {
			first := part * normalRows
			last := min(first+normalRows, p.Height)
			b.prepare(p, rays, max(first-2*normalReach, 0), min(last+2*normalReach, p.Height))
			b.fitAll(max(first-normalReach, 0), min(last+normalReach, p.Height))
			b.draw(out, first, last)
		}
	})
	return out
}

type normalBand struct {
	width, first, last int
	rays               []geom.Vec
	near               []float64 // inverse distances; 0: not known
	planes             []plane
}

// plane is the fit to the window around a pixel.
type plane struct {
	normal geom.Vec // towards the camera
	off    float64  // mean square of the differences in inverse distance, in parts of it; negative: there is none
}

// prepare takes rows of a picture, in place of others.
func (b *normalBand) prepare(p *Picture, rays Rays, first, last int) {
	n := (last - first) * p.Width
	b.first, b.last = first, last
	b.rays, b.near = slices.Grow(b.rays[:0], n)[:n], slices.Grow(b.near[:0], n)[:n]
	b.planes = slices.Grow(b.planes[:0], n)[:n]
	clear(b.near)
	for i := range b.near {
		pixel := first*p.Width + i
		z := float64(p.Depth[pixel])
		if z == 0 || p.covered(pixel) < normalCover {
			continue
		}
		ray := rays.at(float64(pixel%p.Width)+0.5, float64(pixel/p.Width)+0.5)
		scale := 1.0
		if !rays.distance {
			scale = ray[2]
		}
		if scale > 0 {
			b.rays[i], b.near[i] = ray, scale/z
		}
	}
}

func (b *normalBand) draw(out *image.RGBA, first, last int) {
	for y := first; y < last; y++ {
		for x := range b.width {
			pixel := out.Pix[4*(y*b.width+x):]
			pixel[3] = 255
			if n, known := b.normal(x, y); known {
				for k := range n {
					pixel[k] = scene.ToByte(255 * (n[k]*0.5 + 0.5))
				}
			}
		}
	}
}

// covered is the share of a pixel that splats cover.
func (p *Picture) covered(pixel int) float32 {
	if len(p.Color) > 0 {
		return 1 - p.Color[4*pixel+3]
	}
	return float32(p.Pix[4*pixel+3]) / 255
}

// fitAll fits planes to the windows around the pixels of some rows.
func (b *normalBand) fitAll(first, last int) {
	for y := first; y < last; y++ {
		for x := range b.width {
			b.planes[(y-b.first)*b.width+x] = b.fit(x, y)
		}
	}
}

// fit fits a plane to a window. The inverse distance along a ray r to the plane n'p = d is n'r / d: a linear function
// of the ray, which is taken apart along that of the middle and across it.
func (b *normalBand) fit(x, y int) plane {
	none := plane{off: -1}
	middle := (y-b.first)*b.width + x
	ahead := b.rays[middle]
	if b.near[middle] == 0 {
		return none
	}
	right := geom.Vec{ahead[2], 0, -ahead[0]}
	if math.Abs(ahead[1]) > 0.9 {
		right = geom.Vec{0, -ahead[2], ahead[1]}
	}
	right = right.Unit()
	down := ahead.Cross(right)
	var n, u, v, w, uu, uv, vv, uw, vw, ww float64
	for j := max(y-normalReach, b.first); j <= min(y+normalReach, b.last-1); j++ {
		for i := max(x-normalReach, 0); i <= min(x+normalReach, b.width-1); i++ {
			at := (j-b.first)*b.width + i
			if b.near[at] == 0 {
				continue
			}
			along := 1 / b.rays[at].Dot(ahead)
			a, c, d := b.rays[at].Dot(right)*along, b.rays[at].Dot(down)*along, b.near[at]*along
			n, u, v, w = n+1, u+a, v+c, w+d
			uu, uv, vv, uw, vw, ww = uu+a*a, uv+a*c, vv+c*c, uw+a*d, vw+c*d, ww+d*d
		}
	}
	if n < normalPixels {
		return none
	}
	uu, uv, vv = uu-u*u/n, uv-u*v/n, vv-v*v/n
	uw, vw, ww = uw-u*w/n, vw-v*w/n, ww-w*w/n
	det := uu*vv - uv*uv
	if !(det > 1e-6*(uu+vv)*(uu+vv)) {
		return none
	}
	a, c := (uw*vv-vw*uv)/det, (vw*uu-uw*uv)/det
	normal := right.Mul(a).Add(down.Mul(c)).Add(ahead.Mul((w - a*u - c*v) / n))
	length := normal.Length()
	if !(length > 0) {
		return none
	}
	return plane{normal.Mul(-1 / length), max(ww-a*uw-c*vw, 0) / (w * w / n)}
}

func (b *normalBand) normal(x, y int) (n geom.Vec, known bool) {
	middle := (y-b.first)*b.width + x
	if b.near[middle] == 0 {
		return n, false
	}
	best := math.Inf(1)
	for j := max(y-normalReach, b.first); j <= min(y+normalReach, b.last-1); j++ {
		for i := max(x-normalReach, 0); i <= min(x+normalReach, b.width-1); i++ {
			p := &b.planes[(j-b.first)*b.width+i]
			off := (p.off + 1e-12) * (1 + normalNearer*float64((i-x)*(i-x)+(j-y)*(j-y)))
			if p.off >= 0 && off < best && p.normal.Dot(b.rays[middle]) < 0 { // what looks away cannot be seen
				best, n, known = off, p.normal, true
			}
		}
	}
	return n, known
}

func WriteNormals(path string, normals *image.RGBA) error {
	return atomicfile.Write(path, func(w io.Writer) error { return photo.EncodePNG(w, normals) })
}
