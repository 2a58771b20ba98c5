package surface_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene/surface"
	"vksplat/scene/surface/surfacetest"
	"vksplat/scene/synth"
)

func clone(m *surface.Mesh) *surface.Mesh {
	return &surface.Mesh{Vertices: slices.Clone(m.Vertices), Faces: slices.Clone(m.Faces)}
}

func simplify(t *testing.T, m *surface.Mesh, voxel float64, most int) *surface.Mesh {
	t.Helper()
	out := clone(m)
	must.Do(t, out.Simplify(voxel, most, func() error { return nil }))
	return out
}

// differences are how far the middles of a mesh's faces are from another, and how much their colours differ, sorted.
func differences(t *testing.T, from, to *surface.Mesh, voxel float64) (distances, colours []float64) {
	t.Helper()
	faces := surfacetest.FacesOf(to, 2*voxel)
	for i, f := range from.Faces {
		if i%5 != 0 && len(from.Faces) > 10000 {
			continue
		}
		p := surfacetest.At(from, f[0]).Add(surfacetest.At(from, f[1])).Add(surfacetest.At(from, f[2])).Mul(1. / 3)
		nearest, weights, d := faces.Nearest(p)
		distances = append(distances, d/voxel)
		if nearest < 0 {
			continue
		}
		for ch := range 3 {
			x := 0.0
			for k, v := range f {
				x += float64(from.Vertices[v].Color[ch])/3 -
					weights[k]*float64(to.Vertices[to.Faces[nearest][k]].Color[ch])
			}
			colours = append(colours, math.Abs(x))
		}
	}
	slices.Sort(distances)
	slices.Sort(colours)
	return distances, colours
}

// TestSimplify wants a mesh of a third of the faces and less whose shape and colours are the same both ways, one of
// exactly so many, and the same on one core as on several.
func TestSimplify(t *testing.T) {
	const voxel = 0.05
	list := surfacetest.Views(t, synth.Options{Images: 12, Width: 160, Height: 120, Points: 100}, 6)
	whole := meshOf(t, list, voxel, 1<<30)
	whole.KeepClusters(1000, 50)
	needed := simplify(t, whole, voxel, 0)
	tenth := simplify(t, whole, voxel, len(whole.Faces)/10)
	for _, c := range []struct {
		name     string
		from, to *surface.Mesh
		far, hue float64 // voxels and steps of 255, of 99 in 100
	}{
		{"whole to needed", whole, needed, 0.3, 10},
		{"needed to whole", needed, whole, 0.3, 10},
		{"whole to a tenth", whole, tenth, 0.5, 16},
		{"a tenth to whole", tenth, whole, 0.5, 16},
	} {
		far, hue := differences(t, c.from, c.to, voxel)
		p99 := func(list []float64) float64 { return list[99*(len(list)-1)/100] }
		t.Logf("%s: %d and %d faces; %.2f voxels and %.1f steps of colour", c.name, len(c.from.Faces), len(c.to.Faces),
			p99(far), p99(hue))
		if p99(far) > c.far || p99(hue) > c.hue {
			t.Error("they differ")
		}
	}
	if 3*len(needed.Faces) > len(whole.Faces) {
		t.Errorf("%d faces of %d are needed", len(needed.Faces), len(whole.Faces))
	}
	if n := len(tenth.Faces) - len(whole.Faces)/10; n > 0 || n < -1 {
		t.Errorf("%d faces more than asked for", n)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	alone := simplify(t, whole, voxel, len(whole.Faces)/10)
	if !slices.Equal(alone.Vertices, tenth.Vertices) || !slices.Equal(alone.Faces, tenth.Faces) {
		t.Error("another mesh on one core")
	}
	for _, after := range []int{0, 3} {
		asked := 0 // on one core
		err := clone(whole).Simplify(voxel, 0, func() error {
			if asked++; asked > after {
				return context.Canceled
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped after %d cells: %v", after, err)
		}
	}
}

// TestSimplifyFlat wants few faces of a flat square, with its rim, its corners, and the line between its two colours.
func TestSimplifyFlat(t *testing.T) {
	const n, voxel = 150, 0.1
	m := &surface.Mesh{}
	for y := range n + 1 {
		for x := range n + 1 {
			v := surface.Vertex{At: [3]float32{float32(x) * voxel, float32(y) * voxel, 3}, Color: [3]uint8{200, 40, 90}}
			if x > n/3 {
				v.Color = [3]uint8{10, 220, 90}
			}
			m.Vertices = append(m.Vertices, v)
		}
	}
	for y := range n {
		for x := range n {
			a := uint32(y*(n+1) + x)
			m.Faces = append(m.Faces, [3]uint32{a, a + 1, a + n + 2}, [3]uint32{a, a + n + 2, a + n + 1})
		}
	}
	out := simplify(t, m, voxel, 0)
	far, hue := differences(t, m, out, voxel)
	area := 0.0
	for _, f := range out.Faces {
		a := surfacetest.At(out, f[0])
		normal := surfacetest.At(out, f[1]).Sub(a).Cross(surfacetest.At(out, f[2]).Sub(a))
		area += normal[2] / 2
	}
	t.Logf("%d faces of %d; %.3g voxels, %.3g steps of colour at most; area %.5f of %.5f", len(out.Faces), len(m.Faces),
		far[len(far)-1], hue[len(hue)-1], area, geom.Square(n*voxel))
	if 20*len(out.Faces) > len(m.Faces) {
		t.Error("too many faces")
	}
	if far[len(far)-1] > 0.1 || hue[99*len(hue)/100] > 4 || math.Abs(area/geom.Square(n*voxel)-1) > 0.001 {
		t.Error("another square")
	}
	for _, v := range out.Vertices {
		if math.Abs(float64(v.Normal[2])-1) > 1e-3 {
			t.Fatalf("vertex %v", v)
		}
	}
}

// oddEdges counts the edges that have not one face on each side, and measures the area of the faces.
func oddEdges(m *surface.Mesh) (odd int, area float64) {
	edges := map[[2]uint32]int{}
	for _, f := range m.Faces {
		for k, v := range f {
			edges[[2]uint32{v, f[(k+1)%3]}]++
		}
		a := surfacetest.At(m, f[0])
		area += surfacetest.At(m, f[1]).Sub(a).Cross(surfacetest.At(m, f[2]).Sub(a)).Length() / 2
	}
	for e, n := range edges {
		if n != 1 || edges[[2]uint32{e[1], e[0]}] != 1 {
			odd++
		}
	}
	return odd, area
}

// TestSimplifyClosed wants a ball of few faces that is as closed as it was, whatever is asked for.
func TestSimplifyClosed(t *testing.T) {
	ball := ballMesh(t, 0.05)
	odd, _ := oddEdges(ball)
	for _, c := range []struct{ most, least, faces int }{{0, 500, len(ball.Faces) / 8}, {500, 499, 500}, {1, 4, 100}} {
		out := simplify(t, ball, 0.05, c.most)
		n, area := oddEdges(out)
		t.Logf("%d faces of %d, area %.3f of %.3f, %d odd edges of %d", len(out.Faces), len(ball.Faces), area,
			4*math.Pi, n, odd)
		if n > odd || len(out.Faces) > c.faces || len(out.Faces) < c.least {
			t.Errorf("%d faces with at most %d", len(out.Faces), c.most)
		}
		if c.most != 1 && math.Abs(area/(4*math.Pi)-1) > 0.05 {
			t.Error("this is not a ball")
		}
	}
}
