package ref

import (
	"cmp"
	"math"
	"slices"

	"vksplat/shaders/layout"
)

// twin: sift_input sift_blur sift_halve sift_extrema sift_orient sift_describe

// Constants of shaders/shared/sift.glsl.
const (
	siftLevels = 6
	siftTileX  = 32
	siftTileY  = 16
	SiftSlots  = 32
)

// Plane is a picture of one number a pixel, without gaps between rows.
type Plane[T Real] struct {
	Width, Height int
	Data          []T
}

func NewPlane[T Real](width, height int) Plane[T] {
	return Plane[T]{width, height, make([]T, width*height)}
}

// At returns a pixel, beyond the border the next one within.
func (p *Plane[T]) At(x, y int) T {
	return p.Data[min(max(y, 0), p.Height-1)*p.Width+min(max(x, 0), p.Width-1)]
}

// SiftInput makes the first octave of a grey photo: 1 or 2 pixels of each.
func SiftInput[T Real](photo []byte, width, height, zoom int) Plane[T] {
	from, to := NewPlane[T](width, height), NewPlane[T](zoom*width, zoom*height)
	for i, v := range photo {
		from.Data[i] = T(v)
	}
	for i := range to.Data {
		x, y := i%to.Width, i/to.Width
		px, py := x/zoom, y/zoom
		qx, qy := px+x%zoom, py+y%zoom
		to.Data[i] = (from.At(px, py) + from.At(qx, py) + from.At(px, qy) + from.At(qx, qy)) / 1020
	}
	return to
}

// SiftBlur convolves rows and then columns: weights are those of one side, from the middle on.
func SiftBlur[T Real](p Plane[T], weights []T) Plane[T] {
	for _, step := range [][2]int{{1, 0}, {0, 1}} {
		to := NewPlane[T](p.Width, p.Height)
		for i := range to.Data {
			x, y := i%p.Width, i/p.Width
			sum := weights[0] * p.At(x, y)
			for k := 1; k < len(weights); k++ {
				sum += weights[k] * (p.At(x-k*step[0], y-k*step[1]) + p.At(x+k*step[0], y+k*step[1]))
			}
			to.Data[i] = sum
		}
		p = to
	}
	return p
}

// SiftHalve takes every second pixel.
func SiftHalve[T Real](p Plane[T]) Plane[T] {
	to := NewPlane[T]((p.Width+1)/2, (p.Height+1)/2)
	for i := range to.Data {
		to.Data[i] = p.At(2*(i%to.Width), 2*(i/to.Width))
	}
	return to
}

// SiftOctave is the levels of an octave.
type SiftOctave[T Real] [siftLevels]Plane[T]

// difference is of levels l + 1 and l.
func (o *SiftOctave[T]) difference(l, x, y int) T { return o[l+1].At(x, y) - o[l].At(x, y) }

// SiftExtrema finds the extrema of each tile, level by level.
func SiftExtrema[T Real](o *SiftOctave[T], peak, edge T) (tiles [][]layout.SiftPoint) {
	width, height := o[0].Width, o[0].Height
	for y := 0; y < height; y += siftTileY {
		for x := 0; x < width; x += siftTileX {
			var found []layout.SiftPoint
			for l := 1; l <= siftLevels-3; l++ {
				for i := range siftTileX * siftTileY {
					px, py := x+i%siftTileX, y+i/siftTileX
					if px < 1 || py < 1 || px > width-2 || py > height-2 || !o.extremal(l, px, py, 0.8*peak) {
						continue
					}
					if p, ok := o.refine(l, px, py, peak, edge); ok && len(found) < SiftSlots {
						found = append(found, p)
					}
				}
			}
			tiles = append(tiles, found)
		}
	}
	return tiles
}

func (o *SiftOctave[T]) extremal(l, x, y int, least T) bool {
	v := o.difference(l, x, y)
	above, below := v >= least, v <= -least
	for i := range 27 {
		if i == 13 {
			continue
		}
		w := o.difference(l+i/9-1, x+i%3-1, y+i/3%3-1)
		above, below = above && v > w, below && v < w
	}
	return above || below
}

