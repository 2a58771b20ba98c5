package trajectory

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

type Keyframe struct {
	Time   float64
	Camera scene.Camera
}

// knot is what of a camera is interpolated: its centre, its rotation from camera to world as a quaternion, logarithms
// of its focal lengths, its principal point.
type knot [3 + 4 + 2 + 2]float64

// Fly returns the camera at each of the times on a spline through the keyframes, whose times ascend: a cubic Hermite
// curve whose tangents are those of the parabola through a keyframe and its neighbours. Before the first and after the
// last keyframe it stands still. All cameras have the size and the model of the first keyframe's.
func Fly(keys []Keyframe, times []float64) []scene.Camera {
	if len(keys) == 0 {
		return nil
	}
	first := keys[0].Camera
	s := spline{at: make([]float64, len(keys)), knots: make([]knot, len(keys))}
	for i, k := range keys {
		s.at[i], s.knots[i] = k.Time, knotOf(Framed(k.Camera, first.Width, first.Height))
		if i > 0 {
			s.knots[i].turnTowards(&s.knots[i-1])
		}
	}
	s.findTangents()
	cams := make([]scene.Camera, len(times))
	for i, t := range times {
		cams[i] = s.value(t).camera(first)
	}
	return cams
}

func knotOf(c scene.Camera) (k knot) {
	p, q := c.Center(), c.Quat()
	copy(k[:], p[:])
	k[3], k[4], k[5], k[6] = q[0], -q[1], -q[2], -q[3]
	k[7], k[8], k[9], k[10] = math.Log(c.Fx), math.Log(c.Fy), c.Cx, c.Cy
	return k
}

// turnTowards takes of the two quaternions of the rotation that which is nearer to the one of the knot before.
func (k *knot) turnTowards(before *knot) {
	dot := 0.0
	for i := 3; i < 7; i++ {
		dot += k[i] * before[i]
	}
	if dot < 0 {
		for i := 3; i < 7; i++ {
			k[i] = -k[i]
		}
	}
}

// camera gives a camera like c with the numbers of the knot. Quaternions between keyframes are not of length 1, which
// geom.RotationFromQuat allows.
func (k *knot) camera(c scene.Camera) scene.Camera {
	if r, ok := geom.RotationFromQuat([4]float64{k[3], -k[4], -k[5], -k[6]}); ok {
		c.R = r
	}
	c.T = geom.TranslationOf(c.R, [3]float64{k[0], k[1], k[2]})
	c.Fx, c.Fy, c.Cx, c.Cy = math.Exp(k[7]), math.Exp(k[8]), k[9], k[10]
	return c
}

// spline is a cubic Hermite curve through knots.
type spline struct {
	at       []float64 // times, ascending
	knots    []knot
	tangents []knot // by time
}

// findTangents takes those of the parabola through each knot and its neighbours, at the ends those of the line to the
// only neighbour.
func (s *spline) findTangents() {
	s.tangents = make([]knot, len(s.knots))
	last := len(s.knots) - 1
	for i := range s.knots {
		lo, hi := max(i-1, 0), min(i+1, last)
		if lo == hi {
			continue
		}
		for v := range s.tangents[i] {
			if lo == i || hi == i {
				s.tangents[i][v] = s.slope(lo, hi, v)
				continue
			}
			before, after := s.at[i]-s.at[lo], s.at[hi]-s.at[i]
			s.tangents[i][v] = (s.slope(lo, i, v)*after + s.slope(i, hi, v)*before) / (before + after)
		}
	}
}

func (s *spline) slope(i, j, v int) float64 {
	return (s.knots[j][v] - s.knots[i][v]) / (s.at[j] - s.at[i])
}

func (s *spline) value(t float64) *knot {
	last := len(s.at) - 1
	j := 0
	for j < last && t >= s.at[j+1] {
		j++
	}
	if j == last || t <= s.at[0] {
		k := s.knots[j]
		return &k
	}
	h := s.at[j+1] - s.at[j]
	x := (t - s.at[j]) / h
	a, b := (1+2*x)*(1-x)*(1-x), x*(1-x)*(1-x)*h
	c, d := x*x*(3-2*x), x*x*(x-1)*h
	var k knot
	for v := range k {
		k[v] = a*s.knots[j][v] + b*s.tangents[j][v] + c*s.knots[j+1][v] + d*s.tangents[j+1][v]
	}
	return &k
}
