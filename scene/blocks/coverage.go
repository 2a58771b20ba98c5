package blocks

import (
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// How the picture of a capture's coverage looks.
const (
	inside      = 0.02 // share of the points on each side that may lie outside of the picture
	mostAround  = 3.0  // of the cameras' extent, that points may take on each side
	gazeLength  = 22   // pixels of the line from a camera to where it looks
	leastGround = 1e-6
)

// coverageShades are the colours of points by the number of photos that see them: up to most, the last any more.
var coverageShades = []struct {
	most int
	text string
	color.RGBA
}{
	{2, "2 photos", color.RGBA{R: 0xd7, G: 0x4b, B: 0x3c, A: 0xff}},
	{4, "3 to 4", color.RGBA{R: 0xe4, G: 0x9b, B: 0x3a, A: 0xff}},
	{9, "5 to 9", color.RGBA{R: 0x6d, G: 0xa8, B: 0x5b, A: 0xff}},
	{math.MaxInt, "10 or more", color.RGBA{R: 0x3c, G: 0x73, B: 0xa8, A: 0xff}},
}

// WriteCoverage draws a capture, which is in its own frame, from above: points in colours that say how many photos see
// them, and cameras with lines to where they look.
func WriteCoverage(path string, c *scene.Capture) error {
	up, err := findUp(c.Cameras)
	if err != nil { // cameras that look everywhere have some plane, too
		up, _ = planeOf(c.Cameras)
	}
	g := newGround(c.Cameras, geom.Vec(up).Unit())
	places, shades := make([][2]float64, len(c.Points)), make([]int, len(c.Points))
	for i := range c.Points {
		places[i] = g.At(c.Points[i].Pos)
	}
	err = colmap.EachTrack(c, func(point int, cams []int) {
		for shades[point] < len(coverageShades)-1 && len(cams) > coverageShades[shades[point]].most {
			shades[point]++
		}
	})
	if err != nil {
		return err
	}
	d := newDrawing(coverageArea(boundsOf(c.Cameras, &g), places))
	radius := 1
	if len(places) > manyPoints {
		radius = 0
	}
	for shade := range coverageShades { // the better covered ones on top
		for i, at := range places {
			if shades[i] == shade {
				d.dot(at, radius, mixed(coverageShades[shade].RGBA, paper, 0.8))
			}
		}
	}
	for i := range c.Cameras {
		d.gaze(&c.Cameras[i], &g)
	}
	d.coverageLegend(len(c.Cameras), len(c.Points))
	return atomicfile.Write(path, func(w io.Writer) error { return png.Encode(w, d.RGBA) })
}

// coverageArea holds all cameras and most points, as far as these are not far away from the cameras.
func coverageArea(cams Rect, places [][2]float64) Rect {
	area, size := cams, cams.size()
	reach := mostAround * max(size[0], size[1], leastGround)
	for k := range 2 {
		at := make([]float64, len(places))
		for i := range places {
			at[i] = places[i][k]
		}
		if slices.Sort(at); len(at) > 0 {
			out := int(inside * float64(len(at)))
			area.Min[k] = min(area.Min[k], max(at[out], cams.Min[k]-reach))
			area.Max[k] = max(area.Max[k], min(at[len(at)-1-out], cams.Max[k]+reach))
		}
	}
	size = area.size()
	if lacks := size[1] - size[0]; lacks > 0 { // the legend needs the width
		area.Min[0], area.Max[0] = area.Min[0]-lacks/2, area.Max[0]+lacks/2
	}
	return area
}

// gaze draws a camera, and a line to where it looks, the shorter the more that is up or down.
func (d *drawing) gaze(c *scene.Camera, g *Ground) {
	at := g.At(c.Center())
	ahead := g.At([3]float64{c.R[6], c.R[7], c.R[8]})
	x, y := d.pixel(at)
	for i := range gazeLength {
		d.Set(x+int(math.Round(ahead[0]*float64(i))), y-int(math.Round(ahead[1]*float64(i))), ink)
	}
	d.dot(at, 3, ink)
}

// coverageLegend says what signs mean, and how many there are.
func (d *drawing) coverageLegend(cameras, points int) {
	y := d.height() + legend/2
	x := 16
	d.disc(x, y, 5, ink)
	x = d.words(x+14, y, fmt.Sprintf("%d cameras", cameras))
	x = d.words(x, y, fmt.Sprintf("%d points, seen by", points))
	for _, shade := range coverageShades {
		d.disc(x, y, 5, shade.RGBA)
		x = d.words(x+14, y, shade.text)
	}
}

func (d *drawing) words(x, y int, text string) (next int) {
	d.write(x, y, text, false)
	return x + letters*letterWidth*len(text) + 30
}