// refine goes from an extremum to where the parabola through its neighbours is extremal.
func (o *SiftOctave[T]) refine(l, x, y int, peak, edge T) (p layout.SiftPoint, ok bool) {
	var offset vec3[T]
	var value, ratio T
	for k := range 5 {
		offset, value, ratio = o.parabola(l, x, y)
		toX, toY := x, y
		for i, to := range []*int{&toX, &toY} {
			if offset[i] > 0.6 {
				*to++
			} else if offset[i] < -0.6 {
				*to--
			}
		}
		toX, toY = min(max(toX, 1), o[0].Width-2), min(max(toY, 1), o[0].Height-2)
		if k == 4 || toX == x && toY == y {
			break
		}
		x, y = toX, toY
	}
	ax, ay, al := T(x)+offset[0], T(y)+offset[1], T(l)+offset[2]
	ok = max(value, -value) > peak && ratio >= 0 && ratio < (edge+1)*(edge+1)/edge && min(ax, ay, al) >= 0 &&
		ax <= T(o[0].Width-1) && ay <= T(o[0].Height-1)
	for _, v := range offset {
		ok = ok && max(v, -v) < 1.5
	}
	return layout.SiftPoint{X: float32(ax), Y: float32(ay), Level: float32(al), Nearest: uint32(l)}, ok
}

// parabola returns where the parabola through the neighbours of a pixel is extremal, its value there, and the ratio of
// the squared trace of its curvature to the determinant.
func (o *SiftOctave[T]) parabola(l, x, y int) (offset vec3[T], value, ratio T) {
	at := func(dx, dy, dl int) T { return o.difference(l+dl, x+dx, y+dy) }
	mixed := func(a, b, c, d T) T { return (a + b - c - d) / 4 }
	v := at(0, 0, 0)
	d := vec3[T]{(at(1, 0, 0) - at(-1, 0, 0)) / 2, (at(0, 1, 0) - at(0, -1, 0)) / 2, (at(0, 0, 1) - at(0, 0, -1)) / 2}
	xx, yy, ss := at(1, 0, 0)+at(-1, 0, 0)-2*v, at(0, 1, 0)+at(0, -1, 0)-2*v, at(0, 0, 1)+at(0, 0, -1)-2*v
	xy := mixed(at(1, 1, 0), at(-1, -1, 0), at(1, -1, 0), at(-1, 1, 0))
	xs := mixed(at(1, 0, 1), at(-1, 0, -1), at(-1, 0, 1), at(1, 0, -1))
	ys := mixed(at(0, 1, 1), at(0, -1, -1), at(0, -1, 1), at(0, 1, -1))
	a, b, c := vec3[T]{xx, xy, xs}, vec3[T]{xy, yy, ys}, vec3[T]{xs, ys, ss}
	if determinant := siftDot(a, siftCross(b, c)); determinant != 0 {
		offset = vec3[T]{-siftDot(d, siftCross(b, c)) / determinant, -siftDot(d, siftCross(c, a)) / determinant,
			-siftDot(d, siftCross(a, b)) / determinant}
	}
	return offset, v + siftDot(d, offset)/2, (xx + yy) * (xx + yy) / (xx*yy - xy*xy)
}

