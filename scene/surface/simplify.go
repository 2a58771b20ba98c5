package surface

import (
	"cmp"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
)

const (
	// needless is how far, in voxels, the area of one voxel's side may move where only needless faces are to go: an
	// edge may cost its square.
	needless = 0.5
	// cellEdges is the side of a cell in lengths of edges: what a patch takes, some 10 MB, does not depend on the mesh.
	cellEdges = 64
	// growth is how many times more an edge may cost than in the pass before.
	growth = 4
	// boundless is more than any edge costs.
	boundless = 1e12
)

// Simplify collapses edges until no more than most faces are left, those first that change shape and colours least.
// With most 0 it collapses all that change them next to nothing. voxel is the edge of the voxels that the mesh was made
// of. Holes and handles stay, so that more faces may be left.
//
// The mesh is cut into cells, which are done on their own: what faces across their walls touch stays. Each pass has
// other walls and allows larger errors than the one before, so that none shows. stop is asked before each cell, from
// several goroutines: its error ends everything, and leaves a mesh that is of no use.
func (m *Mesh) Simplify(voxel float64, most int, stop func() error) error {
	limit, last := needless*needless/(growth*growth), needless*needless
	if most > 0 {
		last = boundless
	}
	first, ends := len(m.Faces), 0
	for pass := 0; len(m.Faces) > most && ends < 2; pass++ {
		c := m.cells(cellEdges*voxel*math.Sqrt(float64(first)/float64(len(m.Faces))), pass)
		c.voxel, c.stop = voxel, stop
		before, n := m.clone(most), len(m.Faces)
		done := c.collapse(limit, nil)
		if m.dropGone(); len(m.Faces) < most { // again, no farther than that
			*m = before
			c.collapse(limit, cheapest(done, n-most))
			m.dropGone()
		}
		if err := stop(); err != nil {
			return err
		}
		if limit == last { // once more, for the edges at its walls
			ends++
		}
		limit = min(limit*growth, last)
	}
	m.dropUnused()
	m.orient()
	return nil
}

// clone is a copy to go back to; empty where no number of faces is asked for, as nothing goes back then.
func (m *Mesh) clone(most int) Mesh {
	if most == 0 {
		return Mesh{}
	}
	return Mesh{slices.Clone(m.Vertices), slices.Clone(m.Faces)}
}

func (m *Mesh) dropGone() {
	m.Faces = slices.DeleteFunc(m.Faces, func(f [3]uint32) bool { return f[0] == none })
}

type cells struct {
	mesh   *Mesh
	voxel  float64
	stop   func() error // its error ends collapse
	side   float64
	shift  geom.Vec
	of     []int32 // cells of vertices
	local  []int32 // numbers of vertices within their cells
	fixed  []bool  // vertices of faces that are in no cell
	faces  []int32 // those of cell after cell, by number
	starts []int   // of each cell in faces
}

// cells cuts the mesh into cubes of so large a side. Each pass has other walls: they are moved by multiples of the
// numbers that spread such multiples most evenly (the inverse of the root of x⁴ = x + 1, and its powers).
func (m *Mesh) cells(side float64, pass int) *cells {
	c := &cells{mesh: m, side: side, of: make([]int32, len(m.Vertices)), local: make([]int32, len(m.Vertices)),
		fixed: make([]bool, len(m.Vertices))}
	for k, x := range [3]float64{0.8191725134, 0.6710436067, 0.5497004779} {
		_, c.shift[k] = math.Modf(x * float64(pass))
	}
	numbers := map[[3]int32]int32{}
	for i := range m.Vertices {
		var at [3]int32
		for k, x := range m.Vertices[i].At {
			at[k] = int32(math.Floor(float64(x)/side + c.shift[k]))
		}
		n, known := numbers[at]
		if !known {
			n = int32(len(numbers))
			numbers[at] = n
		}
		c.of[i] = n
	}
	c.starts = make([]int, len(numbers)+1)
	inside := func(f [3]uint32) bool { return c.of[f[0]] == c.of[f[1]] && c.of[f[0]] == c.of[f[2]] }
	for _, f := range m.Faces {
		if inside(f) {
			c.starts[c.of[f[0]]+1]++
			continue
		}
		for _, v := range f {
			c.fixed[v] = true
		}
	}
	for n := 1; n < len(c.starts); n++ {
		c.starts[n] += c.starts[n-1]
	}
	c.faces = make([]int32, c.starts[len(numbers)])
	next := slices.Clone(c.starts)
	for i, f := range m.Faces {
		if n := c.of[f[0]]; inside(f) {
			c.faces[next[n]] = int32(i)
			next[n]++
		}
	}
	return c
}

