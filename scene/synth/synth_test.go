package synth

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// smallSynth is a capture that takes no time to make.
var smallSynth = Options{Images: 4, Width: 48, Height: 36, Points: 500, Seed: 9}

func synthFiles(t *testing.T, o Options) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, Write(dir, o))
	files := make(map[string][]byte)
	for _, name := range []string{"images/view_000.png", "images/view_003.png", "sparse/0/cameras.bin",
		"sparse/0/images.bin", "sparse/0/points3D.bin"} {
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		files[name] = data
	}
	return files
}

func TestSynthDeterministic(t *testing.T) {
	first := synthFiles(t, smallSynth)
	old := runtime.GOMAXPROCS(5)
	defer runtime.GOMAXPROCS(old)
	second := synthFiles(t, smallSynth)
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	other := smallSynth
	other.Seed++
	if bytes.Equal(first["images/view_000.png"], synthFiles(t, other)["images/view_000.png"]) {
		t.Error("the seed changes nothing")
	}
}

// Every point lies on the surface that its colour was taken from: a camera that
// sees it, unoccluded, sees that colour.
func TestSynthPoints(t *testing.T) {
	o := must.Get(smallSynth.withDefaults())(t)
	world, views := newSynthWorld(), o.views()
	for i, p := range o.points(world, views) {
		view := &views[i%len(views)]
		q := view.ToCamera(p.Pos)
		x, y := view.Fx*q[0]/q[2]+view.Cx, view.Fy*q[1]/q[2]+view.Cy
		if q[2] <= 0 || x < 0 || y < 0 || x >= float64(o.Width) || y >= float64(o.Height) {
			t.Fatalf("point %d is at %v, %v in its view, depth %v", i, x, y, q[2])
		}
		l := newLens(view)
		s := world.trace(l.ray(x, y))
		if d := geom.Vec(p.Pos).Sub(s.point).Length(); d > 1e-6 {
			t.Errorf("point %d is %v from the surface", i, d)
		}
		c := world.shade(&s).Mul(255)
		for k := range c {
			if math.Abs(c[k]-float64(p.Color[k])) > 1.01 && c[k] < 255 {
				t.Errorf("point %d has colour %v, its pixel %v", i, p.Color, c)
			}
		}
	}
}

// The scene is closed and its numbers are finite wherever one looks from.
func TestSynthClosed(t *testing.T) {
	world := newSynthWorld()
	o := Options{Seed: 3}
	for i := range 20000 {
		r := o.random(streamSynthPoint, i)
		z := 2*r[0] - 1
		s, c := math.Sincos(2 * math.Pi * r[1])
		side := math.Sqrt(1 - z*z)
		d := geom.Vec{side * c, side * s, z}
		hit := world.trace(ray{geom.Vec{4.4 * (r[2] - 0.5) * 2, 2.9, 0.2 + 3*r[3]}, d})
		color := world.shade(&hit)
		if !(hit.t > 0) || hit.t > 3*synthDome {
			t.Fatalf("ray %d: distance %v", i, hit.t)
		}
		if math.Abs(hit.normal.Length()-1) > 1e-6 || hit.normal.Dot(d) > 1e-6 {
			t.Fatalf("ray %d: normal %v, direction %v, owner %d", i, hit.normal, d, hit.owner)
		}
		for _, v := range color {
			if !scene.Finite64(v) || v < 0 || v > 1.5 {
				t.Fatalf("ray %d: colour %v", i, color)
			}
		}
	}
}

// Scale and offset move the capture and nothing else.
func TestSynthFrame(t *testing.T) {
	moved := smallSynth
	moved.Scale, moved.Offset = 1000, [3]float64{5e6, 0, -5e6}
	a, b := synthFiles(t, smallSynth), synthFiles(t, moved)
	if !bytes.Equal(a["images/view_003.png"], b["images/view_003.png"]) ||
		bytes.Equal(a["sparse/0/images.bin"], b["sparse/0/images.bin"]) {
		t.Error("photos changed or poses did not")
	}
	o := must.Get(moved.withDefaults())(t)
	for _, view := range o.views() {
		center := view.Center()
		placed := o.place(view)
		got := placed.Center()
		for k := range got {
			if math.Abs(got[k]-(center[k]*1000+moved.Offset[k])) > 1e-6 {
				t.Errorf("centre %v, in the scene %v", got, center)
			}
		}
	}
}

func TestSynthRefuses(t *testing.T) {
	for _, o := range []Options{{Images: 2}, {Images: -1}, {Width: 8}, {Height: 1 << 20}, {Points: 3},
		{Points: 1 << 40},
		{Scale: -1}, {Shutter: -0.1}, {Shutter: 1}, {Shutter: math.NaN()}, {Shutter: 0.1, City: true},
		{Scale: math.Inf(1)}, {Offset: [3]float64{math.NaN()}}} {
		if err := Write(t.TempDir(), o); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	must.Do(t, os.WriteFile(file, nil, 0o644))
	if err := Write(file, smallSynth); err == nil {
		t.Error("a file passes as a folder")
	}
}

// TestOpen: an open sky looks the same from everywhere, and no point lies on it.
func TestOpen(t *testing.T) {
	for _, city := range []bool{false, true} {
		o := Options{Images: 6, Width: 48, Height: 36, Points: 500, City: city}
		dome := must.Get(New(o))(t)
		o.Open = true
		open := must.Get(New(o))(t)
		up := geom.Vec{0.6, 0, 0.8}
		a, b := open.world.color(ray{geom.Vec{4, 0, 1}, up}), open.world.color(ray{geom.Vec{-4, 1, 2}, up})
		if a.Sub(b).Length() > 1e-3 {
			t.Errorf("from two places the sky is %v and %v", a, b)
		}
		onSky := 0
		for _, p := range dome.Points() {
			if at := geom.Vec(p.Pos).Length(); math.Abs(at-dome.world.dome) < 1e-9 {
				onSky++
			}
		}
		points := open.Points()
		if len(points) != len(dome.Points())-onSky || !city && onSky == 0 {
			t.Errorf("%d points, %d under a dome, of which %d on that", len(points), len(dome.Points()), onSky)
		}
		for _, p := range points {
			if geom.Vec(p.Pos).Length() > 1.5*dome.world.dome {
				t.Fatalf("a point at %v", p.Pos)
			}
		}
		for _, d := range open.Depths(0) {
			if !(d > 0) || math.IsInf(float64(d), 0) {
				t.Fatalf("a depth of %g", d)
			}
		}
	}
}
