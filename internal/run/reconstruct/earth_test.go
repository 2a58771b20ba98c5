package reconstruct

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/scene/adjust"
	"vksplat/scene/mapping"
	"vksplat/scene/pairs"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

// besides returns the place some metres to the east, to the north and up of another.
func besides(p photo.Position, metres [3]float64) photo.Position {
	const degree = math.Pi / 180
	here, axes := onEarth(p)
	for range 3 { // by Newton's method
		x, _ := onEarth(p)
		left := geom.Sub(metres, geom.Rotate(axes, geom.Sub(x, here)))
		p.Latitude += left[1] / 6.37e6 / degree
		p.Longitude += left[0] / 6.37e6 / math.Cos(p.Latitude*degree) / degree
		p.Altitude += left[2]
	}
	p.Longitude = math.Mod(p.Longitude+540, 360) - 180
	return p
}

// tag writes a place into a photo, a PNG.
func tag(t *testing.T, path string, p photo.Position) {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	block := scenetest.GPSBlock(binary.BigEndian, p.Latitude, p.Longitude, p.Altitude)
	must.Do(t, os.WriteFile(path, scenetest.WithChunk(data, "eXIf", block), 0o666))
}

// TestPlaces has metres of what GPS says, also across the date line, and none of photos that say nothing.
func TestPlaces(t *testing.T) {
	for _, zero := range []photo.Position{{Latitude: 48.1, Longitude: 11.5, Altitude: 520},
		{Latitude: -17, Longitude: 180}, {Latitude: -89.9, Longitude: -70, Altitude: -3}} {
		photos := photosIn(t, 5, capturetest.Pinhole)
		want := [][3]float64{{-300, 40, 7}, {0, 0, 0}, {50, -200, -9}, {0, 90, 0}, {}}
		for i, x := range want[:4] {
			tag(t, photos[i].Path, besides(zero, x))
		}
		p := placesOf(photos)
		for i, x := range want[:4] {
			got := geom.Sub(p.at[i], p.at[1])
			if i == 0 || i == 2 || i == 3 { // axes turn a little from one origin to another
				if d := geom.Length(geom.Sub(got, x)); d > 0.5 && zero.Latitude > -80 || !p.high[i] {
					t.Errorf("from %v: photo %d is at %v, not %v", zero, i, got, x)
				}
			}
			if math.Abs(geom.Length(got)-geom.Length(x)) > 0.05 {
				t.Errorf("from %v: photo %d is %g m off, not %g", zero, i, geom.Length(got), geom.Length(x))
			}
		}
		if p.located[4] || !p.apart {
			t.Errorf("from %v: located %v, apart %v", zero, p.located, p.apart)
		}
	}
}

// made is a model of photos in three rows above the ground, as found, and the same as GPS has it.
func made(n int, turn, scale, noise float64, r *rand.Rand) (m *mapping.Model, p *places, truth [][3]float64) {
	m, p = &mapping.Model{}, &places{}
	away := geom.RotationFromVector([3]float64{turn, -0.4 * turn, 2 * turn})
	for i := range n {
		x := [3]float64{float64(10 * (i / 3)), float64(20 * (i % 3)), 50 + float64(i%2)}
		found := geom.Scale(geom.Rotate(away, geom.Sub(x, [3]float64{7, 8, 9})), scale)
		pose := adjust.Pose{R: geom.RotationFromVector([3]float64{math.Pi, 0.1 * float64(i%5), 0})}
		pose.R = geom.Product(pose.R, geom.Transposed(away))
		pose.T = geom.TranslationOf(pose.R, found)
		m.Poses, m.Placed = append(m.Poses, pose), append(m.Placed, true)
		m.Points = append(m.Points, mapping.Point{X: found})
		truth = append(truth, x)
		for k := range x {
			x[k] += noise * r.NormFloat64()
		}
		p.at, p.located, p.high = append(p.at, x), append(p.located, true), append(p.high, true)
	}
	return m, p, truth
}

