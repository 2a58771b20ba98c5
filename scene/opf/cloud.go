package opf

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// gltf is the part of a glTF that a cloud needs.
type gltf struct {
	Nodes []struct {
		Mesh   *int      `json:"mesh"`
		Matrix []float64 `json:"matrix"`
	} `json:"nodes"`
	Meshes []struct {
		Primitives []struct {
			Attributes map[string]int `json:"attributes"`
		} `json:"primitives"`
	} `json:"meshes"`
	Accessors []accessor `json:"accessors"`
	Views     []struct {
		Buffer int `json:"buffer"`
		Offset int `json:"byteOffset"`
		Length int `json:"byteLength"`
		Stride int `json:"byteStride"`
	} `json:"bufferViews"`
	Buffers []struct {
		URI string `json:"uri"`
	} `json:"buffers"`

	left map[string]int // bytes of a file of positions that no point was made of: several accessors may not share them
}

type accessor struct {
	View   int    `json:"bufferView"`
	Offset int    `json:"byteOffset"`
	Count  int    `json:"count"`
	Kind   int    `json:"componentType"`
	Type   string `json:"type"`
}

// mostPrimitives bounds how many primitives are read: nodes may share meshes, so that a small file stands for many.
const mostPrimitives = 1 << 16

// The kinds of numbers in a glTF that a cloud has.
const (
	kindUint8   = 5121
	kindFloat32 = 5126
)

// readCloud sets the points of all nodes of a glTF.
func readCloud(c *scene.Capture, file string) error {
	var g gltf
	if err := decode(file, &g); err != nil {
		return err
	}
	g.left = map[string]int{}
	bad, read := 0, 0
	for _, node := range g.Nodes {
		if node.Mesh == nil {
			continue
		}
		if *node.Mesh < 0 || *node.Mesh >= len(g.Meshes) {
			return fmt.Errorf("%w: mesh %d is not there", errCloud, *node.Mesh)
		}
		matrix, err := matrixOf(node.Matrix)
		if err != nil {
			return err
		}
		for _, p := range g.Meshes[*node.Mesh].Primitives {
			if read++; read > mostPrimitives {
				return fmt.Errorf("%w: its nodes have more than %d primitives", errCloud, mostPrimitives)
			}
			more, err := g.points(filepath.Dir(file), p.Attributes, matrix)
			if err != nil {
				return err
			}
			for _, q := range more {
				if !scene.InRange(q.Pos) {
					bad++
					continue
				}
				c.Points = append(c.Points, q)
			}
		}
	}
	c.WarnBadPoints(bad)
	return nil
}

// affine is a 3x4 matrix as its linear part and its translation.
type affine struct {
	linear [9]float64
	move   [3]float64
}

// matrixOf reads a matrix of 16 numbers, column by column, and turns the result from y up to z up: y to z, and z to -y.
func matrixOf(m []float64) (a affine, err error) {
	a.linear = geom.Identity
	switch {
	case len(m) == 16 && geom.Finite(m...):
		a.linear = [9]float64{m[0], m[4], m[8], m[1], m[5], m[9], m[2], m[6], m[10]}
		a.move = [3]float64{m[12], m[13], m[14]}
	case len(m) != 0:
		return a, fmt.Errorf("%w: a matrix has %d numbers, 16 are expected", errCloud, len(m))
	}
	up := [9]float64{1, 0, 0, 0, 0, -1, 0, 1, 0}
	return affine{geom.Product(up, a.linear), geom.Rotate(up, a.move)}, nil
}

// points reads those of a primitive.
func (g gltf) points(dir string, attributes map[string]int, m affine) ([]scene.Point, error) {
	position, n, err := g.bytes(dir, attributes, "POSITION", kindFloat32)
	if err != nil || n == 0 {
		return nil, err
	}
	colour, colours, err := g.bytes(dir, attributes, "COLOR_0", kindUint8)
	if err != nil {
		return nil, err
	}
	points := make([]scene.Point, n)
	for i := range points {
		p := &points[i]
		raw := position(i)
		for k := range p.Pos {
			p.Pos[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:])))
		}
		p.Pos = geom.Add(geom.Rotate(m.linear, p.Pos), m.move)
		p.Color = [3]uint8{128, 128, 128}
		if i < colours {
			copy(p.Color[:], colour(i))
		}
	}
	return points, nil
}

// bytes gives the bytes of each element of an attribute, which has n; none if the attribute is absent or of another
// kind than numbers of three or more.
func (g gltf) bytes(dir string, attributes map[string]int, name string, kind int) (at func(i int) []byte, n int,
	err error) {
	index, there := attributes[name]
	if !there {
		return nil, 0, nil
	}
	if index < 0 || index >= len(g.Accessors) {
		return nil, 0, fmt.Errorf("%w: accessor %d is not there", errCloud, index)
	}
	a := g.Accessors[index]
	parts := map[string]int{"VEC3": 3, "VEC4": 4}[a.Type]
	if parts == 0 || a.Kind != kind || a.View < 0 || a.View >= len(g.Views) {
		return nil, 0, fmt.Errorf("%w: %s is %.20s of kind %d", errCloud, name, a.Type, a.Kind)
	}
	v := g.Views[a.View]
	if v.Buffer < 0 || v.Buffer >= len(g.Buffers) {
		return nil, 0, fmt.Errorf("%w: buffer %d is not there", errCloud, v.Buffer)
	}
	file, err := below(dir, g.Buffers[v.Buffer].URI)
	if err != nil {
		return nil, 0, err
	}
	whole, err := exported.Size(file)
	if err != nil {
		return nil, 0, err
	}
	size := parts
	if kind == kindFloat32 {
		size *= 4
	}
	stride := v.Stride
	if stride == 0 {
		stride = size
	}
	if _, known := g.left[file]; !known {
		g.left[file] = whole
	}
	// Each number is below the size of the file before it is added.
	if min(v.Offset, v.Length, a.Offset, a.Count) < 0 || max(v.Offset, v.Length, a.Offset, a.Count) > whole ||
		stride < size || stride > 255 || v.Offset+v.Length > whole ||
		a.Count > 0 && a.Offset+(a.Count-1)*stride+size > v.Length {
		return nil, 0, fmt.Errorf("%w: %s goes beyond its buffer of %d bytes", errCloud, name, whole)
	}
	if g.left[file] -= a.Count * size; g.left[file] < 0 {
		return nil, 0, fmt.Errorf("%w: it reads its buffer of %d bytes repeatedly", errCloud, whole)
	}
	if a.Count == 0 {
		return nil, 0, nil
	}
	data, err := exported.Part(file, v.Offset+a.Offset, (a.Count-1)*stride+size)
	return func(i int) []byte { return data[i*stride : i*stride+size] }, a.Count, err
}