// collapse collapses the edges of all cells that cost at most limit. Where most is given, cell n loses at most most[n]
// faces. It returns what it did in each cell.
func (c *cells) collapse(limit float64, most []int) [][]collapsed {
	done := make([][]collapsed, len(c.starts)-1)
	parallel.For(len(done), func(n int) {
		list := c.faces[c.starts[n]:c.starts[n+1]]
		if len(list) == 0 || most != nil && most[n] == 0 || c.stop() != nil {
			return
		}
		p, ids := c.patch(list)
		removed := math.MaxInt
		if most != nil {
			removed = most[n]
		}
		done[n] = p.collapse(limit, removed)
		c.put(p, ids, list)
	})
	return done
}

// patch is that of a cell's faces, and the numbers of its vertices in the mesh.
func (c *cells) patch(list []int32) (p *patch, ids []uint32) {
	m := c.mesh
	for _, i := range list {
		for _, v := range m.Faces[i] {
			c.local[v] = -1
		}
	}
	faces := make([][3]int32, len(list))
	for k, i := range list {
		for corner, v := range m.Faces[i] {
			if c.local[v] < 0 {
				c.local[v] = int32(len(ids))
				ids = append(ids, v)
			}
			faces[k][corner] = c.local[v]
		}
	}
	middle := m.Vertices[ids[0]].At
	at, color, fixed := make([]geom.Vec, len(ids)), make([]geom.Vec, len(ids)), make([]bool, len(ids))
	for i, v := range ids {
		vertex := &m.Vertices[v]
		for k := range 3 {
			at[i][k] = (float64(vertex.At[k]) - float64(middle[k])) / c.voxel
			color[i][k] = float64(vertex.Color[k]) * hueLength / 255
		}
		fixed[i] = c.fixed[v]
	}
	return newPatch(at, color, fixed, faces), ids
}

// put writes what became of a patch into the mesh: only its own faces and vertices.
func (c *cells) put(p *patch, ids []uint32, list []int32) {
	m := c.mesh
	middle := m.Vertices[ids[0]].At
	for i, v := range ids {
		if p.version[i] == 0 {
			continue
		}
		for k := range 3 {
			m.Vertices[v].At[k] = float32(float64(middle[k]) + p.at[i][k]*c.voxel)
			m.Vertices[v].Color[k] = uint8(math.Round(p.color[i][k] * 255 / hueLength))
		}
	}
	for k, i := range list {
		f := p.faces[k]
		if f[0] == gone {
			m.Faces[i][0] = none
			continue
		}
		for corner, v := range f {
			m.Faces[i][corner] = ids[v]
		}
	}
}

// cheapest is how many faces each cell may lose, so that all together lose that many, or one more, by order of cost.
func cheapest(done [][]collapsed, faces int) []int {
	type step struct {
		collapsed
		cell int
	}
	var all []step
	for n, list := range done {
		for _, s := range list {
			all = append(all, step{s, n})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.cost, b.cost) })
	most := make([]int, len(done))
	for _, s := range all {
		if faces <= 0 {
			break
		}
		most[s.cell] += s.faces
		faces -= s.faces
	}
	return most
}
