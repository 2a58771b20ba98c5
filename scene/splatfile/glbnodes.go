package splatfile

import (
	"errors"
	"fmt"
	"math"

	"vksplat/internal/fault"
)

// matrix4 is a transform of points, row by row: the last row is 0 0 0 1.
type matrix4 [12]float64

// place finds the node of a mesh and what it and the nodes above do to it. A mesh without a node stays where it is.
func (f *glbFile) place(mesh int) (Similarity, error) {
	nodes := f.root.Nodes
	at := -1
	parent := make([]int, len(nodes))
	for i := range nodes {
		parent[i] = -1
	}
	for i, node := range nodes {
		for _, child := range node.Children {
			if child < 0 || child >= len(nodes) || parent[child] >= 0 {
				return Unmoved(), fmt.Errorf("node %d: its child %d is not there or has two parents", i, child)
			}
			parent[child] = i
		}
		if node.Mesh == nil || *node.Mesh != mesh {
			continue
		}
		if at >= 0 {
			return Unmoved(), &fault.Error{Op: opReadGLB, Err: errors.New("the splats are placed more than once"),
				Hint: "export them once"}
		}
		at = i
	}
	total := matrix4{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}
	for steps := 0; at >= 0; at = parent[at] {
		if steps++; steps > len(nodes) {
			return Unmoved(), errors.New("the nodes form a cycle")
		}
		m, err := nodes[at].matrix()
		if err != nil {
			return Unmoved(), fmt.Errorf("node %d: %w", at, err)
		}
		total = m.times(total)
	}
	s, err := similarityOf(total)
	if err != nil {
		return s, &fault.Error{Op: opReadGLB, Err: fmt.Errorf("what its nodes do to the splats: %w", err),
			Hint: "apply the transform in the program that made the file"}
	}
	return s, nil
}

func (a matrix4) times(b matrix4) (out matrix4) {
	for i := range 3 {
		for j := range 4 {
			for k := range 3 {
				out[4*i+j] += a[4*i+k] * b[4*k+j]
			}
		}
		out[4*i+3] += a[4*i+3]
	}
	return out
}

// matrix is what a node does to what is below it: its matrix, column by column in the file, or shift, rotation x y z w
// and scale.
func (n gltfNode) matrix() (m matrix4, err error) {
	if len(n.Matrix) > 0 {
		if len(n.Matrix) != 16 {
			return m, fmt.Errorf("its matrix has %d numbers", len(n.Matrix))
		}
		for i := range m {
			m[i] = n.Matrix[i%4*4+i/4]
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
	if length := math.Hypot(math.Hypot(q[0], q[1]), math.Hypot(q[2], q[3])); !(length > 0) {
		return m, fmt.Errorf("its rotation is %v", q)
	}
	r := rotationOf([4]float64{q[3], q[0], q[1], q[2]})
	for i := range 3 {
		for j := range 3 {
			m[4*i+j] = r[3*i+j] * scale[j]
		}
		m[4*i+3] = shift[i]
	}
	return m, nil
}
