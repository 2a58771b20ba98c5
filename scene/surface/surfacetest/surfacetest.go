// Package surfacetest has exact depth maps of procedural captures, and measures how near points are to each other.
package surfacetest

import (
	"math"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/surface"
	"vksplat/scene/synth"
)

// Views are the exact depth maps of a procedural capture, up to a depth.
func Views(t testing.TB, o synth.Options, most float32) []*surface.View {
	t.Helper()
	made := must.Get(synth.New(o))(t)
	var list []*surface.View
	for i, c := range made.Cameras() {
		v := &surface.View{Camera: c, Depth: made.Depths(i), Stride: 3}
		for k, z := range v.Depth {
			if z > most {
				v.Depth[k] = 0
			}
		}
		photo := made.Photo(i, 1)
		for k := range v.Depth {
			for ch := range 3 {
				v.Color = append(v.Color, float32(photo.Pix[4*k+ch])/255)
			}
		}
		list = append(list, v)
	}
	return list
}

// Cloud finds the nearest of many points within a distance.
type Cloud struct {
	within float64
	cells  map[[3]int32][][3]float64
}

// NewCloud begins a cloud without points.
func NewCloud(within float64) *Cloud { return &Cloud{within, map[[3]int32][][3]float64{}} }

func (c *Cloud) cell(p [3]float64) (k [3]int32) {
	for i := range 3 {
		k[i] = int32(math.Floor(p[i] / c.within))
	}
	return k
}

func (c *Cloud) Add(p [3]float64) {
	k := c.cell(p)
	c.cells[k] = append(c.cells[k], p)
}

// Has says whether a point is within the distance.
func (c *Cloud) Has(p [3]float64) bool {
	k := c.cell(p)
	for n := range 27 {
		at := [3]int32{k[0] + int32(n/9) - 1, k[1] + int32(n/3%3) - 1, k[2] + int32(n%3) - 1}
		for _, q := range c.cells[at] {
			d := 0.0
			for i := range 3 {
				d += (p[i] - q[i]) * (p[i] - q[i])
			}
			if d <= c.within*c.within {
				return true
			}
		}
	}
	return false
}

// SeenByThree lists points of the surface that at least three views see, one pixel in so many.
func SeenByThree(list []*surface.View, of int) (points [][3]float64) {
	for i, v := range list {
		for p := i % of; p < len(v.Depth); p += of {
			at, known := Point(v, p)
			if !known {
				continue
			}
			views := 0
			for _, other := range list {
				c := &other.Camera
				q := c.ToCamera(at)
				x, y := int(math.Floor(c.Fx*q[0]/q[2]+c.Cx)), int(math.Floor(c.Fy*q[1]/q[2]+c.Cy))
				if q[2] <= 0 || x < 0 || y < 0 || x >= c.Width || y >= c.Height {
					continue
				}
				if z := float64(other.Depth[y*c.Width+x]); math.Abs(z-q[2]) < 0.01*q[2] {
					views++
				}
			}
			if views >= 3 {
				points = append(points, at)
			}
		}
	}
	return points
}

// Point is where the middle of a pixel shows a surface; not known where there is no depth.
func Point(v *surface.View, pixel int) (at [3]float64, known bool) {
	z, w := float64(v.Depth[pixel]), v.Camera.Width
	return v.Camera.Place(float64(pixel%w)+0.5, float64(pixel/w)+0.5, z), z != 0
}
