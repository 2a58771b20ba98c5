package view

import (
	"math"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// turnBy rotates by a quaternion x, y, z, w.
func turnBy(q [4]float64, p vector) vector {
	axis := vector{q[0], q[1], q[2]}
	t := geom.Scale(geom.Cross(axis, p), 2)
	return geom.Add(geom.Add(p, geom.Scale(t, q[3])), geom.Cross(axis, t))
}

// near reports whether two vectors are the same but for rounding.
func near(a, b vector) bool { return geom.Vec(geom.Add(a, geom.Scale(b, -1))).Length() < 1e-9 }

// lookAt is a camera at a point that looks at another, level with up, turned by roll about its axis.
func lookAt(at, target, up vector, roll float64) scene.Camera {
	forward := geom.Vec(geom.Add(target, geom.Scale(at, -1))).Unit()
	right := geom.Vec(geom.Cross(forward, up)).Unit()
	down := geom.Cross(forward, right)
	s, c := math.Sincos(roll)
	x, y := geom.Add(geom.Scale(right, c), geom.Scale(down, s)), geom.Add(geom.Scale(down, c), geom.Scale(right, -s))
	cam := scene.Camera{Width: 400, Height: 300, Fx: 200, Fy: 200, Cx: 200, Cy: 150,
		R: [9]float64{x[0], x[1], x[2], y[0], y[1], y[2], forward[0], forward[1], forward[2]}}
	cam.T = geom.Scale(geom.Rotate(cam.R, at), -1)
	return cam
}

// checkStart wants what is above in the model above in the viewer, and a rotation.
func checkStart(t *testing.T, name string, s Start, up vector) {
	t.Helper()
	if got := turnBy(s.Rotation, up); !near(got, vector{0, 1, 0}) {
		t.Errorf("%s: up becomes %v", name, got)
	}
	if n := s.Rotation; math.Abs(n[0]*n[0]+n[1]*n[1]+n[2]*n[2]+n[3]*n[3]-1) > 1e-9 {
		t.Errorf("%s: rotation %v is none", name, n)
	}
	for _, x := range append(append(s.Position[:], s.Target[:]...), s.Picture[:]...) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("%s: not finite: %+v", name, s)
		}
	}
}

// TestStartAtCamera starts at the first photo whose horizon is level, whatever axis is up, and looks at what stands in
// its middle.
func TestStartAtCamera(t *testing.T) {
	for _, up := range []vector{{0, -1, 0}, {0, 0, 1}, {1, 0, 0}, geom.Vec(vector{1, 2, -3}).Unit()} {
		side := geom.Vec(geom.Cross(up, vector{0.3, 0.2, 0.9})).Unit()
		target := vector{1, 2, 3}
		at := geom.Add(target, geom.Add(geom.Scale(side, 4), geom.Scale(up, 1)))
		opposite := geom.Add(target, geom.Add(geom.Scale(side, -4), geom.Scale(up, 1)))
		cams := []scene.Camera{lookAt(opposite, target, up, 0.3), lookAt(opposite, target, up, -0.3),
			lookAt(at, target, up, 0.3), lookAt(at, target, up, -0.3)}
		cams = append(cams, lookAt(at, target, up, 0), lookAt(opposite, target, up, 0))
		positions := [][3]float64{target, geom.Add(target, vector{0.01, 0, 0}), geom.Add(target, vector{0, 0.01, 0}),
			geom.Add(at, geom.Scale(side, 50))}
		s := StartAt(cams, "x", positions)
		checkStart(t, "camera", s, up)
		if want := turnBy(s.Rotation, at); !near(s.Position, want) {
			t.Errorf("up %v: position %v, want %v", up, s.Position, want)
		}
		if want := turnBy(s.Rotation, target); geom.Vec(geom.Add(s.Target, geom.Scale(want, -1))).Length() > 0.02 {
			t.Errorf("up %v: target %v, want %v", up, s.Target, want)
		}
		if s.Picture != [2]float64{2, 1.5} {
			t.Errorf("picture %v", s.Picture)
		}
		if all := StartAt(cams[:1], "", positions); !near(all.Position, turnBy(all.Rotation, cams[0].Center())) {
			t.Errorf("where no photo is level, the start is not at the first one: %+v", all)
		}
	}
}

// TestStartWithoutCameras takes up from what the file says.
func TestStartWithoutCameras(t *testing.T) {
	positions := [][3]float64{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {0.4, 0.4, 0.4}, {1, 1, 0},
		{1, 0, 1}, {0, 1, 1}, {0.5, 0.5, 0}, {5000, 0, 0}}
	for axis, up := range map[string]vector{
		"": {0, -1, 0}, "z": {0, 0, 1}, "-Z": {0, 0, -1}, "y": {0, -1, 0}, "+y": {0, 1, 0}, "x": {1, 0, 0},
		" -x ": {-1, 0, 0}, "up": {0, -1, 0},
	} {
		s := StartAt(nil, axis, positions)
		checkStart(t, axis, s, up)
		if away := geom.Vec(geom.Add(s.Position, geom.Scale(s.Target, -1))).Length(); away < 1 || away > 10 {
			t.Errorf("%q: %g away from a scene of size 1", axis, away)
		}
	}
}

// TestStartBelowSky looks at a model that has no cameras and a far shell, of however many splats, as it does without.
func TestStartBelowSky(t *testing.T) {
	var scene [][3]float64
	for i := range 40 {
		sin, cos := math.Sincos(float64(i))
		scene = append(scene, vector{sin, float64(i%3) / 3, cos})
	}
	want := StartAt(nil, "", scene)
	for _, shell := range []int{1, 10, 40, 60} {
		all := scene
		for i := range shell {
			elevation := float64(i) / float64(shell) * math.Pi / 2
			sin, cos := math.Sincos(2.4 * float64(i))
			level := 1000 * math.Cos(elevation)
			all = append(all, vector{sin * level, -1000 * math.Sin(elevation), cos * level})
		}
		if s := StartAt(nil, "", all); s != want {
			t.Errorf("under a shell of %d splats it begins at %v and looks at %v, without one at %v and at %v", shell,
				s.Position, s.Target, want.Position, want.Target)
		}
	}
}

// TestStartOddly has cameras and models that say little.
func TestStartOddly(t *testing.T) {
	up := vector{0, -1, 0}
	// looks along +y, down
	down := scene.Camera{Width: 10, Height: 10, Fx: 5, Fy: 5, R: [9]float64{1, 0, 0, 0, 0, -1, 0, 1, 0}}
	checkStart(t, "empty", StartAt(nil, "", nil), up)
	checkStart(t, "one splat", StartAt(nil, "", [][3]float64{{1, 1, 1}}), up)
	checkStart(t, "photos upside down and not",
		StartAt([]scene.Camera{lookAt(vector{0, 0, -3}, vector{}, up, 0),
			lookAt(vector{0, 0, -3}, vector{}, up, math.Pi)}, "", nil), up)
	checkStart(t, "straight down",
		Start{Rotation: quaternion(levelFrame(up, row(down.R, 2))), Picture: pictureOf(&down)}, up)
	wide := scene.Camera{Width: 1000, Height: 1000, Fx: 300, Fy: 300, Model: scene.Fisheye}
	if p := pictureOf(&wide); math.Abs(p[0]-2*maxTangent) > 1e-9 {
		t.Errorf("a fisheye's picture is %v wide", p)
	}
}