// TestAlign brings models to where they are, whatever a few receivers say.
func TestAlign(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, noise := range []float64{0, 0.1, 2} {
		m, p, truth := made(60, 0.7, 0.03, noise, r)
		for i := 0; i < 60; i += 4 {
			p.at[i] = [3]float64{500 * r.Float64(), -900, 10}
		}
		e := align(m, p)
		if e == nil || e.Photos < 40 || e.Photos > 45 || math.Abs(e.Off-noise*math.Sqrt(3)) > 0.3*noise+1e-3 {
			t.Fatalf("noise %g: %+v", noise, e)
		}
		for i, x := range truth {
			centre := geom.TranslationOf(geom.Transposed(m.Poses[i].R), m.Poses[i].T)
			turn := geom.RotationFromVector([3]float64{math.Pi, 0.1 * float64(i%5), 0})
			off := geom.Length(geom.VectorFromRotation(geom.Product(m.Poses[i].R, geom.Transposed(turn))))
			if d := geom.Length(geom.Sub(centre, x)); d > noise+1e-6 || off > 0.03*noise+1e-6 ||
				geom.Length(geom.Sub(m.Points[i].X, centre)) > 1e-6 {
				t.Errorf("noise %g: photo %d is %g m and %g radians off, its point at %v", noise, i, d, off,
					m.Points[i].X)
			}
		}
	}
}

// TestAlignDoubts leaves models where they are of which GPS tells too little.
func TestAlignDoubts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, change := range map[string]func(m *mapping.Model, p *places) int{
		"noise": func(_ *mapping.Model, p *places) int {
			for i := range p.at {
				p.at[i] = [3]float64{100 * r.NormFloat64(), 100 * r.NormFloat64(), 100 * r.NormFloat64()}
			}
			return 0
		},
		"one line": func(m *mapping.Model, p *places) int {
			for i := range p.at {
				m.Placed[i] = i%3 == 0
			}
			return 0
		},
		"no heights": func(_ *mapping.Model, p *places) int { clear(p.high); return 0 },
		"few":        func(*mapping.Model, *places) int { return 4 },
		"one place": func(_ *mapping.Model, p *places) int {
			clear(p.at)
			return 0
		},
	} {
		m, p, _ := made(30, 0.3, 2, 1, r)
		if few := change(m, p); few > 0 {
			clear(m.Placed[few:])
		}
		poses := append([]adjust.Pose{}, m.Poses...)
		if e := align(m, p); e != nil || !reflect.DeepEqual(m.Poses, poses) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestEarth finds the cameras of photos with GPS where they were, in metres.
func TestEarth(t *testing.T) {
	const n, metres = 8, 20
	d, photos := open(t), photosIn(t, n, capturetest.Pinhole)
	for i := range n {
		at := geom.Scale(capturetest.Walk(i, n), metres)
		tag(t, photos[i].Path, besides(photo.Position{Latitude: 47, Longitude: 8, Altitude: 400}, at))
	}
	found := findIt(t, d, photos)
	list := must.Get(Match(t.Context(), d, photos, found, nil, pairs.Defaults, none))(t)
	m, _, e, err := Map(t.Context(), photos, found, list, none)
	must.Do(t, err)
	if e == nil || e.Photos < n-1 || e.Off > 0.01*4*metres || math.Abs(e.Latitude-47) > 1e-3 {
		t.Fatalf("the model is at %+v", e)
	}
	var first geom.Vec
	for i, v := range m.Images {
		turn, _ := geom.RotationFromQuat(v.Quat)
		at := geom.Vec(geom.TranslationOf(geom.Transposed(turn), v.T))
		if i == 0 {
			first = at
		}
		want := geom.Vec(capturetest.Walk(int(v.Id)-1, n)).Sub(capturetest.Walk(0, n)).Mul(metres)
		if got := at.Sub(first); got.Sub(want).Length() > 0.02*want.Length()+0.5 {
			t.Errorf("%s is %v from the first, not %v", v.Name, got, want)
		}
	}
}
