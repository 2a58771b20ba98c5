package picture_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/picture"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// angles are those in degrees between the normals of pixels and true ones, sorted, and how many pixels have none.
func angles(pix []uint8, want func(pixel int) [3]float64) (list []float64, unknown int) {
	for i := range len(pix) / 4 {
		rgb := pix[4*i : 4*i+3]
		if rgb[0] == 0 && rgb[1] == 0 && rgb[2] == 0 {
			unknown++
			continue
		}
		var n geom.Vec
		for k, x := range rgb {
			n[k] = float64(x)/255*2 - 1
		}
		cos := n.Unit().Dot(geom.Vec(want(i)))
		list = append(list, math.Acos(min(max(cos, -1), 1))*180/math.Pi)
	}
	slices.Sort(list)
	return list, unknown
}

func drawnOf(depth []float32, width, height int) *picture.Picture {
	return &picture.Picture{Width: width, Height: height, Depth: depth, Color: make([]float32, 4*width*height)}
}

// TestNormals wants the true normals of exact depths of the procedural scene, whose edges are sharp.
func TestNormals(t *testing.T) {
	o := synth.Options{Images: 4, Width: 320, Height: 240, Points: 100}
	made := must.Get(synth.New(o))(t)
	for i, c := range made.Cameras() {
		p := drawnOf(made.Depths(i), c.Width, c.Height)
		p.Depth[5*c.Width+7] = 0
		p.Color[4*(9*c.Width+7)+3] = 0.6
		truth := synthtest.Normals(made, i)
		list, unknown := angles(p.Normals(picture.RaysOf(c)).Pix, func(i int) [3]float64 { return truth[i] })
		at := func(share float64) float64 { return list[int(share*float64(len(list)-1))] }
		t.Logf("%s: %.2f degrees of a half, %.2f of 95 in 100", c.Name, at(0.5), at(0.95))
		if at(0.5) > 0.5 || at(0.95) > 5 || unknown != 2 {
			t.Errorf("%s: wrong normals, %d unknown", c.Name, unknown)
		}
	}
}

// TestNormalsOnOneCore wants the same of a high picture on one core, which does all bands in the memory of the first,
// as on several; with holes, which must not show what was there before.
func TestNormalsOnOneCore(t *testing.T) {
	const width, height = 40, 900
	p := drawnOf(make([]float32, width*height), width, height)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range p.Depth {
		if r.IntN(3) > 0 {
			p.Depth[i] = 4 + r.Float32()
		}
	}
	rays := picture.RaysOf(scene.Camera{Width: width, Height: height, Fx: 500, Fy: 500, Cx: width / 2, Cy: height / 2})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	several := p.Normals(rays).Pix
	runtime.GOMAXPROCS(1)
	if !bytes.Equal(p.Normals(rays).Pix, several) {
		t.Error("other normals on one core")
	}
}

// TestNormalsOfLenses wants those of the walls of a room, seen by a fisheye and as a panorama.
func TestNormalsOfLenses(t *testing.T) {
	const width, height = 256, 128
	fisheye := scene.Camera{Width: width, Height: height, Fx: 60, Fy: 60, Cx: width / 2, Cy: height / 2,
		Model: scene.Fisheye}
	size := geom.Vec{3, 2, 4} // from the camera to the walls
	for name, rays := range map[string]picture.Rays{
		"fisheye": picture.RaysOf(fisheye), "panorama": picture.PanoramaRays(width, height),
	} {
		depth, truth := make([]float32, width*height), make([][3]float64, width*height)
		ahead := 0
		for i := range depth {
			ray := rayOf(name, fisheye, i, width, height)
			far, wall := math.Inf(1), 0
			for k := range 3 {
				if d := size[k] / math.Abs(ray[k]); d < far {
					far, wall = d, k
				}
			}
			truth[i][wall] = -math.Copysign(1, ray[wall])
			if depth[i] = float32(far); name == "fisheye" {
				depth[i] = float32(max(far*ray[2], 0))
			}
			if depth[i] > 0 {
				ahead++
			}
		}
		list, unknown := angles(drawnOf(depth, width, height).Normals(rays).Pix,
			func(i int) [3]float64 { return truth[i] })
		worst := list[99*len(list)/100]
		t.Logf("%s: %.2f degrees of 99 in 100, %d pixels of %d", name, worst, len(list), ahead)
		if worst > 1 || unknown > width*height-ahead+20 {
			t.Errorf("%s: wrong normals, %d unknown", name, unknown)
		}
	}
}

// rayOf is the direction of a pixel, by the definitions of both.
func rayOf(name string, c scene.Camera, pixel, width, height int) geom.Vec {
	x, y := float64(pixel%width)+0.5, float64(pixel/width)+0.5
	if name == "panorama" {
		across, up := (x/float64(width)-0.5)*2*math.Pi, (0.5-y/float64(height))*math.Pi
		return geom.Vec{math.Sin(across) * math.Cos(up), -math.Sin(up), math.Cos(across) * math.Cos(up)}
	}
	u, v := (x-c.Cx)/c.Fx, (y-c.Cy)/c.Fy
	angle := math.Hypot(u, v)
	return geom.Vec{u / angle * math.Sin(angle), v / angle * math.Sin(angle), math.Cos(angle)}
}
