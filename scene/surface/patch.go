package surface

import (
	"cmp"
	"math"
	"slices"

	"vksplat/internal/geom"
)

// patch is the part of a mesh in one cell, of which edges collapse to vertices, the cheapest first. What touches the
// rest of the mesh stays as it is. Lengths are in voxels.
type patch struct {
	at, color []geom.Vec
	fixed     []bool // vertices that stay
	open      []bool // vertices of open edges
	quadrics  []quadric
	version   []uint32  // of vertices; it rises with each change
	around    [][]int32 // faces of vertices
	faces     [][3]int32
	queue     queue
	mark      []uint32 // of vertices: the last search that found them
	search    uint32
}

const (
	// leastTurn is the least cosine between the normals of a face before and after a collapse.
	leastTurn = 0.2
	// leastShape is how thick a face must stay, or thicker than it was: 1 has one of equal sides.
	leastShape = 0.05
)

type collapsed struct {
	cost  float64 // the highest so far in its patch
	faces int     // that went with it
}

// newPatch prepares the faces of a patch; vertices have their places, colours and whether they are fixed.
func newPatch(at, color []geom.Vec, fixed []bool, faces [][3]int32) *patch {
	n := len(at)
	p := &patch{at: at, color: color, fixed: fixed, faces: faces, open: make([]bool, n), quadrics: make([]quadric, n),
		version: make([]uint32, n), around: make([][]int32, n), mark: make([]uint32, n)}
	counts := make([]int, n)
	for _, f := range faces {
		for _, v := range f {
			counts[v]++
		}
	}
	list := make([]int32, 3*len(faces))
	for v, c := range counts {
		p.around[v], list = list[:0:c], list[c:]
	}
	for i, f := range faces {
		q, ok := ofFace([3]geom.Vec{at[f[0]], at[f[1]], at[f[2]]}, [3]geom.Vec{color[f[0]], color[f[1]], color[f[2]]})
		for _, v := range f {
			p.around[v] = append(p.around[v], int32(i))
			if ok {
				p.quadrics[v].add(&q)
			}
		}
	}
	for v := range p.quadrics {
		p.quadrics[v].rest(at[v])
	}
	p.addEdges()
	return p
}

// sideOf is an edge of a face.
type sideOf struct{ a, b, face int32 } // a < b

// addEdges finds open edges and those of more than two faces, and queues all that may collapse.
func (p *patch) addEdges() {
	edges := make([]sideOf, 0, 3*len(p.faces))
	for i, f := range p.faces {
		for k, v := range f {
			w := f[(k+1)%3]
			edges = append(edges, sideOf{min(v, w), max(v, w), int32(i)})
		}
	}
	slices.SortFunc(edges, func(x, y sideOf) int {
		return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b), cmp.Compare(x.face, y.face))
	})
	var single [][2]int32
	for i := 0; i < len(edges); {
		e, n := edges[i], 1
		for i+n < len(edges) && edges[i+n].a == e.a && edges[i+n].b == e.b {
			n++
		}
		i += n
		single = append(single, [2]int32{e.a, e.b})
		switch {
		case n > 2:
			p.fixed[e.a], p.fixed[e.b] = true, true
		case n == 1 && !(p.fixed[e.a] && p.fixed[e.b]):
			p.open[e.a], p.open[e.b] = true, true
			normal, _ := p.normal(p.faces[e.face])
			p.quadrics[e.a].rim(p.at[e.a], p.at[e.b], normal)
			p.quadrics[e.b].rim(p.at[e.a], p.at[e.b], normal)
		}
	}
	for _, e := range single {
		p.consider(e[0], e[1])
	}
	p.queue.order()
}

// normal is that of a face, of length 1, and twice its area.
func (p *patch) normal(f [3]int32) (n geom.Vec, double float64) {
	n = p.at[f[1]].Sub(p.at[f[0]]).Cross(p.at[f[2]].Sub(p.at[f[0]]))
	if double = n.Length(); double > 0 {
		n = n.Mul(1 / double)
	}
	return n, double
}

// consider puts an edge into the queue, behind all others: order or push sorts it.
func (p *patch) consider(a, b int32) bool {
	if p.fixed[a] || p.fixed[b] {
		return false
	}
	q := p.quadrics[a]
	q.add(&p.quadrics[b])
	if !(q.area > 0) {
		return false
	}
	_, _, cost := p.target(&q, a, b)
	p.queue = append(p.queue, candidate{cost, min(a, b), max(a, b), p.version[a] + p.version[b]})
	return true
}

// target is what an edge becomes: the best place, unless that is far off; then the best of its ends and middle.
func (p *patch) target(q *quadric, a, b int32) (at, color geom.Vec, cost float64) {
	from, to := p.at[min(a, b)], p.at[max(a, b)]
	middle := from.Add(to).Mul(0.5)
	if best, ok := q.best(); ok && best.Sub(middle).Length() <= to.Sub(from).Length() {
		color, cost = q.at(best)
		return best, color, cost
	}
	cost = math.Inf(1)
	for _, place := range [3]geom.Vec{middle, from, to} {
		if hue, x := q.at(place); x < cost {
			at, color, cost = place, hue, x
		}
	}
	return at, color, cost
}

