package photo

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// sampler finds where the pixels of a camera lie in its photo.
type sampler struct {
	cam    *scene.Camera
	o      *scene.Optics
	r      [9]float64 // from the camera's axes to the lens's
	direct bool       // the camera's plane is the lens's
	period float64    // pixels after which a photo repeats sideways; 0: never
}

// newSampler prepares for a photo of width x height pixels.
func newSampler(cam *scene.Camera, width, height int) (*sampler, error) {
	o, err := cam.Lens.Calibration.Optics(width, height)
	if err != nil {
		return nil, err
	}
	s := &sampler{cam: cam, o: o, r: cam.Lens.R}
	want := scene.TangentPlane
	if cam.Model == scene.Fisheye {
		want = scene.AnglePlane
	}
	s.direct = o.Plane == want && s.r == geom.Identity
	if o.Plane == scene.NoPlane {
		s.period = o.Width
	}
	return s, nil
}

// at gives the place in the photo of a place in the camera's picture, both in pixels whose centres are at +0.5. It may
// lie outside the photo; ok is false where there is none.
func (s *sampler) at(px, py float64) (x, y float64, ok bool) {
	u, v := (px-s.cam.Cx)/s.cam.Fx, (py-s.cam.Cy)/s.cam.Fy
	ray := [3]float64{u, v, 1}
	if s.cam.Model == scene.Fisheye {
		theta := math.Sqrt(float64(u*u) + float64(v*v))
		if theta > scene.WidestFisheye {
			return 0, 0, false
		}
		if !s.direct && theta > 0 {
			sin, cos := math.Sincos(theta)
			ray = [3]float64{u / theta * sin, v / theta * sin, cos}
		}
	}
	if s.direct {
		return s.o.FromPlane(u, v)
	}
	return s.o.Project(geom.Rotate(s.r, ray))
}

// inside says whether a place is in the photo. Half a pixel beyond is: the crop of perspective lenses is exact to that.
func (s *sampler) inside(x, y float64) bool {
	return s.period > 0 || x >= -0.5 && x <= s.o.Width+0.5 && y >= -0.5 && y <= s.o.Height+0.5
}

// cellSide is the side in pixels of the cells within which places are interpolated. To compute a place takes up to 200
// ns, to interpolate one about 5.
const cellSide = 8

// cellError is the error in source pixels that interpolation may have in the middle of a cell; other cells are computed
// pixel by pixel.
const cellError = 1.0 / 1024

// node is a place computed at the corner of a cell.
type node struct {
	x, y float64
	ok   bool
}

// cell is what a row of cells knows about one of them.
type cell struct {
	smooth bool // places are interpolated
	shape
}

// shape is the size of a pixel's footprint in the photo.
type shape struct {
	sx, sy       float64 // source pixels
	across, down *axisWeights
}

// maxFootprint bounds a footprint, so that a photo with an absurd calibration costs no more than time for a sane one.
// The rows of a panorama near its poles are seen all around by a few pixels.
const maxFootprint = 32

func (s *sampler) shape(sx, sy float64) shape {
	if sy = min(sy, maxFootprint); s.period == 0 {
		sx = min(sx, maxFootprint)
	}
	cubic := s.o.Plane != scene.TangentPlane
	return shape{sx, sy, weightsFor(sx, cubic), weightsFor(sy, cubic)}
}

type footprint struct {
	x, y float64
	ok   bool // it lies in the photo
	*shape
}

// placer gives places row by row. Smooth maps need one exact computation per cell and a check in its middle: the rest
// is cubic interpolation between 4 x 4 nodes.
type placer struct {
	s     *sampler
	cells []cell
	nodes [4][]node // of the rows of nodes above, at, below and two below the row of cells
	row   int       // of cells; -1 before the first
	line  []node    // nodes interpolated to one row of pixels
	out   []footprint
	own   []shape // of the pixels of a row that are not interpolated
}

func newPlacer(s *sampler) *placer {
	n := (s.cam.Width + cellSide - 1) / cellSide
	p := &placer{s: s, cells: make([]cell, n), row: -1, line: make([]node, n+3), out: make([]footprint, s.cam.Width),
		own: make([]shape, s.cam.Width)}
	for i := range p.nodes {
		p.nodes[i] = make([]node, n+3)
	}
	return p
}

// fill computes a row of nodes: node i is at the centre of pixel (i-1) cellSide.
func (p *placer) fill(nodes []node, row int) {
	for i := range nodes {
		n := &nodes[i]
		n.x, n.y, n.ok = p.s.at(float64((i-1)*cellSide)+0.5, float64(row*cellSide)+0.5)
	}
}

// lagrange gives the weights of nodes at -1, 0, 1 and 2 for a place t in 0..1.
func lagrange(t float64) [4]float64 {
	a, b, c := t+1, t-1, t-2
	return [4]float64{-t * b * c / 6, a * b * c / 2, -a * t * c / 2, a * t * b / 6}
}

// mixNodes is the sum of four weighted nodes.
func mixNodes(w *[4]float64, a, b, c, d node) node {
	return node{
		float64(w[0]*a.x) + float64(w[1]*b.x) + float64(w[2]*c.x) + float64(w[3]*d.x),
		float64(w[0]*a.y) + float64(w[1]*b.y) + float64(w[2]*c.y) + float64(w[3]*d.y),
		a.ok && b.ok && c.ok && d.ok,
	}
}

