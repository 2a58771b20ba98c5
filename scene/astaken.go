package scene

import (
	"fmt"
	"math"

	"vksplat/internal/fault"
)

// Distortion is how a camera's lens moves points of the plane that its model projects to: of (X/Z, Y/Z) for a pinhole,
// of the angle from the axis for a fisheye. The place of a point w of that plane, in focal lengths from the principal
// point, is F(r²) w plus Brown's tangential and a thin prism's terms, as in Calibration.
type Distortion struct {
	Num [6]float64 // F = (1 + Num[0] r² + Num[1] r⁴ ...) / (1 + Den[0] r² ...)
	Den [3]float64
	// tangential terms dx = 2 P1 x y + P2 (r² + 2 x²), dy = P1 (r² + 2 y²) + 2 P2 x y
	P1, P2         float64
	PrismX, PrismY [2]float64 // of r², r⁴
	After          bool       // tangential and prism terms are functions of the radially distorted point
	Skew           float64    // of the distorted y, added to x
	Limit          float64    // radius in the plane beyond which the lens sees nothing, or two rays at one place
	// Corners of what the photo shows of the plane. Outside, for splats that reach into the picture, the lens goes on
	// as at the border, unless it is Blind.
	Min, Max [2]float64
	Blind    bool // pixels at the border of the photo show nothing
	// where Blind, how far from the principal point, in focal lengths, what it sees ends: by direction, of which there
	// are len(reach), counted from that of -x
	reach       []float64
	Wide        bool // the photo shows what stands beside the camera or behind it
	undistorted *Camera
}

// distort is Optics.distort.
func (d *Distortion) distort(u, v float64) (x, y float64) {
	p := polynomial{num: d.Num, den: d.Den, p1: d.P1, p2: d.P2, sx: d.PrismX, sy: d.PrismY, after: d.After}
	x, y = p.distort(u, v)
	return x + float64(d.Skew*y), y
}

// Undistorted gives the camera that sees the same without distortion, which the photo is resampled to. Its pose is that
// of c.
func (c Camera) Undistorted() Camera {
	if c.Distortion == nil {
		return c
	}
	u := *c.Distortion.undistorted
	u.R, u.T = c.R, c.T
	return u
}

// AsTaken gives the camera whose photo is not resampled, but for its size: the distortion of the lens is the camera's.
// A camera that stood still without distortion, and the face of a panorama, stays as it is. Errors are of type
// *fault.Error.
func (c Camera) AsTaken() (Camera, error) { return c.asTaken(nil) }

// AsTaken gives those of several photos, and how many are distorted or moved. It looks once through each lens.
func AsTaken(cams []Camera) (taken []Camera, bent int, err error) {
	lenses := map[string]*Camera{}
	for _, c := range cams {
		var lens string
		if c.Lens != nil {
			lens = fmt.Sprint(*c.Lens)
		}
		out, err := c.asTaken(lenses[lens])
		if err != nil {
			return nil, 0, err
		}
		if out.Distortion != nil {
			bent++
			if c.Lens != nil {
				lenses[lens] = &out
			}
		}
		taken = append(taken, out)
	}
	return taken, bent, nil
}

