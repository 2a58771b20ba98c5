package edit

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Stroke is a brush stroke over a picture: all within a distance of a path.
type Stroke struct {
	Path   [][2]float64 // from 0 at the left and at the top to 1 at the right and at the bottom
	Radius float64      // in heights of the picture
}

// Surface is the depth that a picture shows: sums of weight times camera z and of weights, three numbers a pixel, of
// which the third means nothing.
type Surface []float32

const (
	// leastCover is the sum of weights below which a pixel shows no surface, and hides nothing.
	leastCover = 0.05
	// behind is how far behind the surface a splat's centre may be that still belongs to it, in parts of its distance.
	behind = 0.05
)

// depth is the mean depth of a pixel; ok is false where there is no surface.
func (s Surface) depth(pixel int) (z float64, ok bool) {
	sum, weight := float64(s[3*pixel]), float64(s[3*pixel+1])
	return sum / weight, weight > leastCover && sum > 0
}

// Strike lists the splats that are left whose centres a camera sees within a stroke, ascending. means are where the
// camera stands, [N*3]. With a surface, which is what the camera shows, splats behind it are none of them; nil takes
// all.
func (s *State) Strike(stroke *Stroke, c *scene.Camera, means []float32, surface Surface) []uint32 {
	painted := stroke.paint(c.Width, c.Height)
	return s.pick(func(i int) bool {
		p := c.ToCamera([3]float64{float64(means[3*i]), float64(means[3*i+1]), float64(means[3*i+2])})
		x, y, ok := project(c, p)
		if !ok || !(x >= 0 && y >= 0 && x < float64(c.Width) && y < float64(c.Height)) {
			return false
		}
		pixel := int(y)*c.Width + int(x)
		if !painted[pixel] {
			return false
		}
		if surface == nil {
			return true
		}
		z, there := surface.depth(pixel)
		return !there || p[2] <= z*(1+behind)
	})
}

// project gives the place of a point in a picture, px. ok is false of what is behind the camera.
func project(c *scene.Camera, p [3]float64) (x, y float64, ok bool) {
	if !(p[2] > 0) {
		return 0, 0, false
	}
	u, v := p[0]/p[2], p[1]/p[2]
	if c.Model == scene.Fisheye {
		if r := math.Hypot(u, v); r > 0 {
			f := math.Atan(r) / r
			u, v = u*f, v*f
		}
	}
	return c.Fx*u + c.Cx, c.Fy*v + c.Cy, true
}

// paint marks the pixels of a picture whose middles are within the stroke.
func (t *Stroke) paint(width, height int) []bool {
	painted := make([]bool, width*height)
	w, h := float64(width), float64(height)
	r := t.Radius * h
	for i, to := range t.Path {
		from := t.Path[max(i-1, 0)]
		a, b := [2]float64{from[0] * w, from[1] * h}, [2]float64{to[0] * w, to[1] * h}
		x0, x1 := between(min(a[0], b[0])-r, max(a[0], b[0])+r, width)
		y0, y1 := between(min(a[1], b[1])-r, max(a[1], b[1])+r, height)
		for y := y0; y < y1; y++ {
			for x := x0; x < x1; x++ {
				if apart2(a, b, float64(x)+0.5, float64(y)+0.5) <= r*r {
					painted[y*width+x] = true
				}
			}
		}
	}
	return painted
}

// between are the pixels from lo to hi of a row of n.
func between(lo, hi float64, n int) (first, end int) {
	return int(max(0, math.Floor(lo))), int(min(float64(n), math.Ceil(hi)))
}

// apart2 is the square of the distance of a point from the line from a to b.
func apart2(a, b [2]float64, x, y float64) float64 {
	dx, dy := b[0]-a[0], b[1]-a[1]
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = min(max(((x-a[0])*dx+(y-a[1])*dy)/l, 0), 1)
	}
	ex, ey := x-a[0]-t*dx, y-a[1]-t*dy
	return ex*ex + ey*ey
}

// Floor is up of the plane through three places of a picture, 0 to 1 as in Stroke, on the side of the camera. ok is
// false where the picture shows no surface there, or the places are in a line.
func Floor(places [3][2]float64, c *scene.Camera, surface Surface) (up [3]float64, ok bool) {
	var at [3][3]float64
	for i, p := range places {
		x, y := min(int(p[0]*float64(c.Width)), c.Width-1), min(int(p[1]*float64(c.Height)), c.Height-1)
		z, there := surface.depth(y*c.Width + x)
		if !there {
			return up, false
		}
		u, v := (float64(x)+0.5-c.Cx)/c.Fx, (float64(y)+0.5-c.Cy)/c.Fy
		if r := math.Hypot(u, v); c.Model == scene.Fisheye && r > 0 {
			f := math.Tan(min(r, 1.5)) / r
			u, v = u*f, v*f
		}
		at[i] = [3]float64{u * z, v * z, z}
	}
	a, b := geom.Sub(at[1], at[0]), geom.Sub(at[2], at[0])
	n := geom.Cross(a, b)
	if length := geom.Length(n); !(length > 1e-3*geom.Length(a)*geom.Length(b)) {
		return up, false
	}
	if geom.Dot(n, at[0]) > 0 { // it leads away from the camera
		n = geom.Scale(n, -1)
	}
	n = geom.Scale(n, 1/geom.Length(n))
	for i := range up { // the camera's axes are the rows of R
		for k := range 3 {
			up[i] += c.R[3*k+i] * n[k]
		}
	}
	return up, true
}