// collapse collapses edges that cost at most limit, until most faces or one more are gone.
func (p *patch) collapse(limit float64, most int) (done []collapsed) {
	highest := 0.0
	for len(p.queue) > 0 && most > 0 {
		c := p.queue.pop()
		if c.cost > limit {
			break
		}
		if p.around[c.a] == nil || p.around[c.b] == nil || p.version[c.a]+p.version[c.b] != c.version {
			continue
		}
		q := p.quadrics[c.a]
		q.add(&p.quadrics[c.b])
		at, color, _ := p.target(&q, c.a, c.b)
		shared, ok := p.linked(c.a, c.b)
		if !ok || !p.turns(c.a, c.b, at) || !p.turns(c.b, c.a, at) {
			continue
		}
		p.quadrics[c.a], p.at[c.a], p.color[c.a] = q, at, color
		p.open[c.a] = p.open[c.a] || p.open[c.b]
		p.join(c.a, c.b)
		highest = max(highest, c.cost)
		done = append(done, collapsed{highest, shared})
		most -= shared
	}
	return done
}

// has says whether a face has a corner there.
func has(f [3]int32, v int32) bool { return f[0] == v || f[1] == v || f[2] == v }

// linked says whether an edge can become a vertex without faces that meet where none met before, and how many faces the
// edge has: its ends must have no common neighbours but the corners of those.
func (p *patch) linked(a, b int32) (shared int, ok bool) {
	corners := [2]int32{-1, -1}
	for _, i := range p.around[a] {
		if f := p.faces[i]; has(f, b) {
			if shared == 2 {
				return 0, false
			}
			corners[shared] = f[0] ^ f[1] ^ f[2] ^ a ^ b
			shared++
		}
	}
	if shared == 0 || shared == 2 && (corners[0] == corners[1] || p.open[a] && p.open[b]) {
		return 0, false
	}
	p.search += 2
	fans := 0 // faces between both corners, which would become one
	for _, i := range p.around[a] {
		f := p.faces[i]
		if has(f, corners[0]) && has(f, corners[1]) {
			fans++
		}
		for _, v := range f {
			p.mark[v] = p.search
		}
	}
	common := 0
	for _, i := range p.around[b] {
		f := p.faces[i]
		if has(f, corners[0]) && has(f, corners[1]) {
			fans++
		}
		for _, v := range f {
			if v != a && v != b && p.mark[v] == p.search {
				p.mark[v] = p.search + 1
				common++
			}
		}
	}
	return shared, common == shared && fans < 2
}

// turns says whether the faces of v that the edge to other does not take with it stay sound when v moves.
func (p *patch) turns(v, other int32, to geom.Vec) bool {
	for _, i := range p.around[v] {
		f := p.faces[i]
		if has(f, other) {
			continue
		}
		before, area := p.normal(f)
		shape := p.shape(f, area)
		from := p.at[v]
		p.at[v] = to
		after, now := p.normal(f)
		sound := p.shape(f, now)
		p.at[v] = from
		if area > 0 && before.Dot(after) < leastTurn || sound < min(leastShape, shape) {
			return false
		}
	}
	return true
}

// shape is how thick a face is whose double area is known.
func (p *patch) shape(f [3]int32, double float64) float64 {
	sum := 0.0
	for k := range 3 {
		e := p.at[f[k]].Sub(p.at[f[(k+1)%3]])
		sum += e.Dot(e)
	}
	if sum == 0 {
		return 0
	}
	return 2 * math.Sqrt(3) * double / sum
}

// gone marks faces that are no more.
const gone = -1

// join gives the faces of b to a, and queues the edges that changed.
func (p *patch) join(a, b int32) {
	list := make([]int32, 0, len(p.around[a])+len(p.around[b]))
	for _, i := range p.around[b] {
		f := &p.faces[i]
		if has(*f, a) {
			third := f[0] ^ f[1] ^ f[2] ^ a ^ b
			p.around[third] = slices.DeleteFunc(p.around[third], func(j int32) bool { return j == i })
			f[0] = gone
			continue
		}
		for k := range f {
			if f[k] == b {
				f[k] = a
			}
		}
		list = append(list, i)
	}
	for _, i := range p.around[a] {
		if p.faces[i][0] != gone {
			list = append(list, i)
		}
	}
	p.around[a], p.around[b] = list, nil
	p.version[a]++
	p.search += 2
	p.mark[a] = p.search
	for _, i := range list {
		for _, v := range p.faces[i] {
			if p.mark[v] != p.search {
				p.mark[v] = p.search
				if p.consider(a, v) {
					p.queue.rise()
				}
			}
		}
	}
}
