package scene

import (
	"math"
	"testing"

	"vksplat/internal/geom"
	"vksplat/internal/philox"
)

// testRotations are rotations whose quaternions have each component as the
// largest, and some in between.
func testRotations(t *testing.T) [][9]float64 {
	t.Helper()
	var out [][9]float64
	for i := range 200 {
		words := philox.Block([4]uint32{uint32(i)}, philox.Key(7))
		q := [4]float64{}
		for k, w := range words {
			q[k] = 2*philox.Uniform(w) - 1
		}
		if i < 8 {
			q = [4]float64{}
			q[i/2] = float64(1 - 2*(i%2))
		}
		r, ok := geom.RotationFromQuat(q)
		if !ok {
			t.Fatalf("no rotation from %v", q)
		}
		out = append(out, r)
	}
	return out
}

func TestRotationFromQuatIsOrthonormal(t *testing.T) {
	for _, r := range testRotations(t) {
		for i := range 3 {
			for j := range 3 {
				dot := r[3*i]*r[3*j] + r[3*i+1]*r[3*j+1] + r[3*i+2]*r[3*j+2]
				want := 0.0
				if i == j {
					want = 1
				}
				if math.Abs(dot-want) > 1e-14 {
					t.Fatalf("rows %d and %d of %v: %v", i, j, r, dot)
				}
			}
		}
		det := r[0]*(r[4]*r[8]-r[5]*r[7]) - r[1]*(r[3]*r[8]-r[5]*r[6]) + r[2]*(r[3]*r[7]-r[4]*r[6])
		if math.Abs(det-1) > 1e-14 {
			t.Fatalf("determinant of %v: %v", r, det)
		}
	}
}

func TestRotationFromQuatRefusesWhatIsNone(t *testing.T) {
	for _, q := range [][4]float64{
		{}, {math.NaN(), 0, 0, 0}, {1, 0, math.Inf(1), 0}, {0, math.Inf(-1), 0, math.NaN()}, {1e-300, 0, 0, 0},
	} {
		if r, ok := geom.RotationFromQuat(q); ok {
			t.Errorf("%v gives %v", q, r)
		}
	}
}

func TestQuatInvertsRotationFromQuat(t *testing.T) {
	for _, r := range testRotations(t) {
		q := Camera{R: r}.Quat()
		if q[0] < 0 || math.Abs(q[0]*q[0]+q[1]*q[1]+q[2]*q[2]+q[3]*q[3]-1) > 1e-14 {
			t.Fatalf("quaternion %v of %v", q, r)
		}
		back, ok := geom.RotationFromQuat(q)
		if !ok {
			t.Fatalf("no rotation from %v", q)
		}
		for i := range r {
			if math.Abs(back[i]-r[i]) > 1e-14 {
				t.Fatalf("%v became %v", r, back)
			}
		}
	}
}

func TestCenterIsSeenAtTheOrigin(t *testing.T) {
	for i, r := range testRotations(t) {
		c := Camera{R: r, T: [3]float64{float64(i), -3, 0.5}}
		if d := geom.Length(c.ToCamera(c.Center())); d > 1e-12 {
			t.Fatalf("camera %d sees its centre at distance %v", i, d)
		}
	}
}

func TestRescaledKeepsDirections(t *testing.T) {
	c := Camera{Width: 1000, Height: 600, Fx: 900, Fy: 800, Cx: 480, Cy: 310}
	s := c.Rescaled(250, 301)
	if s.Width != 250 || s.Height != 301 {
		t.Fatalf("%d x %d pixels", s.Width, s.Height)
	}
	for _, dir := range [][2]float64{{0, 0}, {-0.5, 0.25}, {0.3, 0.3}} {
		x, y := (c.Fx*dir[0]+c.Cx)/1000, (c.Fy*dir[1]+c.Cy)/600
		sx, sy := (s.Fx*dir[0]+s.Cx)/250, (s.Fy*dir[1]+s.Cy)/301
		if math.Abs(x-sx) > 1e-12 || math.Abs(y-sy) > 1e-12 {
			t.Errorf("direction %v at %v, %v of the image, was at %v, %v", dir, sx, sy, x, y)
		}
	}
}
