package sky

import (
	"context"
	"math"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
)

// Where the sky is looked for, and what counts as it. Indoors, 95 cells at most pass for it (bare walls).
const (
	directions = 8192  // of the whole sphere: a cell is 2.2 degrees wide
	lowest     = -0.05 // sine of the lowest elevation
	leastShow  = 3     // photos that must show a cell, with no point around it
	shareShow  = 0.5   // of those that show it at all: things hide the sky from some
	likeness   = 0.06  // mean difference of its colours in photos from their median, of white
	leastCells = 200   // of such that hang together
)

// How far away the shell is.
const (
	farScales = 200 // scene scales: the path of the cameras moves it by a quarter of a degree
	farPoints = 2   // times the distance that one point in a hundred exceeds
)

// Shell is the result of Find.
type Shell struct {
	Radius float64       // around the origin of the training frame
	Points []scene.Point // none where there is no sky
}

// Find finds where the photos show the sky: in no direction far below the horizon, where the cloud has
// no points and photos have the same colour. Call it in the training frame. It decodes photos only where the points
// leave much of the view open, and then those that show that, as many at a time as room bytes of RAM hold. The number
// of them at a time changes nothing.
func Find(ctx context.Context, c *scene.Capture, room int64) (shell Shell, err error) {
	if c.Synthetic || len(c.Points) < leastPoints {
		return Shell{}, nil
	}
	up, err := meanUp(c.Cameras)
	if err != nil { // the photos agree on no up
		return Shell{}, nil
	}
	shell.Radius = radius(c)
	cells := lattice(up, shell.Radius)
	look(c, cells)
	open := pieces(cells,
		func(k *cell) bool { return k.shown > 0 && float64(len(k.open)) >= shareShow*float64(k.shown) },
		func(k *cell) bool { return len(k.open) >= leastShow })
	if len(open) == 0 {
		return Shell{}, nil
	}
	if err := paint(ctx, c, open, room); err != nil {
		return Shell{}, err
	}
	for _, k := range pieces(cells, func(k *cell) bool { return k.seen > 0 && k.differs <= likeness },
		func(k *cell) bool { return k.seen >= leastShow }) {
		shell.Points = append(shell.Points, scene.Point{Pos: k.at, Color: k.color})
	}
	return shell, nil
}

// radius returns that of the shell: beyond all cameras and, but for wrong ones, points.
func radius(c *scene.Capture) float64 {
	distances := make([]float64, len(c.Points))
	for i := range distances {
		distances[i] = geom.Length(c.Points[i].Pos)
	}
	return max(farScales*c.SceneScale, farPoints*geom.Quantile(distances, 0.99))
}

type cell struct {
	at    [3]float64 // in the training frame
	next  []int32    // neighbours
	shown int        // photos that show it
	open  []place    // those that show it with no point around

	// Once it is painted:
	seen    int // how many of those count
	color   [3]uint8
	differs float64 // mean difference of the colours from it, of white
}

// place is a pixel of a photo, which has no more than scene.MaxPixels.
type place struct{ photo, pixel int32 }

// lattice returns the cells that may be sky: a Fibonacci lattice, which is as dense everywhere, about the axis up.
func lattice(up [3]float64, radius float64) (cells []cell) {
	across := [3]float64{1, 0, 0}
	if math.Abs(up[0]) > 0.7 {
		across = [3]float64{0, 1, 0}
	}
	x := geom.Cross(up, across)
	x = geom.Scale(x, 1/geom.Length(x))
	y := geom.Cross(up, x)
	golden := math.Pi * (3 - math.Sqrt(5))
	for i := range directions {
		z := 1 - (2*float64(i)+1)/directions
		if z < lowest {
			break
		}
		sin, cos := math.Sincos(golden * float64(i))
		r := math.Sqrt(1 - z*z)
		at := geom.Add(geom.Scale(up, z), geom.Add(geom.Scale(x, r*cos), geom.Scale(y, r*sin)))
		cells = append(cells, cell{at: geom.Scale(at, radius)})
	}
	const reach = 1.5 // cells
	width := math.Sqrt(4 * math.Pi / directions)
	rows := int(reach * width * directions / 2) // z falls by 2/directions from one cell to the next
	parallel.For(len(cells), func(i int) {
		for j := max(0, i-rows); j < min(i+rows+1, len(cells)); j++ {
			if j != i && geom.Length(geom.Sub(cells[i].at, cells[j].at)) < reach*width*radius {
				cells[i].next = append(cells[i].next, int32(j))
			}
		}
	})
	return cells
}

// pieces returns the cells that belong, in their order, less those of pieces that have fewer than leastCells sure ones.
func pieces(cells []cell, belongs, sure func(k *cell) bool) (list []*cell) {
	done, kept := make([]bool, len(cells)), make([]bool, len(cells))
	for first := range cells {
		if done[first] || !belongs(&cells[first]) {
			continue
		}
		piece, certain := []int32{int32(first)}, 0
		done[first] = true
		for k := 0; k < len(piece); k++ {
			here := &cells[piece[k]]
			if sure(here) {
				certain++
			}
			for _, j := range here.next {
				if !done[j] && belongs(&cells[j]) {
					done[j] = true
					piece = append(piece, j)
				}
			}
		}
		for _, k := range piece {
			kept[k] = certain >= leastCells
		}
	}
	for i := range cells {
		if kept[i] {
			list = append(list, &cells[i])
		}
	}
	return list
}
