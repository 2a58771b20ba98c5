package ply

import (
	"fmt"
	"io"

	"vksplat/scene"
)

// missingColor is given to the points of a cloud without colours: mid grey.
const missingColor = 128

// ReadPoints reads a point cloud: x y z and, where present, red green blue as
// integers of 0..255 (uchar) or 0..65535 (ushort), or floats of 0..1. A cloud
// without colours is grey. Points may not be finite: callers judge them. The
// note says what is wrong with the end of the file, "" for nothing. Errors are
// of kind fault.ErrData.
func ReadPoints(path string) (points []scene.Point, note string, err error) {
	err = ReadWith(path, func(r io.Reader, size int64) (err error) {
		points, note, err = decodePoints(r, size)
		return err
	})
	return points, note, err
}

func decodePoints(r io.Reader, size int64) (points []scene.Point, note string, err error) {
	p, err := NewReader(r, size)
	if err != nil {
		return nil, "", err
	}
	cols, err := pointColumns(p.Vertex())
	if err != nil {
		return nil, "", err
	}
	points = make([]scene.Point, p.Vertex().count)
	if err := p.rows(func(i int, row []float64) { points[i] = cols.point(row) }); err != nil {
		return nil, "", err
	}
	return points, p.note, nil
}

// pointCols are the columns of a point; scale takes a colour value to 0..255.
type pointCols struct {
	position, color [3]int
	hasColor        bool
	scale           float64
}

func pointColumns(e *Element) (c pointCols, err error) {
	find := columnFinder{element: e, used: make([]bool, len(e.properties))}
	for axis, name := range []string{"x", "y", "z"} {
		c.position[axis] = find.column(name)
	}
	if len(find.missing) > 0 {
		return c, fmt.Errorf("element vertex lacks %v", find.missing)
	}
	for _, prefix := range []string{"", "diffuse_"} {
		find.missing = nil
		for j, name := range []string{"red", "green", "blue"} {
			c.color[j] = find.column(prefix + name)
		}
		if len(find.missing) == 0 {
			c.hasColor = true
			break
		}
	}
	switch e.properties[c.color[0]].kind {
	case plyFloat32, plyFloat64:
		c.scale = 255
	case plyUint16:
		c.scale = 255.0 / 65535
	default:
		c.scale = 1
	}
	return c, nil
}

func (c *pointCols) point(row []float64) scene.Point {
	p := scene.Point{Color: [3]uint8{missingColor, missingColor, missingColor}}
	for axis, column := range c.position {
		p.Pos[axis] = row[column]
	}
	if !c.hasColor {
		return p
	}
	for j, column := range c.color {
		p.Color[j] = scene.ToByte(row[column] * c.scale)
	}
	return p
}
