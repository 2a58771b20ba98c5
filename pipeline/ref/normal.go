package ref

import "math"

// twin: normal_loss

// As normal_loss has them.
const (
	normalReach = 1
	leastAlike  = 0.9
	leastAlpha  = 0.01
	softSine    = 0.05
)

// NormalLoss is weight times the sum over pairs of pixels, beside and below each other, of a smooth |sine| of the angle
// by which what lies between their points is off the plane of the normals known of them, divided by the number of
// pixels. It returns its gradients by each pixel's sum of inverse depths and by its alpha. A normal of 0 is not known.
// A pair weighs by the product of its alphas in covers, by which there is no gradient.
func NormalLoss[T Real](render [][4]T, sums []T, normals [][3]T, covers []T, v *View[T], weight T) (loss T, vSums,
	vAlphas []T) {
	vSums, vAlphas = make([]T, len(sums)), make([]T, len(sums))
	weight /= T(len(sums))
	for i := range sums {
		x, y := i%v.Width, i/v.Width
		for _, step := range [...][2]int{{normalReach, 0}, {0, normalReach}} {
			toX, toY := x+step[0], y+step[1]
			j := toY*v.Width + toX
			if toX >= v.Width || toY >= v.Height || !(min(covers[i], covers[j]) > leastAlpha) ||
				!(vec3[T](normals[i]).dot(normals[j]) > leastAlike) {
				continue
			}
			p := tiltPair[T]{
				normal: unit(vec3[T](normals[i]).add(normals[j])), sums: [2]T{sums[i], sums[j]},
				alphas: [2]T{1 - render[i][3], 1 - render[j][3]},
				rays: [2]vec3[T]{v.ray([2]T{T(x) + 0.5, T(y) + 0.5}),
					v.ray([2]T{T(toX) + 0.5, T(toY) + 0.5})},
			}
			value, bySums, byAlphas := p.loss()
			of := weight * covers[i] * covers[j]
			loss += of * value
			for k, at := range [...]int{i, j} {
				vSums[at] += of * bySums[k]
				vAlphas[at] += of * byAlphas[k]
			}
		}
	}
	return loss, vSums, vAlphas
}

type tiltPair[T Real] struct {
	normal       vec3[T]
	sums, alphas [2]T
	rays         [2]vec3[T]
}

// loss returns the smooth |sine|, and its gradients.
func (p *tiltPair[T]) loss() (value T, bySums, byAlphas [2]T) {
	a, b := p.sums[0]*p.alphas[1], p.sums[1]*p.alphas[0]
	between := p.rays[1].scale(a).sub(p.rays[0].scale(b))
	size := norm(between)
	if !(min(p.sums[0], p.sums[1]) > 0) || !(size > 0) {
		return 0, bySums, byAlphas
	}
	between = between.scale(1 / size)
	sine := p.normal.dot(between)
	root := T(math.Sqrt(float64(sine*sine + softSine*softSine)))
	// By the vector between, then by a and b.
	g := p.normal.sub(between.scale(sine)).scale(sine / root / size)
	vA, vB := g.dot(p.rays[1]), -g.dot(p.rays[0])
	return root - softSine, [2]T{vA * p.alphas[1], vB * p.alphas[0]}, [2]T{vB * p.sums[1], vA * p.sums[0]}
}

func norm[T Real](a vec3[T]) T { return T(math.Sqrt(float64(a.dot(a)))) }

func unit[T Real](a vec3[T]) vec3[T] { return a.scale(1 / norm(a)) }
