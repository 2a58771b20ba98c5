package synth

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
)

// TestFar wants far cameras where their names say, those before them and the points as without, and depths of the ball
// in the middle and of the floor to be those that a formula gives.
func TestFar(t *testing.T) {
	o := Options{Images: 6, Width: 48, Height: 36, Points: 500, Open: true, Passers: true}
	near := must.Get(New(o))(t)
	o.Far = true
	s := must.Get(New(o))(t)
	cams := s.Cameras()
	if n := len(cams) - o.Images; n != (len(farRadii)+len(farDegrees))*farGroup ||
		!reflect.DeepEqual(cams[:o.Images], near.Cameras()) || !reflect.DeepEqual(s.Points(), near.Points()) {
		t.Errorf("%d far cameras; cameras or points changed", n)
	}
	const radius = 4.316538 // of (4.1, 1.85) from (0, 0.5)
	middle, highest := 18.2245, 31.3043
	depths := 0
	for i, c := range cams[o.Images:] {
		want := map[string][2]float64{
			"0.5r": {0.5 * radius, middle}, "1r": {radius, middle}, "2r": {2 * radius, middle},
			"15deg": {radius, highest + 15}, "30deg": {radius, highest + 30}, "45deg": {radius, highest + 45},
		}[strings.Split(c.Name, "_")[2]]
		out := geom.Vec(c.Center()).Sub(synthMiddle)
		elevation := math.Asin(out[2]/out.Length()) * 180 / math.Pi
		if math.Abs(out.Length()-want[0]) > 1e-5 || math.Abs(elevation-want[1]) > 1e-3 {
			t.Errorf("%s: %g from the middle, %g degrees up, want %v", c.Name, out.Length(), elevation, want)
		}
		if at := c.ToCamera(synthMiddle); math.Hypot(at[0], at[1]) > 1e-9 || !(at[2] > 0) {
			t.Errorf("%s: the middle is at %v", c.Name, at)
		}
		if s.HasPassers(o.Images + i) {
			t.Errorf("%s: people are in the picture", c.Name)
		}
		depths += checkDepths(t, s, o.Images+i)
	}
	if depths < 24*100 {
		t.Errorf("%d depths were compared", depths)
	}
	if _, err := New(Options{Far: true, City: true}); err == nil {
		t.Error("a city has a ring")
	}
}

// checkDepths compares depths of photo i with those of the floor between what stands on it and the camera, and of the
// ball of radius 0.42 at a height of 0.82 that is seen from above. It returns how many.
func checkDepths(t *testing.T, s *Capture, i int) (n int) {
	c := s.Cameras()[i]
	eye, ball := geom.Vec(c.Center()), geom.Vec{0, 0, 0.82}
	for k, got := range s.Depths(i) {
		x, y := float64(k%c.Width)+0.5, float64(k/c.Width)+0.5
		at := [3]float64{(x - c.Cx) / c.Fx, (y - c.Cy) / c.Fy, 1}
		var d geom.Vec // of depth 1
		for j := range d {
			d[j] = at[0]*c.R[j] + at[1]*c.R[3+j] + at[2]*c.R[6+j]
		}
		want := -eye[2] / d[2]
		floor := eye.Add(d.Mul(want))
		near := floor[0]*eye[0]+floor[1]*eye[1] > 0 && math.Hypot(floor[0], floor[1]) > 2.4
		if !(want > 0) || !near || math.Hypot(floor[0], floor[1]) > 6.9 {
			if math.Hypot(x-c.Cx, y-c.Cy) > 2 || !strings.Contains(c.Name, "45deg") {
				continue
			}
			out := eye.Sub(ball)
			a, b := d.Dot(d), d.Dot(out)
			want = (-b - math.Sqrt(b*b-a*(out.Dot(out)-0.42*0.42))) / a
		}
		if n++; math.Abs(float64(got)-want) > 1e-5*want {
			t.Fatalf("%s: pixel %g, %g has depth %g, want %g", c.Name, x, y, got, want)
		}
	}
	return n
}
