package splatfile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Similarity moves a model: x becomes Scale R x + T. A scale that differs by axis would shear splats that are not
// aligned with it, which three axis lengths and a rotation cannot hold.
type Similarity struct {
	Scale float64
	R     [9]float64 // rotation, rows
	T     [3]float64
}

// Unmoved is the similarity that changes nothing.
func Unmoved() Similarity { return Similarity{Scale: 1, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}} }

// After returns the similarity that does first and then s.
func (s Similarity) After(first Similarity) Similarity {
	out := Similarity{Scale: s.Scale * first.Scale, T: s.T}
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				out.R[3*i+j] += s.R[3*i+k] * first.R[3*k+j]
			}
			out.T[i] += s.Scale * s.R[3*i+j] * first.T[j]
		}
	}
	return out
}

// maxTransform bounds the numbers of a transform, so that float32 holds what becomes of any scene.
const maxTransform = 1e12

// ParseTransform reads what a user writes: words "scale S", "rotate X,Y,Z" (degrees about x, then y, then z) and
// "translate X,Y,Z", carried out in their order; or 12 or 16 numbers, the rows of a matrix [s R | t].
func ParseTransform(text string) (Similarity, error) {
	words := strings.Fields(text)
	if len(words) > 0 && strings.ContainsAny(words[0][:1], "0123456789.+-,;") {
		return parseMatrix(text)
	}
	out := Unmoved()
	for i := 0; i < len(words); i += 2 {
		if !slices.Contains([]string{"scale", "rotate", "translate"}, words[i]) {
			return out, fmt.Errorf("%q is not one of scale, rotate, translate", words[i])
		}
		if i+1 == len(words) {
			return out, fmt.Errorf("nothing follows %q", words[i])
		}
		step := Unmoved()
		want := 3
		if words[i] == "scale" {
			want = 1
		}
		v, err := numbers(words[i+1], want)
		if err != nil {
			return out, fmt.Errorf("%s %s: %w", words[i], words[i+1], err)
		}
		switch words[i] {
		case "scale":
			if step.Scale = v[0]; !(v[0] > 0) {
				return out, fmt.Errorf("scale %s: it must be above 0", words[i+1])
			}
		case "translate":
			step.T = [3]float64(v)
		case "rotate":
			step.R = eulerRotation([3]float64(v))
		}
		out = step.After(out)
	}
	if len(words) == 0 {
		return out, errors.New("it is empty")
	}
	return out, out.check()
}

// check refuses what leads out of the numbers that float32 holds.
func (s Similarity) check() error {
	for _, x := range [4]float64{s.Scale, s.T[0], s.T[1], s.T[2]} {
		if !(math.Abs(x) <= maxTransform) {
			return fmt.Errorf("a scale of %g and a translation of %g together", s.Scale, s.T)
		}
	}
	if s.Scale < 1/maxTransform {
		return fmt.Errorf("a scale of %g", s.Scale)
	}
	return nil
}

// numbers parses n finite numbers between commas.
func numbers(text string, n int) ([]float64, error) {
	parts := strings.FieldsFunc(text,
		func(c rune) bool { return c == ',' || c == ' ' || c == ';' || c == '\t' || c == '\n' })
	if len(parts) != n {
		return nil, fmt.Errorf("%d numbers, %d are needed", len(parts), n)
	}
	v := make([]float64, n)
	for i, p := range parts {
		x, err := strconv.ParseFloat(p, 64)
		if err != nil || !(math.Abs(x) <= maxTransform) {
			return nil, fmt.Errorf("%q is not a number up to %g", p, float64(maxTransform))
		}
		v[i] = x
	}
	return v, nil
}

// eulerRotation turns by degrees about x, then y, then z, each a fixed axis.
func eulerRotation(degrees [3]float64) [9]float64 {
	out := Unmoved()
	for axis, d := range degrees {
		sin, cos := math.Sincos(d * math.Pi / 180)
		if quarter := d / 90; quarter == math.Trunc(quarter) { // exact
			sin, cos = math.Round(sin), math.Round(cos)
		}
		turn := Unmoved()
		a, b := (axis+1)%3, (axis+2)%3
		turn.R[4*a], turn.R[3*a+b], turn.R[3*b+a], turn.R[4*b] = cos, -sin, sin, cos
		out = turn.After(out)
	}
	return out.R
}

