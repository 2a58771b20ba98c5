package scene

import (
	"math"
	"slices"

	"vksplat/internal/parallel"
)

// minSeen is how many points a camera must see before their depths say where its scene begins.
const minSeen = 100

// maxSampled is about how many points are looked at for that.
const maxSampled = 1 << 16

// Clear drops the points that the reconstruction put right in front of a camera by mistake, and returns how many. A
// point goes if it lies in a camera's picture, nearer than the depth up to which that camera sees empty space, which
// Depths says. Wrong matches between photos taken side by side become such points. All cameras count, also those
// of photos that are held out: without their photos the reconstruction would not have these points. Call it in the
// training frame.
func (c *Capture) Clear(depths []Depths) int {
	drop := make([]uint64, (len(c.Points)+63)/64) // a bit for each point
	parallel.For((len(drop)+dropWords-1)/dropWords, func(i int) { c.markInFront(drop, i*dropWords, depths) })
	kept := c.Points[:0]
	for k, p := range c.Points {
		if drop[k/64]>>(k%64)&1 == 0 {
			kept = append(kept, p)
		}
	}
	dropped := len(c.Points) - len(kept)
	c.Points = kept
	return dropped
}

// Depths says where the points begin that a camera sees, in the unit of the frame that the camera is in. It is zero
// where the camera sees too few points to tell.
type Depths struct {
	Empty  float64 // space up to this depth is empty
	Median float64 // of the points' depths
}

// Depths returns, for each camera, the depths of the points in its picture. Space is empty up to a share of the depth
// that one in a hundred of them comes below. It is nil without points, or with a share of 0.
func (c *Capture) Depths(share float64) []Depths {
	if !(share > 0) || len(c.Points) == 0 {
		return nil
	}
	all := make([]Depths, len(c.Cameras))
	parallel.For(len(c.Cameras), func(i int) {
		if depths := c.Cameras[i].DepthsOf(c.Points); len(depths) >= minSeen {
			slices.Sort(depths)
			all[i] = Depths{Empty: share * depths[len(depths)/100], Median: depths[len(depths)/2]}
		}
	})
	return all
}

// DepthsOf returns the depths of those points that the camera sees, of some of them where they are many.
func (c *Camera) DepthsOf(points []Point) (depths []float64) {
	stride := 1 + len(points)/maxSampled
	for k := 0; k < len(points); k += stride {
		if depth, seen := c.SeesBetween(points[k].Pos, 0, math.Inf(1)); seen {
			depths = append(depths, depth)
		}
	}
	return depths
}

// dropWords is how many words of bits are filled at once: their points, 500 KiB, stay in a core's cache while all
// cameras look at them.
const dropWords = 256

// markInFront sets the bits of the points from word first on that lie within a camera's empty space.
func (c *Capture) markInFront(drop []uint64, first int, depths []Depths) {
	words := drop[first:min(first+dropWords, len(drop))]
	points := c.Points[64*first : min(64*(first+len(words)), len(c.Points))]
	for i := range depths {
		cam, far := &c.Cameras[i], depths[i].Empty
		if far == 0 {
			continue
		}
		x, y, z, t := cam.R[6], cam.R[7], cam.R[8], cam.T[2]
		for k := range points {
			p := &points[k].Pos
			if depth := x*p[0] + y*p[1] + z*p[2] + t; !(depth > 0 && depth < far) { // as in sees: most points end here
				continue
			}
			if _, seen := cam.SeesBetween(*p, 0, far); seen {
				words[k/64] |= 1 << (k % 64)
			}
		}
	}
}

// Sees reports whether a point, in the frame that the camera is in, lies in its picture.
func (c *Camera) Sees(point [3]float64) bool {
	_, in := c.SeesBetween(point, 0, math.Inf(1))
	return in
}

// SeesBetween returns the depth of a point, and whether it lies in the picture, between near and far.
func (c *Camera) SeesBetween(point [3]float64, near, far float64) (depth float64, in bool) {
	_, _, depth, in = c.Project(point, near, far)
	return depth, in
}

// Place is the inverse of Project: where the point of that depth is which the camera sees at (u, v), in the frame that
// the camera is in.
func (c *Camera) Place(u, v, depth float64) (point [3]float64) {
	x, y := (u-c.Cx)/c.Fx, (v-c.Cy)/c.Fy
	if c.Model == Fisheye {
		if r := math.Hypot(x, y); r > 0 {
			x, y = x*math.Tan(r)/r, y*math.Tan(r)/r
		}
	}
	at := [3]float64{x*depth - c.T[0], y*depth - c.T[1], depth - c.T[2]}
	for k := range point {
		point[k] = c.R[k]*at[0] + c.R[3+k]*at[1] + c.R[6+k]*at[2]
	}
	return point
}

// Project is SeesBetween that also returns the pixel of a point between near and far.
func (c *Camera) Project(point [3]float64, near, far float64) (u, v, depth float64, in bool) {
	r, t := &c.R, &c.T // ToCamera would copy the camera
	depth = r[6]*point[0] + r[7]*point[1] + r[8]*point[2] + t[2]
	if !(depth > near && depth < far) {
		return 0, 0, depth, false
	}
	x := (r[0]*point[0] + r[1]*point[1] + r[2]*point[2] + t[0]) / depth
	y := (r[3]*point[0] + r[4]*point[1] + r[5]*point[2] + t[1]) / depth
	if c.Model == Fisheye {
		if r := math.Hypot(x, y); r > 0 {
			x, y = x*math.Atan(r)/r, y*math.Atan(r)/r
		}
	}
	if d := c.Distortion; d != nil {
		x, y = d.distort(x, y)
	}
	u, v = c.Fx*x+c.Cx, c.Fy*y+c.Cy
	return u, v, depth, u >= 0 && v >= 0 && u < float64(c.Width) && v < float64(c.Height)
}
