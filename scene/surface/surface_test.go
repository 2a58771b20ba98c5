package surface_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/surface"
	"vksplat/scene/surface/surfacetest"
	"vksplat/scene/synth"
)

func survey(t *testing.T, list []*surface.View, voxel float64) *surface.Survey {
	t.Helper()
	s := surface.NewSurvey(voxel, 2, 1<<30)
	for _, v := range list {
		must.Do(t, s.Add(v))
	}
	return s
}

func meshOf(t *testing.T, list []*surface.View, voxel float64, bytes int64) *surface.Mesh {
	t.Helper()
	s := survey(t, list, voxel)
	m := must.Get(s.Fuse(func(use func(v *surface.View) error) error {
		for _, v := range list {
			if err := use(v); err != nil {
				return err
			}
		}
		return nil
	}, bytes))(t)
	return m
}

// TestMesh: of exact maps, nearly all of the surface that three views see is within a voxel of the mesh, and the mesh
// within two of the surface; faces look outside, and colours are those of the photos.
func TestMesh(t *testing.T) {
	const voxel = 0.05
	list := surfacetest.Views(t, synth.Options{Images: 24, Width: 160, Height: 120, Points: 100}, 6)
	m := meshOf(t, list, voxel, 1<<30)
	points := surfacetest.SeenByThree(list, 37)
	vertices, near := surfacetest.NewCloud(voxel), surfacetest.NewCloud(2*voxel)
	for _, v := range m.Vertices {
		vertices.Add([3]float64{float64(v.At[0]), float64(v.At[1]), float64(v.At[2])})
	}
	covered := 0
	for _, p := range points {
		if vertices.Has(p) {
			covered++
		}
	}
	for _, v := range list {
		for p := range v.Depth {
			if at, known := surfacetest.Point(v, p); known {
				near.Add(at)
			}
		}
	}
	close := 0
	for _, v := range m.Vertices {
		if near.Has([3]float64{float64(v.At[0]), float64(v.At[1]), float64(v.At[2])}) {
			close++
		}
	}
	share, exact := float64(covered)/float64(len(points)), float64(close)/float64(len(m.Vertices))
	t.Logf("%d vertices, %d faces; %.1f %% of %d points within a voxel, %.1f %% of vertices within two",
		len(m.Vertices), len(m.Faces), 100*share, len(points), 100*exact)
	if share < 0.95 || exact < 0.99 || len(m.Faces) < len(m.Vertices) {
		t.Error("the mesh is not the surface")
	}
	checkLooks(t, list[0], m)
}

// checkLooks wants what a view sees of the mesh to look at it, in the colour of the photo.
func checkLooks(t *testing.T, v *surface.View, m *surface.Mesh) {
	t.Helper()
	eye := v.Camera.Center()
	seen, away, off := 0, 0, 0
	for _, vertex := range m.Vertices {
		p := [3]float64{float64(vertex.At[0]), float64(vertex.At[1]), float64(vertex.At[2])}
		q := v.Camera.ToCamera(p)
		x := int(math.Floor(v.Camera.Fx*q[0]/q[2] + v.Camera.Cx))
		y := int(math.Floor(v.Camera.Fy*q[1]/q[2] + v.Camera.Cy))
		if q[2] <= 0 || x < 1 || y < 1 || x >= v.Camera.Width-1 || y >= v.Camera.Height-1 {
			continue
		}
		pixel := y*v.Camera.Width + x
		if math.Abs(float64(v.Depth[pixel])-q[2]) > 0.02*q[2] {
			continue
		}
		seen++
		toward := 0.0
		for k := range 3 {
			toward += float64(vertex.Normal[k]) * (eye[k] - p[k])
		}
		if toward < 0 {
			away++
		}
		for k := range 3 {
			if math.Abs(float64(vertex.Color[k])-255*float64(v.Color[3*pixel+k])) > 60 {
				off++
				break
			}
		}
	}
	t.Logf("%d vertices are seen by the first view, %d look away, %d have another colour", seen, away, off)
	if seen < 500 || away > seen/20 || off > seen/5 {
		t.Error("the mesh does not look as the photo does")
	}
}