// across interpolates line at a place of cell i.
func (p *placer) across(w *[4]float64, i int) node {
	l := p.line[i : i+4 : i+4]
	return mixNodes(w, l[0], l[1], l[2], l[3])
}

// down interpolates the rows of nodes to a row of pixels, t cells below the second row of nodes.
func (p *placer) down(t float64) {
	w := lagrange(t)
	for i := range p.line {
		p.line[i] = mixNodes(&w, p.nodes[0][i], p.nodes[1][i], p.nodes[2][i], p.nodes[3][i])
	}
}

// enter moves to the next row of cells and judges each.
func (p *placer) enter(row int) {
	p.row = row
	if row == 0 {
		for i := range p.nodes {
			p.fill(p.nodes[i], i-1)
		}
	} else {
		first := p.nodes[0]
		copy(p.nodes[:], p.nodes[1:])
		p.nodes[3] = first
		p.fill(first, row+2)
	}
	p.down(0.5)
	half := lagrange(0.5)
	for i := range p.cells {
		n := p.across(&half, i)
		x, y, ok := p.s.at((float64(i)+0.5)*cellSide+0.5, (float64(row)+0.5)*cellSide+0.5)
		c := &p.cells[i]
		c.smooth = ok && n.ok && math.Abs(n.x-x) <= cellError && math.Abs(n.y-y) <= cellError
		if !c.smooth {
			continue
		}
		a, b := p.nodes[1][i+1:i+3], p.nodes[2][i+1:i+3]
		c.shape = p.s.shape(math.Hypot(a[1].x-a[0].x+b[1].x-b[0].x, b[0].x-a[0].x+b[1].x-a[1].x)/(2*cellSide),
			math.Hypot(a[1].y-a[0].y+b[1].y-b[0].y, b[0].y-a[0].y+b[1].y-a[1].y)/(2*cellSide))
	}
}

var cellWeights = func() (w [cellSide][4]float64) {
	for i := range w {
		w[i] = lagrange(float64(i) / cellSide)
	}
	return w
}()

// places gives those of row y; rows must be asked for in order. The slice is valid until the next call.
func (p *placer) places(y int) []footprint {
	if row := y / cellSide; row != p.row {
		p.enter(row)
	}
	p.down(float64(y%cellSide) / cellSide)
	for i := range p.cells {
		c := &p.cells[i]
		out := p.out[i*cellSide : min((i+1)*cellSide, len(p.out))]
		for k := range out {
			if !c.smooth {
				x := i*cellSide + k
				out[k] = p.exact(float64(x)+0.5, float64(y)+0.5, &p.own[x])
				continue
			}
			n := p.across(&cellWeights[k], i)
			out[k] = footprint{n.x, n.y, p.s.inside(n.x, n.y), &c.shape}
		}
	}
	return p.out
}

// exact computes a place without its neighbours' help and keeps the size of its footprint in own.
func (p *placer) exact(px, py float64, own *shape) footprint {
	s := p.s
	x, y, ok := s.at(px, py)
	if !ok || !s.inside(x, y) {
		return footprint{}
	}
	ax, ay := s.slope(px, py, x, y, 0.5, 0)
	bx, by := s.slope(px, py, x, y, 0, 0.5)
	*own = s.shape(math.Hypot(ax, bx), math.Hypot(ay, by))
	return footprint{x, y, true, own}
}

// slope is the derivative at a place that lies at (x, y), taken over half a pixel on a side where there is one.
func (s *sampler) slope(px, py, x, y, hx, hy float64) (dx, dy float64) {
	for _, side := range []float64{1, -1} {
		x1, y1, ok := s.at(px+side*hx, py+side*hy)
		if !ok {
			continue
		}
		dx, dy = x1-x, y1-y
		if s.period > 0 {
			dx -= s.period * math.Round(dx/s.period)
		}
		return 2 * dx, 2 * dy
	}
	return 1, 1
}

const lensGrid = 17 // places a side at which a lens is tried

type LensShares struct {
	Rays float64 // share of the photo's places that belong to a ray
	Used float64 // share of the camera's pixels that have a source in the photo
}

// LensSharesOf tries the lens at places all over the photo and the picture.
func LensSharesOf(c *scene.Camera) (s LensShares) {
	k := c.Lens.Calibration
	smp, err := newSampler(c, k.Width, k.Height)
	if err != nil {
		return s // Load has refused such a lens
	}
	o := smp.o
	for row := range lensGrid {
		for col := range lensGrid {
			fx, fy := (float64(col)+0.5)/lensGrid, (float64(row)+0.5)/lensGrid
			if _, ok := o.ToPlane(fx*o.Width, fy*o.Height, [2]float64{}); ok {
				s.Rays++
			}
			if x, y, ok := smp.at(fx*float64(c.Width), fy*float64(c.Height)); ok && smp.inside(x, y) &&
				!math.IsNaN(x+y) {
				s.Used++
			}
		}
	}
	const all = lensGrid * lensGrid
	return LensShares{s.Rays / all, s.Used / all}
}
