package ref

import "math"

// Real is the arithmetic a twin runs in.
type Real interface{ float32 | float64 }

type vec3[T Real] [3]T

// mat3 is row-major.
type mat3[T Real] [3][3]T

// mat23 is a 2x3 matrix, row-major.
type mat23[T Real] [2][3]T

// sym2 is a symmetric 2x2 matrix: xx, xy, yy.
type sym2[T Real] [3]T

func sqrt[T Real](x T) T     { return T(math.Sqrt(float64(x))) }
func exp[T Real](x T) T      { return T(math.Exp(float64(x))) }
func log[T Real](x T) T      { return T(math.Log(float64(x))) }
func pow[T Real](x, y T) T   { return T(math.Pow(float64(x), float64(y))) }
func atan2[T Real](y, x T) T { return T(math.Atan2(float64(y), float64(x))) }
func ceil[T Real](x T) T     { return T(math.Ceil(float64(x))) }
func floor[T Real](x T) T    { return T(math.Floor(float64(x))) }
func abs[T Real](x T) T      { return T(math.Abs(float64(x))) }

// Sigmoid is the activation of logit opacities.
func Sigmoid[T Real](x T) T { return 1 / (1 + exp(-x)) }

func (a vec3[T]) dot(b vec3[T]) T       { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a vec3[T]) add(b vec3[T]) vec3[T] { return vec3[T]{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func (a vec3[T]) sub(b vec3[T]) vec3[T] { return vec3[T]{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a vec3[T]) scale(s T) vec3[T]     { return vec3[T]{a[0] * s, a[1] * s, a[2] * s} }
func (m mat3[T]) row(i int) vec3[T]     { return vec3[T](m[i]) }
func (m mat3[T]) apply(v vec3[T]) vec3[T] {
	return vec3[T]{m.row(0).dot(v), m.row(1).dot(v), m.row(2).dot(v)}
}
func (m mat3[T]) transposed() (t mat3[T]) {
	return mat3[T]{{m[0][0], m[1][0], m[2][0]}, {m[0][1], m[1][1], m[2][1]}, {m[0][2], m[1][2], m[2][2]}}
}
func (m mat23[T]) row(i int) vec3[T]     { return vec3[T](m[i]) }
func (m mat23[T]) column(k int) (a, b T) { return m[0][k], m[1][k] }
func (s sym2[T]) apply(x, y T) (T, T)    { return s[0]*x + s[1]*y, s[1]*x + s[2]*y }
func (s sym2[T]) scale(f T) sym2[T]      { return sym2[T]{s[0] * f, s[1] * f, s[2] * f} }
func (a vec3[T]) cross(b vec3[T]) (c vec3[T]) {
	return vec3[T]{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// mul returns a b.
func (a mat23[T]) mul(b mat3[T]) (c mat23[T]) {
	for i := range c {
		for j := range c[i] {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j] + a[i][2]*b[2][j]
		}
	}
	return c
}

// quatRotation is the rotation matrix of the unit quaternion q = (w, x, y, z).
func quatRotation[T Real](q [4]T) mat3[T] {
	w, x, y, z := q[0], q[1], q[2], q[3]
	return mat3[T]{
		{1 - 2*(y*y+z*z), 2 * (x*y - w*z), 2 * (x*z + w*y)},
		{2 * (x*y + w*z), 1 - 2*(x*x+z*z), 2 * (y*z - w*x)},
		{2 * (x*z - w*y), 2 * (y*z + w*x), 1 - 2*(x*x+y*y)},
	}
}

// quatRotationVJP is the gradient of the unit quaternion, given v = dL/dR.
func quatRotationVJP[T Real](q [4]T, v mat3[T]) [4]T {
	w, x, y, z := q[0], q[1], q[2], q[3]
	return [4]T{
		2 * (x*(v[2][1]-v[1][2]) + y*(v[0][2]-v[2][0]) + z*(v[1][0]-v[0][1])),
		2 * (-2*x*(v[1][1]+v[2][2]) + y*(v[0][1]+v[1][0]) + z*(v[0][2]+v[2][0]) + w*(v[2][1]-v[1][2])),
		2 * (x*(v[0][1]+v[1][0]) - 2*y*(v[0][0]+v[2][2]) + z*(v[1][2]+v[2][1]) + w*(v[0][2]-v[2][0])),
		2 * (x*(v[0][2]+v[2][0]) + y*(v[1][2]+v[2][1]) - 2*z*(v[0][0]+v[1][1]) + w*(v[1][0]-v[0][1])),
	}
}

// quatNorm returns |q|.
func quatNorm[T Real](q [4]T) T { return sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]) }

// normalizeVJP is the gradient of q, given the gradient v of unit = q / norm.
func normalizeVJP[T Real](unit [4]T, norm T, v [4]T) (g [4]T) {
	along := unit[0]*v[0] + unit[1]*v[1] + unit[2]*v[2] + unit[3]*v[3]
	for k := range g {
		g[k] = (v[k] - unit[k]*along) / norm
	}
	return g
}