func siftDot[T Real](a, b vec3[T]) T { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func siftCross[T Real](a, b vec3[T]) vec3[T] {
	return vec3[T]{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// siftSigma is the standard deviation of the blur at a level.
func siftSigma(level float32) float64 { return 1.6 * math.Exp2(float64(level)/3) }

// around calls add for each pixel of a level in a square around a point that has a gradient: with its distance from the
// point, and the gradient's length and angle in [0, 2 pi).
func (o *SiftOctave[T]) around(p layout.SiftPoint, radius int, add func(dx, dy, length, angle float64)) {
	g := &o[p.Nearest]
	mx, my := int(math.Floor(float64(p.X)+0.5)), int(math.Floor(float64(p.Y)+0.5))
	for y := max(my-radius, 1); y <= min(my+radius, g.Height-2); y++ {
		for x := max(mx-radius, 1); x <= min(mx+radius, g.Width-2); x++ {
			gx, gy := float64(g.At(x+1, y)-g.At(x-1, y))/2, float64(g.At(x, y+1)-g.At(x, y-1))/2
			angle := math.Atan2(gy, gx)
			if angle < 0 {
				angle += 2 * math.Pi
			}
			add(float64(x)-float64(p.X), float64(y)-float64(p.Y), math.Hypot(gx, gy), angle)
		}
	}
}

// SiftDirection is a peak of a point's histogram of directions.
type SiftDirection struct{ Angle, Height float64 }

// SiftOrient returns the peaks of the histogram of directions around a point, the highest first.
func SiftOrient[T Real](o *SiftOctave[T], p layout.SiftPoint) (peaks []SiftDirection) {
	const bins = 36
	var h [bins]float64
	sigma := 1.5 * siftSigma(p.Level)
	radius := max(int(3*sigma), 1)
	o.around(p, radius, func(dx, dy, length, angle float64) {
		if dx*dx+dy*dy >= float64(radius*radius)+0.6 {
			return
		}
		w := length * math.Exp(-(dx*dx+dy*dy)/(2*sigma*sigma))
		bin := angle*bins/(2*math.Pi) - 0.5
		low := math.Floor(bin)
		h[(int(low)+bins)%bins] += w * (1 - (bin - low))
		h[(int(low)+1)%bins] += w * (bin - low)
	})
	for range 6 {
		from := h
		for i := range h {
			h[i] = (from[(i+bins-1)%bins] + from[i] + from[(i+1)%bins]) / 3
		}
	}
	for i := range h {
		before, after := h[(i+bins-1)%bins], h[(i+1)%bins]
		if h[i] > before && h[i] > after {
			at := math.Mod(float64(i)+0.5-0.5*(after-before)/(after+before-2*h[i])+bins, bins)
			peaks = append(peaks, SiftDirection{at * 2 * math.Pi / bins, h[i]})
		}
	}
	slices.SortStableFunc(peaks, func(a, b SiftDirection) int { return cmp.Compare(b.Height, a.Height) })
	return peaks
}

// SiftDescribe returns the descriptor of a point and a direction, before it is rounded to bytes.
func SiftDescribe[T Real](o *SiftOctave[T], p layout.SiftPoint, direction float64) (d [128]float64) {
	side := 3 * siftSigma(p.Level)
	sin, cos := math.Sincos(direction)
	o.around(p, int(math.Sqrt2*side*2.5+0.5), func(dx, dy, length, angle float64) {
		x, y := (cos*dx+sin*dy)/side, (cos*dy-sin*dx)/side
		if max(math.Abs(x), math.Abs(y)) >= 2.5 {
			return
		}
		turn := math.Mod(angle-direction+2*math.Pi, 2*math.Pi) * 8 / (2 * math.Pi)
		w := length * math.Exp(-(x*x+y*y)/8)
		for i := range d {
			to := [3]float64{float64(i/8%4) - 1.5, float64(i/32) - 1.5, -float64(i % 8)}
			near := max(0, 1-math.Abs(x-to[0])) * max(0, 1-math.Abs(y-to[1]))
			d[i] += w * near * max(0, 1-math.Abs(math.Remainder(turn-to[2], 8)))
		}
	})
	norm, total := 0.0, 0.0
	for _, v := range d {
		norm += v * v
	}
	for i := range d {
		d[i] = min(d[i]/max(math.Sqrt(norm), 1e-30), 0.2)
		total += d[i]
	}
	for i := range d {
		d[i] = min(512*math.Sqrt(d[i]/max(total, 1e-30)), 255)
	}
	return d
}
