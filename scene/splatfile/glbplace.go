package splatfile

import (
	"errors"
	"fmt"
	"math"

	"vksplat/scene"
)

// glbPlace is where nodes put a model: axes turned by half a turn or not, then one scale, then a shift.
type glbPlace struct {
	sign  [3]float32
	scale float64
	shift [3]float64
}

var unmoved = glbPlace{sign: [3]float32{1, 1, 1}, scale: 1}

// matrix4 is a transform of points, row by row: the last row is 0 0 0 1.
type matrix4 [3][4]float64

// apply moves a piece.
func (p glbPlace) apply(s *scene.Splats) {
	if p == unmoved {
		return
	}
	Flip(s, p.sign[0], p.sign[1], p.sign[2])
	grow := math.Log(p.scale)
	for i := range s.Means {
		s.Means[i] = float32(float64(s.Means[i])*p.scale + p.shift[i%3])
		s.LogScales[i] = float32(float64(s.LogScales[i]) + grow)
	}
}

// place finds the node of a mesh and what it and the nodes above do to it. A mesh without a node stays where it is.
func (f *glbFile) place(mesh int) (glbPlace, error) {
	nodes := f.root.Nodes
	at := -1
	parent := make([]int, len(nodes))
	for i := range nodes {
		parent[i] = -1
	}
	for i, node := range nodes {
		for _, child := range node.Children {
			if child < 0 || child >= len(nodes) || parent[child] >= 0 {
				return unmoved, fmt.Errorf("node %d: its child %d is not there or has two parents", i, child)
			}
			parent[child] = i
		}
		if node.Mesh == nil || *node.Mesh != mesh {
			continue
		}
		if at >= 0 {
			return unmoved, &scene.Error{Op: "read glb", Err: errors.New("the splats are placed more than once"), Hint: "export them once"}
		}
		at = i
	}
	total := matrix4{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}
	for steps := 0; at >= 0; at = parent[at] {
		if steps++; steps > len(nodes) {
			return unmoved, errors.New("the nodes are above each other in a ring")
		}
		m, err := nodes[at].matrix()
		if err != nil {
			return unmoved, fmt.Errorf("node %d: %w", at, err)
		}
		total = m.times(total)
	}
	return total.placement()
}

func (a matrix4) times(b matrix4) (out matrix4) {
	for i := range 3 {
		for j := range 4 {
			for k := range 3 {
				out[i][j] += a[i][k] * b[k][j]
			}
		}
		out[i][3] += a[i][3]
	}
	return out
}

// matrix is what a node does to what is below it: its matrix, column by column in the file, or shift, rotation x y z w and scale.
func (n gltfNode) matrix() (m matrix4, err error) {
	if len(n.Matrix) > 0 {
		if len(n.Matrix) != 16 {
			return m, fmt.Errorf("its matrix has %d numbers", len(n.Matrix))
		}
		for i := range 3 {
			for j := range 4 {
				m[i][j] = n.Matrix[4*j+i]
			}
		}
		return m, nil
	}
	shift, q, scale := []float64{0, 0, 0}, []float64{0, 0, 0, 1}, []float64{1, 1, 1}
	for _, part := range []struct {
		from []float64
		to   *[]float64
	}{{n.Translation, &shift}, {n.Rotation, &q}, {n.Scale, &scale}} {
		switch {
		case len(part.from) == len(*part.to):
			*part.to = part.from
		case len(part.from) > 0:
			return m, fmt.Errorf("its transform has %d numbers instead of %d", len(part.from), len(*part.to))
		}
	}
	x, y, z, w := q[0], q[1], q[2], q[3]
	m = matrix4{
		{1 - 2*(y*y+z*z), 2 * (x*y - w*z), 2 * (x*z + w*y)},
		{2 * (x*y + w*z), 1 - 2*(x*x+z*z), 2 * (y*z - w*x)},
		{2 * (x*z - w*y), 2 * (y*z + w*x), 1 - 2*(x*x+y*y)},
	}
	for i := range 3 {
		for j := range 3 {
			m[i][j] *= scale[j]
		}
		m[i][3] = shift[i]
	}
	return m, nil
}

// placement takes a transform apart. Others than half turns, one scale and a shift would have to turn spherical harmonics and are refused.
func (a matrix4) placement() (glbPlace, error) {
	p := unmoved
	refuse := &scene.Error{Op: "read glb", Err: errors.New("its nodes turn the splats by other than half turns, mirror them or stretch them"),
		Hint: "apply the transform in the program that made the file"}
	p.scale = math.Abs(a[0][0])
	if !(p.scale > 0) || math.IsInf(p.scale, 0) {
		return unmoved, refuse
	}
	product := float32(1)
	for i := range 3 {
		p.sign[i] = float32(math.Copysign(1, a[i][i]))
		product *= p.sign[i]
		p.shift[i] = a[i][3]
		for j := range 3 {
			want := 0.0
			if i == j {
				want = float64(p.sign[i]) * p.scale
			}
			if !(math.Abs(a[i][j]-want) <= 1e-6*p.scale) {
				return unmoved, refuse
			}
		}
		if math.IsNaN(p.shift[i]) || math.IsInf(p.shift[i], 0) {
			return unmoved, refuse
		}
	}
	if product < 0 {
		return unmoved, refuse
	}
	return p, nil
}
