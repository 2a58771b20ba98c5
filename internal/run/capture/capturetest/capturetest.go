// Package capturetest draws photos of a scene whose cameras can be found, for tests that do.
package capturetest

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
)

// Pebbles is a grey of 0 to 1 that differs everywhere in space: noise of three sizes. The scenes of package synth have
// walls that repeat themselves, whose matches are ambiguous.
func Pebbles(p geom.Vec) float64 {
	sum := 0.0
	for octave, size := range []float64{4, 11, 29} {
		var cell [3]int
		var part geom.Vec
		for k := range 3 {
			f := math.Floor(p[k] * size)
			cell[k], part[k] = int(f), p[k]*size-f
		}
		for corner := range 8 {
			weight, h := 1.0, uint32(octave+1)*0x9e3779b9
			for k := range 3 {
				bit := corner >> k & 1
				weight *= 1 - math.Abs(float64(bit)-part[k])
				h = (h ^ uint32(cell[k]+bit)) * 0x85ebca6b
				h ^= h >> 13
			}
			sum += weight * float64(h%1024) / 1024
		}
	}
	return min(max((sum/3-0.5)*2.2+0.5, 0), 1)
}

// Shade is the grey value of what a ray hits: the floor, a wall behind, or one of some balls.
func Shade(from, ray geom.Vec) float64 {
	nearest := math.Inf(1)
	meet := func(t float64) {
		if t > 1e-6 {
			nearest = min(nearest, t)
		}
	}
	meet(-from[2] / ray[2])
	meet((3 - from[1]) / ray[1])
	for _, ball := range []geom.Vec{{-0.9, 0.2, 0.5}, {0.7, -0.3, 0.4}, {0.1, 1.2, 0.8}} {
		to := from.Sub(ball)
		half, rest := to.Dot(ray), to.Dot(to)-ball[2]*ball[2]
		if root := half*half - rest; root > 0 {
			meet(-half - math.Sqrt(root))
		}
	}
	if math.IsInf(nearest, 1) || nearest > 20 {
		return 0.5
	}
	return Pebbles(from.Add(ray.Mul(nearest)))
}

// Walk is where photo i of n is taken from: an arc around the balls that rises.
func Walk(i, n int) geom.Vec {
	a := (float64(i)/float64(n-1) - 0.5) * 1.4
	return geom.Vec{4 * math.Sin(a), -4 * math.Cos(a), 1.4 + 0.5*math.Sin(3*a)}
}

// A Lens says where a place in the picture is seen, in widths of the picture from its middle: right, down and ahead.
type Lens func(u, v float64) geom.Vec

// Pinhole has a focal length of 1.1 widths.
func Pinhole(u, v float64) geom.Vec { return geom.Vec{u / 1.1, v / 1.1, 1} }

// Fisheye is an equidistant one of 0.42 widths, 68 degrees to either side.
func Fisheye(u, v float64) geom.Vec {
	r := math.Hypot(u, v)
	sin, cos := math.Sincos(r / 0.42)
	return geom.Vec{u / r * sin, v / r * sin, cos}
}

// Picture draws the scene from a place.
func Picture(from geom.Vec, w, h int, lens Lens) *image.Gray {
	ahead := geom.Vec{0, 0.2, 0.5}.Sub(from).Unit()
	right := ahead.Cross(geom.Vec{0, 0, 1}).Unit()
	down := ahead.Cross(right)
	img := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			sum := 0.0
			for s := range 4 { // rays a pixel
				look := lens((float64(x)+0.25+0.5*float64(s%2)-float64(w)/2)/float64(w),
					(float64(y)+0.25+0.5*float64(s/2)-float64(h)/2)/float64(w))
				sum += Shade(from, right.Mul(look[0]).Add(down.Mul(look[1])).Add(ahead.Mul(look[2])).Unit()) / 4
			}
			img.SetGray(x, y, color.Gray{Y: uint8(255*sum + 0.5)})
		}
	}
	return img
}

// Photos writes n of them into a folder, which is there.
func Photos(dir string, n, w, h int, lens Lens) error {
	errs := make([]error, n)
	parallel.For(n, func(i int) {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%03d.png", i)))
		if err == nil {
			err = errors.Join(png.Encode(f, Picture(Walk(i, n), w, h, lens)), f.Close())
		}
		errs[i] = err
	})
	return errors.Join(errs...)
}