// parseMatrix reads a matrix and splits it into scale, rotation and translation.
func parseMatrix(text string) (Similarity, error) {
	v, err := numbers(text, 16)
	if err != nil {
		var short error
		if v, short = numbers(text, 12); short != nil {
			return Unmoved(), fmt.Errorf("%w; nor are they 12", err)
		}
		v = append(v, 0, 0, 0, 1)
	}
	if v[12] != 0 || v[13] != 0 || v[14] != 0 || v[15] != 1 {
		return Unmoved(), errors.New("the last row of the matrix is not 0 0 0 1; rows are written one after the other")
	}
	return similarityOf([12]float64(v[:12]))
}

// similarityOf splits the rows of a matrix [s R | t].
func similarityOf(v [12]float64) (Similarity, error) {
	s := Unmoved()
	det := 0.0
	for i := range 3 {
		s.T[i] = v[4*i+3]
		det += v[i] * (v[4+(i+1)%3]*v[8+(i+2)%3] - v[4+(i+2)%3]*v[8+(i+1)%3])
	}
	if !(det > 0) {
		return s, errors.New("the matrix mirrors or flattens the scene: its determinant is not above 0")
	}
	s.Scale = math.Cbrt(det)
	for i := range 3 {
		for j := range 3 {
			s.R[3*i+j] = v[4*i+j] / s.Scale
		}
	}
	const tolerance = 1e-4 // of numbers that were printed with few digits
	for i := range 3 {
		for j := range 3 {
			dot := s.R[3*i]*s.R[3*j] + s.R[3*i+1]*s.R[3*j+1] + s.R[3*i+2]*s.R[3*j+2]
			if i == j {
				dot--
			}
			if math.Abs(dot) > tolerance {
				return s, errors.New("the matrix stretches one direction more than another, or shears: splats cannot " +
					"follow; one scale for all axes is possible")
			}
		}
	}
	s.R = rotationOf(geom.QuatFromRotation(s.R))
	return s, s.check()
}

// Upright turns a scene so that up, a direction of any length, becomes -y: up in the frame of COLMAP, which most
// viewers of PLY files assume.
func Upright(up [3]float64) (Similarity, error) {
	s := Unmoved()
	length := math.Sqrt(up[0]*up[0] + up[1]*up[1] + up[2]*up[2])
	if !(length > 0) || math.IsInf(length, 0) {
		return s, errors.New("there is no up direction")
	}
	x, y, z := up[0]/length, up[1]/length, up[2]/length
	// The shortest turn from u to v has the quaternion (1 + u.v, u x v); v is -y.
	if w := 1 - y; w > 1e-12 {
		s.R = rotationOf([4]float64{w, z, 0, -x})
	} else {
		s.R = [9]float64{1, 0, 0, 0, -1, 0, 0, 0, -1} // half a turn about x
	}
	return s, nil
}

