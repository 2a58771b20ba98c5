package sky

import (
	"context"
	"maps"
	"math"
	"slices"

	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

const (
	leastPoints = 100     // in its picture, for a photo to say where there are none
	mostPoints  = 1 << 16 // about how many of the cloud are looked at
	mostPhotos  = 256     // that are decoded, at even distances
	chunkPhotos = 512     // whose sights are in memory at a time: some 50 KB each
)

type sight struct {
	cell, pixel int32
	open        bool // no point is around it
}

// look finds which photos show which cells, and where no point is around them.
func look(c *scene.Capture, cells []cell) {
	for first := 0; first < len(c.Cameras); first += chunkPhotos {
		sights := make([][]sight, min(chunkPhotos, len(c.Cameras)-first))
		parallel.For(len(sights), func(i int) { sights[i] = sightsOf(&c.Cameras[first+i], c.Points, cells) })
		for i, list := range sights {
			for _, s := range list {
				k := &cells[s.cell]
				k.shown++
				if s.open {
					k.open = append(k.open, place{int32(first + i), s.pixel})
				}
			}
		}
	}
}

// sightsOf returns the cells in a camera's picture. It is divided into squares that have a point each in the mean:
// where one and its eight neighbours have none, the view is open.
func sightsOf(cam *scene.Camera, points []scene.Point, cells []cell) (list []sight) {
	var at [][2]float64
	for k := 0; k < len(points); k += 1 + len(points)/mostPoints {
		if u, v, _, in := cam.Project(points[k].Pos, 0, math.Inf(1)); in {
			at = append(at, [2]float64{u, v})
		}
	}
	if len(at) < leastPoints {
		return nil
	}
	side := math.Sqrt(float64(cam.Width) * float64(cam.Height) / float64(len(at)))
	// With a border, so that each square has eight neighbours.
	columns, rows := int(float64(cam.Width)/side)+3, int(float64(cam.Height)/side)+3
	square := func(u, v float64) int { return (int(v/side)+1)*columns + int(u/side) + 1 }
	has := make([]bool, columns*rows)
	for _, p := range at {
		has[square(p[0], p[1])] = true
	}
	for i := range cells {
		u, v, _, in := cam.Project(cells[i].at, 0, math.Inf(1))
		if !in {
			continue
		}
		near := false
		for k, row := square(u, v), -1; row <= 1; row++ {
			near = near || slices.Contains(has[k+row*columns-1:k+row*columns+2], true)
		}
		list = append(list, sight{int32(i), int32(int(v)*cam.Width + int(u)), !near})
	}
	return list
}

// spot is a pixel of a photo, and where its colour belongs.
type spot struct {
	pixel int32
	color *[4]uint8
}

// paint finds the colours of cells in the photos that show them open, of which it decodes as many at a time as room
// bytes hold. A photo that cannot be decoded says nothing, nor does a pixel that its mask or its alpha leaves out.
func paint(ctx context.Context, c *scene.Capture, cells []*cell, room int64) error {
	colors := make([][][4]uint8, len(cells))
	spots := make(map[int32][]spot) // by photo
	for i, k := range cells {
		colors[i] = make([][4]uint8, len(k.open))
		for n, p := range k.open {
			spots[p.photo] = append(spots[p.photo], spot{p.pixel, &colors[i][n]})
		}
	}
	photos := slices.Sorted(maps.Keys(spots))
	n := min(len(photos), mostPhotos)
	cams, wanted := make([]scene.Camera, n), make([][]spot, n)
	for i := range cams {
		id := photos[i*len(photos)/n]
		cams[i], wanted[i] = c.Cameras[id], spots[id]
	}
	decode := func(i int) {
		if ctx.Err() != nil {
			return
		}
		img, err := photo.Decode(cams[i])
		if err != nil {
			return
		}
		for _, s := range wanted[i] {
			if p := int(s.pixel); img.Mask == nil || photo.Counts(img.Mask, p) {
				*s.color = [4]uint8(img.Pix[4*p:])
			}
		}
		photo.Recycle(img)
	}
	parallel.Workers(n, atOnce(cams, room), func() func(i int) { return decode })
	for i, k := range cells {
		k.judge(colors[i])
	}
	return ctx.Err()
}

// atOnce is how many of the photos fit into room bytes while they are decoded: one or more.
func atOnce(cams []scene.Camera, room int64) int {
	most := int64(1)
	for i, cost := range photo.DecodeCosts(cams) {
		most = max(most, cost+4*int64(cams[i].Width)*int64(cams[i].Height))
	}
	return int(min(max(room/most, 1), mostPhotos))
}

// judge sets the colour of a cell from those of pixels, of which opaque ones count.
func (k *cell) judge(pixels [][4]uint8) {
	pixels = slices.DeleteFunc(pixels, func(p [4]uint8) bool { return p[3] != 255 })
	if k.seen = len(pixels); k.seen == 0 {
		return
	}
	var sum float64
	for ch := range k.color {
		values := make([]float64, len(pixels))
		for i, p := range pixels {
			values[i] = float64(p[ch])
		}
		median := scene.Median(values)
		k.color[ch] = scene.ToByte(median)
		for _, x := range values {
			sum += math.Abs(x - median)
		}
	}
	k.differs = sum / float64(3*255*k.seen)
}
