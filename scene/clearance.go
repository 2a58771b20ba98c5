package scene

import (
	"math"
	"slices"
)

// minSeen is how many points a camera must see before their depths say where its scene begins.
const minSeen = 100

// maxSampled is about how many points are looked at for that.
const maxSampled = 1 << 18

// Clear finds the empty space in front of the cameras and takes what the reconstruction put there by mistake out of Points. A share of the depth that
// only one in a hundred of a camera's points comes below becomes its Clearance; points that lie within it, in the picture, are dropped. Wrong matches
// between photos taken side by side become points right in front of them, and splats grown from those hide a photo that nobody trained on. Without
// Points, or with a share of 0, nothing is known to be empty. Clear returns the number of points dropped; call it in the training frame.
func (c *Capture) Clear(share float64) int {
	if !(share > 0) {
		return 0
	}
	inside := make([][]int, len(c.Cameras))
	stride := 1 + len(c.Points)/maxSampled
	parallel(len(c.Cameras), func(i int) {
		cam := &c.Cameras[i]
		var depths []float64
		for k := 0; k < len(c.Points); k += stride {
			if depth, seen := cam.sees(c.Points[k].Pos, math.Inf(1)); seen {
				depths = append(depths, depth)
			}
		}
		if len(depths) < minSeen {
			return
		}
		slices.Sort(depths)
		cam.Clearance = share * depths[len(depths)/100]
		for k := range c.Points {
			if _, seen := cam.sees(c.Points[k].Pos, cam.Clearance); seen {
				inside[i] = append(inside[i], k)
			}
		}
	})
	drop := map[int]bool{}
	for _, ids := range inside {
		for _, id := range ids {
			drop[id] = true
		}
	}
	if len(drop) == 0 {
		return 0
	}
	kept := make([]Point, 0, len(c.Points)-len(drop))
	for i, p := range c.Points {
		if !drop[i] {
			kept = append(kept, p)
		}
	}
	c.Points = kept
	return len(drop)
}

// sees returns the depth of a point, and whether it lies in the picture nearer than limit.
func (c *Camera) sees(p [3]float64, limit float64) (depth float64, seen bool) {
	depth = c.R[6]*p[0] + c.R[7]*p[1] + c.R[8]*p[2] + c.T[2]
	if !(depth > 0 && depth < limit) {
		return depth, false
	}
	q := c.ToCamera(p)
	s := 1 / depth
	if r := math.Hypot(q[0], q[1]); c.Model == Fisheye && r > 0 {
		s = math.Atan2(r, depth) / r
	}
	x, y := c.Fx*q[0]*s+c.Cx, c.Fy*q[1]*s+c.Cy
	return depth, x >= 0 && y >= 0 && x < float64(c.Width) && y < float64(c.Height)
}