// asTaken is AsTaken; same is what it gave for another photo of the same lens, if there was one.
func (c Camera) asTaken(same *Camera) (Camera, error) {
	if err := c.checkMotion(); err != nil {
		return c, err
	}
	out := c
	out.Lens = nil
	switch {
	case c.Photo != "" || c.Lens == nil && !c.Moved():
		return c, nil
	case c.Lens == nil:
		return c.Straight(), nil
	case same != nil:
		d := *same.Distortion
		d.undistorted = &c
		out.Width, out.Height, out.Model, out.Distortion = same.Width, same.Height, same.Model, &d
		out.Fx, out.Fy, out.Cx, out.Cy = same.Fx, same.Fy, same.Cx, same.Cy
		return out, nil
	}
	o, err := c.Lens.Calibration.Optics(c.Lens.Width, c.Lens.Height)
	if err == nil && !o.polynomial() {
		err = fmt.Errorf("its lens model %s is not a polynomial", o.model)
	}
	if err != nil {
		return c, &fault.Error{Kind: fault.ErrData, Op: "use calibration", Path: c.Name, Err: err,
			Hint: "leave out " + fault.Setting("native-lens") + ": the photos are resampled then"}
	}
	out.Width, out.Height = c.Lens.Width, c.Lens.Height
	out.Fx, out.Fy, out.Cx, out.Cy = o.fx, o.fy, o.cx, o.cy
	out.Model = Pinhole
	if o.Plane == AnglePlane {
		out.Model = Fisheye
	}
	p := &o.poly
	d := &Distortion{Num: p.num, Den: p.den, P1: p.p1, P2: p.p2, PrismX: p.sx, PrismY: p.sy, After: p.after,
		Skew: skew(o), Limit: o.Limit, undistorted: &c}
	seen := o.look()
	d.Min, d.Max, d.Blind = seen.min, seen.max, seen.blind
	corner := math.Hypot(max(-d.Min[0], d.Max[0]), max(-d.Min[1], d.Max[1]))
	if most := mostShown * o.Limit; !d.Blind && corner > most { // the lens does not reach into all corners
		for k := range d.Min {
			d.Min[k], d.Max[k] = d.Min[k]*most/corner, d.Max[k]*most/corner
		}
	}
	if d.Blind {
		d.reach = o.reach()
	}
	d.Wide = o.Plane == AnglePlane && seen.radius > WidestFisheye
	out.Distortion = d
	return out, nil
}

// mostShown is the share of the radius at which a lens folds its picture that it bends splats within.
const mostShown = 0.99

// polynomial says whether distort takes o.poly and the skew alone.
func (o *Optics) polynomial() bool {
	switch o.model {
	case LensFOV, LensSimpleDivision, LensDivision, LensEUCM:
		return o.plain
	}
	return o.Plane != NoPlane
}

// directions is how many the edge of what a lens sees is looked up by: 2 px of the edge of a picture of 4000 pixels.
const directions = 6000

// direction gives the number of a point's direction.
func direction(x, y float64) int {
	return min(max(int((math.Atan2(y, x)/(2*math.Pi)+0.5)*directions), 0), directions-1)
}

func (o *Optics) reach() []float64 {
	reach := make([]float64, directions)
	for i := range 4 * directions { // more than one for each
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / (4 * directions))
		x, y := o.distort(o.Limit*cos, o.Limit*sin)
		if at, r := direction(x, y), math.Hypot(x, y); reach[at] == 0 || r < reach[at] {
			reach[at] = r
		}
	}
	for i := range reach { // a direction that none fell on has its neighbour's
		if reach[i] == 0 {
			reach[i] = reach[(i+directions-1)%directions]
		}
	}
	return reach
}

// Shows says whether pixel (x, y) of the photo shows anything.
func (c *Camera) Shows(x, y int) bool {
	d := c.Distortion
	if d == nil || !d.Blind {
		return true
	}
	u, v := (float64(x)+0.5-c.Cx)/c.Fx, (float64(y)+0.5-c.Cy)/c.Fy
	r := d.reach[direction(u, v)]
	return u*u+v*v <= r*r
}

// outlook is what a photo shows of the plane.
type outlook struct {
	min, max [2]float64
	radius   float64 // largest
	blind    bool    // not every pixel of its border shows something
}

// look walks along the border of the photo.
func (o *Optics) look() (s outlook) {
	w, h := int(o.Width), int(o.Height)
	take := func(p [2]float64) {
		for i := range p {
			s.min[i], s.max[i] = min(s.min[i], p[i]), max(s.max[i], p[i])
		}
	}
	see := func(last [2]float64, x, y float64) [2]float64 {
		p, ok := o.ToPlane(x, y, last)
		if !ok {
			s.blind, s.radius = true, o.Limit
			// Where the lens reaches its limit on the way there, the photo shows all of the plane to that side.
			p = o.radialGuess((x-o.cx)/o.fx, (y-o.cy)/o.fy)
			take(p)
			return last
		}
		take(p)
		s.radius = max(s.radius, math.Hypot(p[0], p[1]))
		return p
	}
	var top, bottom, left, right [2]float64
	for x := range w {
		top, bottom = see(top, float64(x)+0.5, 0.5), see(bottom, float64(x)+0.5, o.Height-0.5)
	}
	for y := range h {
		left, right = see(left, 0.5, float64(y)+0.5), see(right, o.Width-0.5, float64(y)+0.5)
	}
	return s
}
