package surface

import (
	"math"

	"vksplat/internal/parallel"
)

// cell is the cube between eight voxels, by the first of them.
type cell [3]int32

// mesher makes the mesh of one slab after the other.
type mesher struct {
	mesh   *Mesh
	border map[cell]uint32 // vertices in the last layer of the slab before
}

type net struct {
	slab   *slab
	list   []int         // blocks that the surface crosses
	slot   map[int32]int // of a block: where it is in list
	ids    []uint32      // of the cells of each block of list; none: there is no vertex
	border map[cell]uint32
}

const none = math.MaxUint32

// add makes the mesh of a slab: a vertex in every cube that the surface cuts, and a quad across every edge that it
// cuts.
func (m *mesher) add(b *slab) {
	n := &net{slab: b, list: b.crossed(), slot: map[int32]int{}, border: m.border}
	n.ids = make([]uint32, len(n.list)*blockVoxels)
	for k, i := range n.list {
		n.slot[int32(i)] = k
	}
	m.vertices(n)
	quads := make([][][4]uint32, len(n.list))
	parallel.For(len(n.list), func(k int) { quads[k] = n.quads(n.list[k]) })
	for _, list := range quads {
		for _, q := range list {
			m.mesh.quad(q)
		}
	}
	m.border = map[cell]uint32{}
	last := b.keys[b.own-1][0]
	for k, i := range n.list {
		if b.keys[i][0] != last {
			continue
		}
		for v := (side - 1) * side * side; v < blockVoxels; v++ {
			if id := n.ids[k*blockVoxels+v]; id != none {
				m.border[b.cell(i, v)] = id
			}
		}
	}
}

func (m *mesher) vertices(n *net) {
	made := make([][]Vertex, len(n.list))
	parallel.For(len(n.list), func(k int) {
		var c corners
		n.slab.corners(n.list[k], &c)
		for v := range blockVoxels {
			n.ids[k*blockVoxels+v] = none
			if vertex, ok := n.slab.vertex(n.list[k], &c, v); ok {
				n.ids[k*blockVoxels+v] = uint32(len(made[k]))
				made[k] = append(made[k], vertex)
			}
		}
	})
	for k, list := range made {
		first := uint32(len(m.mesh.Vertices))
		for v := range blockVoxels {
			if id := &n.ids[k*blockVoxels+v]; *id != none {
				*id += first
			}
		}
		m.mesh.Vertices = append(m.mesh.Vertices, list...)
	}
}

func (n *net) at(c cell) (id uint32, there bool) {
	block, there := n.slab.place[key{c[0] >> 3, c[1] >> 3, c[2] >> 3}]
	if there {
		var k int
		if k, there = n.slot[block]; !there {
			return 0, false
		}
		id = n.ids[k*blockVoxels+int(((c[0]&7)*side+c[1]&7)*side+c[2]&7)]
		return id, id != none
	}
	id, there = n.border[c]
	return id, there
}

func (b *slab) cell(i, n int) cell {
	k := b.keys[i]
	return cell{k[0]*side + int32(n/(side*side)), k[1]*side + int32(n/side%side), k[2]*side + int32(n%side)}
}

// vertex is the middle of where the surface cuts the edges of a cube of block i, with the mean of the colours there.
func (b *slab) vertex(i int, c *corners, number int) (v Vertex, ok bool) {
	x, y, z := number/(side*side), number/side%side, number%side
	var at [8]int32
	var d [8]float64
	below := 0
	for n := range at {
		at[n] = c.at[((x+n>>2)*wide+y+(n>>1&1))*wide+z+n&1]
		if at[n] < 0 {
			return v, false
		}
		if d[n] = float64(b.voxels.distance[at[n]]); d[n] < 0 {
			below++
		}
	}
	if below == 0 || below == 8 {
		return v, false
	}
	var sum, hue [3]float64
	cuts, colours := 0.0, 0.0
	for n := range at {
		for axis := range 3 {
			bit := 4 >> axis
			if n&bit != 0 || d[n] < 0 == (d[n|bit] < 0) {
				continue
			}
			t := d[n] / (d[n] - d[n|bit])
			for k := range 3 {
				sum[k] += float64(n >> (2 - k) & 1)
			}
			sum[axis] += t
			cuts++
			b.addColor(&hue, &colours, at[n], 1-t)
			b.addColor(&hue, &colours, at[n|bit], t)
		}
	}
	origin := b.origin(i)
	for k, first := range [3]int{x, y, z} {
		v.At[k] = float32(origin[k] + (float64(first)+sum[k]/cuts)*b.voxel)
		if colours > 0 {
			v.Color[k] = uint8(math.Round(255 * hue[k] / colours))
		}
	}
	return v, true
}

// addColor adds a voxel's colour, 0 to 1, with a weight.
func (b *slab) addColor(sum *[3]float64, weights *float64, voxel int32, weight float64) {
	if b.voxels.hue[voxel] == 0 {
		return
	}
	for k := range 3 {
		sum[k] += weight * float64(b.voxels.color[3*voxel+int32(k)]) / 65535
	}
	*weights += weight
}

// quads makes the quads across all edges that begin at voxels of block i.
func (n *net) quads(i int) (list [][4]uint32) {
	var c corners
	n.slab.corners(i, &c)
	distance := n.slab.voxels.distance
	for v := range blockVoxels {
		p := [3]int{v / (side * side), v / side % side, v % side}
		from := c.at[(p[0]*wide+p[1])*wide+p[2]]
		if from < 0 {
			continue
		}
		for axis := range 3 {
			q := p
			q[axis]++
			to := c.at[(q[0]*wide+q[1])*wide+q[2]]
			if to < 0 || distance[from] < 0 == (distance[to] < 0) {
				continue
			}
			if quad, whole := n.quad(n.slab.cell(i, v), axis, distance[from] < 0); whole {
				list = append(list, quad)
			}
		}
	}
	return list
}

// quad is the vertices of the cubes around the edge that begins at a cell, against the clock when seen from outside:
// from the edge's end, if it begins behind the surface.
func (n *net) quad(from cell, axis int, behind bool) (ids [4]uint32, whole bool) {
	u, w := (axis+1)%3, (axis+2)%3
	for k, back := range [4][2]int32{{0, 0}, {1, 0}, {1, 1}, {0, 1}} {
		at := from
		at[u] -= back[0]
		at[w] -= back[1]
		var there bool
		if ids[k], there = n.at(at); !there {
			return ids, false
		}
	}
	if !behind {
		ids[1], ids[3] = ids[3], ids[1]
	}
	return ids, true
}
