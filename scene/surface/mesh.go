package surface

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"vksplat/internal/geom"
)

type Vertex struct {
	At     [3]float32
	Normal [3]float32 // of length 1, or 0 where no face has a side
	Color  [3]uint8   // sRGB
}

// Mesh is triangles, whose corners are numbered against the clock when seen from outside.
type Mesh struct {
	Vertices []Vertex
	Faces    [][3]uint32
}

// quad adds two triangles, cut along the shorter diagonal.
func (m *Mesh) quad(v [4]uint32) {
	if m.distance2(v[1], v[3]) < m.distance2(v[0], v[2]) {
		v = [4]uint32{v[1], v[2], v[3], v[0]}
	}
	m.Faces = append(m.Faces, [3]uint32{v[0], v[1], v[2]}, [3]uint32{v[0], v[2], v[3]})
}

func (m *Mesh) distance2(a, b uint32) (sum float64) {
	for k := range 3 {
		sum += geom.Square(float64(m.Vertices[a].At[k]) - float64(m.Vertices[b].At[k]))
	}
	return sum
}

// orient finds the normals: the mean of those of the faces around, weighted by their areas.
func (m *Mesh) orient() {
	sums := make([][3]float64, len(m.Vertices))
	for _, f := range m.Faces {
		var p [3]geom.Vec
		for k, id := range f {
			for axis, x := range m.Vertices[id].At {
				p[k][axis] = float64(x)
			}
		}
		n := p[1].Sub(p[0]).Cross(p[2].Sub(p[0]))
		for _, id := range f {
			for axis := range 3 {
				sums[id][axis] += n[axis]
			}
		}
	}
	for i, n := range sums {
		if length := geom.Vec(n).Length(); length > 0 && !math.IsInf(length, 0) {
			for k := range 3 {
				m.Vertices[i].Normal[k] = float32(n[k] / length)
			}
		}
	}
}

// KeepClusters drops all but the largest connected components of the mesh: at most most of them, each of at least the
// given number of faces. It returns how many there were.
func (m *Mesh) KeepClusters(most, faces int) (parts int) {
	parent := make([]uint32, len(m.Vertices))
	for i := range parent {
		parent[i] = uint32(i)
	}
	root := func(v uint32) uint32 {
		for parent[v] != v {
			parent[v] = parent[parent[v]]
			v = parent[v]
		}
		return v
	}
	for _, f := range m.Faces {
		for _, v := range f[1:] {
			a, b := root(f[0]), root(v)
			parent[max(a, b)] = min(a, b)
		}
	}
	sizes := map[uint32]int{}
	for _, f := range m.Faces {
		sizes[root(f[0])]++
	}
	list := slices.Collect(maps.Keys(sizes))
	slices.SortFunc(list, func(a, b uint32) int { return cmp.Or(sizes[b]-sizes[a], cmp.Compare(a, b)) })
	keep := map[uint32]bool{}
	for i, r := range list {
		keep[r] = i < most && sizes[r] >= faces
	}
	m.Faces = slices.DeleteFunc(m.Faces, func(f [3]uint32) bool { return !keep[root(f[0])] })
	m.dropUnused()
	return len(list)
}

func (m *Mesh) dropUnused() {
	number := make([]uint32, len(m.Vertices))
	for _, f := range m.Faces {
		for _, v := range f {
			number[v] = 1
		}
	}
	n := uint32(0)
	for i, used := range number {
		if used == 0 {
			continue
		}
		m.Vertices[n], number[i] = m.Vertices[i], n
		n++
	}
	m.Vertices = m.Vertices[:n]
	for i := range m.Faces {
		for k := range m.Faces[i] {
			m.Faces[i][k] = number[m.Faces[i][k]]
		}
	}
}

func (m *Mesh) Move(scale float64, by [3]float64) {
	for i := range m.Vertices {
		for k := range 3 {
			at := &m.Vertices[i].At[k]
			*at = float32(float64(*at)*scale + by[k])
		}
	}
}