// rotationOf returns the matrix of a quaternion of any length above 0.
func rotationOf(q [4]float64) [9]float64 {
	s := 2 / (q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	w, x, y, z := q[0], q[1], q[2], q[3]
	return [9]float64{
		1 - s*(y*y+z*z), s * (x*y - w*z), s * (x*z + w*y),
		s * (x*y + w*z), 1 - s*(x*x+z*z), s * (y*z - w*x),
		s * (x*z - w*y), s * (y*z + w*x), 1 - s*(x*x+y*y),
	}
}

// mover applies a similarity to splats.
type mover struct {
	Similarity
	turns bool
	quat  [4]float64
	bands [scene.MaxSHDegree + 1][][]float64 // rotation of the SH coefficients of a degree
}

func newMover(s Similarity) *mover {
	m := &mover{Similarity: s, turns: s.R != Unmoved().R, quat: geom.QuatFromRotation(s.R)}
	if m.turns {
		m.bands = rotateBands(s.R)
	}
	return m
}

// apply moves splats in place.
func (m *mover) apply(s *scene.Splats) {
	grow := math.Log(m.Scale)
	for i := range s.N {
		at := s.Means[3*i : 3*i+3]
		x := [3]float64{float64(at[0]), float64(at[1]), float64(at[2])}
		for k := range 3 {
			if m.turns {
				at[k] = float32(m.Scale*(m.R[3*k]*x[0]+m.R[3*k+1]*x[1]+m.R[3*k+2]*x[2]) + m.T[k])
			} else {
				at[k] = float32(m.Scale*x[k] + m.T[k])
			}
			s.LogScales[3*i+k] = float32(float64(s.LogScales[3*i+k]) + grow)
		}
		if m.turns {
			m.turn(s, i)
		}
	}
}

// turn rotates the axes and the colours of splat i.
func (m *mover) turn(s *scene.Splats, i int) {
	q := s.Quats[4*i : 4*i+4]
	a, b := m.quat, doubles(q)
	q[0] = float32(a[0]*b[0] - a[1]*b[1] - a[2]*b[2] - a[3]*b[3])
	q[1] = float32(a[0]*b[1] + a[1]*b[0] + a[2]*b[3] - a[3]*b[2])
	q[2] = float32(a[0]*b[2] - a[1]*b[3] + a[2]*b[0] + a[3]*b[1])
	q[3] = float32(a[0]*b[3] + a[1]*b[2] - a[2]*b[1] + a[3]*b[0])
	k := s.K()
	sh := s.SH[3*k*i : 3*k*(i+1)]
	var old [2*scene.MaxSHDegree + 1]float64
	for l := 1; l <= s.Degree; l++ {
		for c := range 3 {
			band := sh[3*l*l+c:]
			for j := range 2*l + 1 {
				old[j] = float64(band[3*j])
			}
			for j, row := range m.bands[l] {
				sum := 0.0
				for n, x := range row {
					sum += x * old[n]
				}
				band[3*j] = float32(sum)
			}
		}
	}
}

// rotateBands returns for each degree the matrix that the coefficients of a function on the sphere are multiplied by
// when it is rotated: entry k, m is the integral over the sphere of Y_k(d) Y_m(R^T d). Products of two functions of
// degree 3 are polynomials of degree 6, which 4 Gauss-Legendre nodes in z times 8 equal angles integrate exactly.
func rotateBands(r [9]float64) (bands [scene.MaxSHDegree + 1][][]float64) {
	for l := range bands {
		bands[l] = make([][]float64, 2*l+1)
		for k := range bands[l] {
			bands[l][k] = make([]float64, 2*l+1)
		}
	}
	const inner, outer = 0.3399810435848563, 0.8611363115940526
	const innerWeight, outerWeight = 0.6521451548625461, 0.34785484513745385
	const angles = 8
	for _, node := range [4][2]float64{{-outer, outerWeight}, {-inner, innerWeight}, {inner, innerWeight},
		{outer, outerWeight}} {
		for j := range angles {
			sin, cos := math.Sincos(2 * math.Pi * float64(j) / angles)
			radius := math.Sqrt(1 - node[0]*node[0])
			d := [3]float64{radius * cos, radius * sin, node[0]}
			var back [3]float64
			for k := range 3 {
				back[k] = r[k]*d[0] + r[3+k]*d[1] + r[6+k]*d[2]
			}
			weight := node[1] * 2 * math.Pi / angles
			y, turned := harmonics(d), harmonics(back)
			for l := range bands {
				for k := range bands[l] {
					for m := range bands[l][k] {
						bands[l][k][m] += weight * y[l*l+k] * turned[l*l+m]
					}
				}
			}
		}
	}
	return bands
}

// harmonics evaluates the real spherical harmonics of splat files (Kerbl et al. 2023) for a unit direction, in the
// order of scene.Splats.
func harmonics(d [3]float64) [16]float64 {
	x, y, z := d[0], d[1], d[2]
	xx, yy, zz := x*x, y*y, z*z
	return [16]float64{
		scene.SH0,
		-0.4886025119029199 * y, 0.4886025119029199 * z, -0.4886025119029199 * x,
		1.0925484305920792 * x * y, -1.0925484305920792 * y * z, 0.31539156525252005 * (2*zz - xx - yy),
		-1.0925484305920792 * x * z, 0.5462742152960396 * (xx - yy),
		-0.5900435899266435 * y * (3*xx - yy), 2.890611442640554 * x * y * z,
		-0.4570457994644658 * y * (4*zz - xx - yy),
		0.3731763325901154 * z * (2*zz - 3*xx - 3*yy), -0.4570457994644658 * x * (4*zz - xx - yy),
		1.445305721320277 * z * (xx - yy),
		-0.5900435899266435 * x * (xx - 3*yy),
	}
}