// TestSlabs wants the same mesh whatever memory holds.
func TestSlabs(t *testing.T) {
	list := surfacetest.Views(t, synth.Options{Images: 6, Width: 64, Height: 48, Points: 100}, 6)
	whole := meshOf(t, list, 0.1, 1<<30)
	s := survey(t, list, 0.1)
	passes := 0
	parts, err := s.Fuse(func(use func(v *surface.View) error) error {
		passes++
		for _, v := range list {
			if err := use(v); err != nil {
				return err
			}
		}
		return nil
	}, surface.BlockBytes*int64(s.Blocks()/3))
	if err != nil || passes < 3 || passes != s.Passes(surface.BlockBytes*int64(s.Blocks()/3)) {
		t.Fatal(passes, err)
	}
	if !slices.Equal(whole.Vertices, parts.Vertices) || !slices.Equal(whole.Faces, parts.Faces) {
		t.Errorf("%d vertices and %d faces, want %d and %d", len(parts.Vertices), len(parts.Faces), len(whole.Vertices),
			len(whole.Faces))
	}
	_, err = s.Fuse(func(func(v *surface.View) error) error { return nil }, surface.BlockBytes)
	if !errors.Is(err, surface.ErrNoRoom) {
		t.Errorf("error %v", err)
	}
}

// TestSurveyBounds wants voxels refused of which there are more than memory holds or numbers reach.
func TestSurveyBounds(t *testing.T) {
	list := surfacetest.Views(t, synth.Options{Images: 3, Width: 64, Height: 48, Points: 100}, 6)
	for _, c := range []struct {
		voxel float64
		bytes int64
	}{{0.01, 1 << 12}, {1e-9, 1 << 40}, {1e-30, 1 << 40}} {
		if err := surface.NewSurvey(c.voxel, 1, c.bytes).Add(list[0]); !errors.Is(err, surface.ErrNoRoom) {
			t.Errorf("voxels of %g in %d bytes: %v", c.voxel, c.bytes, err)
		}
	}
}

// ballMesh is the mesh of 26 views of a ball with a radius of 1.
func ballMesh(t *testing.T, voxel float64) *surface.Mesh {
	t.Helper()
	const radius = 1.0
	var list []*surface.View
	for i := range 26 {
		theta, phi := math.Acos(1-(2*float64(i)+1)/26), math.Pi*(3-math.Sqrt(5))*float64(i)
		eye := [3]float64{3 * math.Sin(theta) * math.Cos(phi), 3 * math.Sin(theta) * math.Sin(phi), 3 * math.Cos(theta)}
		c := scene.Camera{Width: 128, Height: 128, Fx: 150, Fy: 150, Cx: 64, Cy: 64}
		scene.LookAt(&c, eye, [3]float64{})
		v := &surface.View{Camera: c, Depth: make([]float32, 128*128), Color: make([]float32, 3*128*128), Stride: 3}
		for p := range v.Depth {
			v.Depth[p] = 1
			ray, _ := surfacetest.Point(v, p)
			var a, b, cc float64
			for k := range 3 {
				ray[k] -= eye[k]
			}
			for k := range 3 {
				a, b, cc = a+ray[k]*ray[k], b+ray[k]*eye[k], cc+eye[k]*eye[k]
			}
			v.Depth[p] = 0
			if d := b*b - a*(cc-radius*radius); d > 0 {
				v.Depth[p] = float32((-b - math.Sqrt(d)) / a)
			}
		}
		list = append(list, v)
	}
	m := meshOf(t, list, voxel, 1<<30)
	if parts := m.KeepClusters(1, 50); len(m.Faces) == 0 || parts > 3 {
		t.Errorf("%d parts", parts)
	}
	return m
}

// TestSphere wants a closed surface of one part around a ball, and its area.
func TestSphere(t *testing.T) {
	const radius = 1.0
	m := ballMesh(t, 0.05)
	edges := map[[2]uint32]int{}
	area := 0.0
	for _, f := range m.Faces {
		var p [3][3]float64
		for k, id := range f {
			edges[[2]uint32{id, f[(k+1)%3]}]++
			edges[[2]uint32{f[(k+1)%3], id}]--
			for axis, x := range m.Vertices[id].At {
				p[k][axis] = float64(x)
			}
		}
		u, w := [3]float64{}, [3]float64{}
		for k := range 3 {
			u[k], w[k] = p[1][k]-p[0][k], p[2][k]-p[0][k]
		}
		n := [3]float64{u[1]*w[2] - u[2]*w[1], u[2]*w[0] - u[0]*w[2], u[0]*w[1] - u[1]*w[0]}
		area += math.Sqrt(n[0]*n[0]+n[1]*n[1]+n[2]*n[2]) / 2
	}
	open := 0
	for _, n := range edges {
		if n != 0 {
			open++
		}
	}
	want := 4 * math.Pi * radius * radius
	t.Logf("area %.3f, %.3f is the ball's; %d open edges of %d", area, want, open, len(edges))
	if math.Abs(area/want-1) > 0.03 || open > 0 {
		t.Error("this is not a ball")
	}
}
