package surfacetest

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene/surface"
)

// Faces finds the nearest of many triangles within a distance.
type Faces struct {
	within float64
	list   [][3]geom.Vec
	cells  map[[3]int32][]int32
}

// NewFaces begins without triangles.
func NewFaces(within float64) *Faces { return &Faces{within: within, cells: map[[3]int32][]int32{}} }

func FacesOf(m *surface.Mesh, within float64) *Faces {
	f := NewFaces(within)
	for _, face := range m.Faces {
		f.Add([3]geom.Vec{At(m, face[0]), At(m, face[1]), At(m, face[2])})
	}
	return f
}

func At(m *surface.Mesh, v uint32) (p geom.Vec) {
	for k, x := range m.Vertices[v].At {
		p[k] = float64(x)
	}
	return p
}

func (f *Faces) Add(corners [3]geom.Vec) {
	var low, high [3]int32
	for k := range 3 {
		least := min(corners[0][k], corners[1][k], corners[2][k]) - f.within
		most := max(corners[0][k], corners[1][k], corners[2][k]) + f.within
		low[k], high[k] = int32(math.Floor(least/f.within)), int32(math.Floor(most/f.within))
	}
	for x := low[0]; x <= high[0]; x++ {
		for y := low[1]; y <= high[1]; y++ {
			for z := low[2]; z <= high[2]; z++ {
				f.cells[[3]int32{x, y, z}] = append(f.cells[[3]int32{x, y, z}], int32(len(f.list)))
			}
		}
	}
	f.list = append(f.list, corners)
}

// Nearest is the nearest triangle to a point, what each of its corners weighs there, and how far it is; -1 where none
// is within the distance.
func (f *Faces) Nearest(p geom.Vec) (face int, weights [3]float64, distance float64) {
	var k [3]int32
	for i := range 3 {
		k[i] = int32(math.Floor(p[i] / f.within))
	}
	face, distance = -1, f.within
	for _, n := range f.cells[k] {
		w := nearestIn(f.list[n], p)
		q := f.list[n][0].Mul(w[0]).Add(f.list[n][1].Mul(w[1])).Add(f.list[n][2].Mul(w[2]))
		if d := q.Sub(p).Length(); d <= distance {
			face, weights, distance = int(n), w, d
		}
	}
	return face, weights, distance
}

// nearestIn is what the corners of a triangle weigh at its point that is nearest to p: where a plumb line meets it, or
// on the nearest edge.
func nearestIn(c [3]geom.Vec, p geom.Vec) [3]float64 {
	u, v, w := c[1].Sub(c[0]), c[2].Sub(c[0]), p.Sub(c[0])
	n := u.Cross(v)
	if square := n.Dot(n); square > 0 {
		b, a := u.Cross(w).Dot(n)/square, w.Cross(v).Dot(n)/square
		if a >= 0 && b >= 0 && a+b <= 1 {
			return [3]float64{1 - a - b, a, b}
		}
	}
	best, weights := math.Inf(1), [3]float64{}
	for k := range 3 {
		e, d := c[(k+1)%3].Sub(c[k]), p.Sub(c[k])
		t := 0.0
		if e.Dot(e) > 0 {
			t = min(max(d.Dot(e)/e.Dot(e), 0), 1)
		}
		if far := d.Sub(e.Mul(t)).Length(); far < best {
			best, weights = far, [3]float64{}
			weights[k], weights[(k+1)%3] = 1-t, t
		}
	}
	return weights
}
