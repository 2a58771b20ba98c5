// Package decimate makes fewer splats of many by merging pairs that look alike. It knows splats in memory; who has
// larger models hands it parts.
//
// Pairs proposes which splats of a part to merge and what each merge costs; Merge makes one splat of two. A pair
// becomes the Gaussian that has the mean and the covariance of both together, weighted by optical depth times area, and
// the cost is what that changes: see cost.
package decimate

import (
	"cmp"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/initial"
)

// neighbours is how many nearest splats a splat may be merged with.
const neighbours = 8

// costBlock is how many splats a worker finds the costs of at a time.
const costBlock = 1 << 10

// Pair is two splats, A before B, and what their merge costs.
type Pair struct {
	A, B uint32
	Cost float32
}

// Pairs returns pairs of splats to merge, the cheapest first. No splat is in two of them, and every splat whose
// neighbours are not all taken is in one. The splats are those that something can draw. Costs of parts of a scene
// compare.
func Pairs(s *scene.Splats) []Pair {
	near := initial.Nearest(s.Means, neighbours)
	all := make([]gaussian, s.N)
	costs := make([]float32, s.N*neighbours) // NaN: no pair, or the other one's
	blocks := (s.N + costBlock - 1) / costBlock
	parallel.For(blocks, func(b int) {
		for i := b * costBlock; i < min((b+1)*costBlock, s.N); i++ {
			all[i] = gaussianOf(s, i)
		}
	})
	parallel.For(blocks, func(b int) {
		for i := b * costBlock; i < min((b+1)*costBlock, s.N); i++ {
			for k, j := range near[i*neighbours : (i+1)*neighbours] {
				costs[i*neighbours+k] = float32(math.NaN())
				if j >= 0 && (int(j) > i || !slices.Contains(near[int(j)*neighbours:(int(j)+1)*neighbours], int32(i))) {
					costs[i*neighbours+k] = float32(cost(&all[i], &all[j]))
				}
			}
		}
	})
	var list []Pair
	for at, c := range costs {
		if c == c {
			i, j := uint32(at/neighbours), uint32(near[at])
			list = append(list, Pair{min(i, j), max(i, j), c})
		}
	}
	slices.SortFunc(list, func(p, q Pair) int {
		return cmp.Or(cmp.Compare(p.Cost, q.Cost), cmp.Compare(p.A, q.A), cmp.Compare(p.B, q.B))
	})
	return disjoint(list, s.N)
}

// disjoint keeps of the pairs of n splats those whose splats are in no pair before.
func disjoint(list []Pair, n int) []Pair {
	taken := make([]bool, n)
	return slices.DeleteFunc(list, func(p Pair) bool {
		if taken[p.A] || taken[p.B] {
			return true
		}
		taken[p.A], taken[p.B] = true, true
		return false
	})
}

// gaussian is the part of a splat that merging needs.
type gaussian struct {
	mean   [3]float64
	cov    [6]float64 // xx xy xz yy yz zz
	depth  float64    // optical depth in the middle, -log(1 - opacity): that of splats behind each other adds up
	colour [3]float64 // seen from nowhere in particular
}

// most is the greatest opacity that differs from 1.
const most = 0.99

func gaussianOf(s *scene.Splats, i int) gaussian {
	g := gaussian{depth: -math.Log1p(-min(1/(1+math.Exp(-float64(s.LogitOpacities[i]))), most))}
	q := s.Quats[4*i : 4*i+4]
	r, _ := geom.RotationFromQuat([4]float64{float64(q[0]), float64(q[1]), float64(q[2]), float64(q[3])})
	var d [3]float64
	for k := range 3 {
		g.mean[k] = float64(s.Means[3*i+k])
		d[k] = math.Exp(2 * float64(s.LogScales[3*i+k]))
		g.colour[k] = max(0, 0.5+scene.SH0*float64(s.SH[3*s.K()*i+k]))
	}
	at := 0
	for row := range 3 {
		for col := row; col < 3; col++ {
			g.cov[at] = r[3*row]*d[0]*r[3*col] + r[3*row+1]*d[1]*r[3*col+1] + r[3*row+2]*d[2]*r[3*col+2]
			at++
		}
	}
	return g
}

// trace is the sum of the squared axes.
func (g *gaussian) trace() float64 { return g.cov[0] + g.cov[3] + g.cov[5] }

// area is about what the splat covers on average over all directions: the root of the mean of the squared areas of the
// three faces of its axes, which the second invariant of the covariance gives without the axes.
func (g *gaussian) area() float64 {
	c := &g.cov
	minors := c[0]*c[3] - c[1]*c[1] + c[0]*c[5] - c[2]*c[2] + c[3]*c[5] - c[4]*c[4]
	return math.Pi * math.Sqrt(max(minors, 0)/3)
}

// weight is a splat's say in a merge.
func (g *gaussian) weight() float64 { return g.depth*g.area() + math.SmallestNonzeroFloat32 }

// merged is the Gaussian with the mean and the covariance of two, which holds back as much light as both do.
func merged(a, b *gaussian) (m gaussian, shareA float64) {
	wa, wb := a.weight(), b.weight()
	shareA = wa / (wa + wb)
	shareB := 1 - shareA
	var apart [3]float64
	for k := range 3 {
		m.mean[k] = shareA*a.mean[k] + shareB*b.mean[k]
		m.colour[k] = shareA*a.colour[k] + shareB*b.colour[k]
		apart[k] = a.mean[k] - b.mean[k]
	}
	at := 0
	for row := range 3 {
		for col := row; col < 3; col++ {
			m.cov[at] = shareA*a.cov[at] + shareB*b.cov[at] + shareA*shareB*apart[row]*apart[col]
			at++
		}
	}
	m.depth = min((wa+wb)/(m.area()+math.SmallestNonzeroFloat32), a.depth+b.depth)
	return m, shareA
}

// blur is how much of the larger axis of the smaller splat is added to every axis before splats are compared, so that
// flat ones have a volume.
const blur = 0.25

// cost is the squared difference between two splats and what becomes of them, as fields of optical depth and of that
// times colour, integrated over space, and over the length of the result: about the squared error of a picture.
func cost(a, b *gaussian) float64 {
	m, _ := merged(a, b)
	thick := blur * blur * min(a.trace(), b.trace())
	error := inner(a, a, thick) + inner(b, b, thick) + inner(&m, &m, thick) +
		2*(inner(a, b, thick)-inner(a, &m, thick)-inner(b, &m, thick))
	return max(error, 0) / math.Sqrt(m.trace()+thick)
}

// inner is the integral of the product of two splats' fields, over (2 pi)^(3/2).
func inner(a, b *gaussian, thick float64) float64 {
	var sum [6]float64
	for k := range sum {
		sum[k] = a.cov[k] + b.cov[k]
	}
	for _, k := range [3]int{0, 3, 5} {
		sum[k] += 2 * thick
	}
	d := geom.Sub(a.mean, b.mean)
	whole := det(&sum, 0)
	if !(whole > 0) {
		return 0
	}
	far := distance2(&sum, whole, d)
	product := 1.0
	for k := range 3 {
		product += a.colour[k] * b.colour[k]
	}
	return a.depth * b.depth * product * math.Sqrt(det(&a.cov, thick)*det(&b.cov, thick)/whole) * math.Exp(-far/2)
}

// det is the determinant of a covariance with something added to its diagonal.
func det(c *[6]float64, thick float64) float64 {
	x, y, z := c[0]+thick, c[3]+thick, c[5]+thick
	return max(0, x*(y*z-c[4]*c[4])-c[1]*(c[1]*z-c[4]*c[2])+c[2]*(c[1]*c[4]-y*c[2]))
}

// distance2 is d' C^-1 d for a covariance C whose determinant is given.
func distance2(c *[6]float64, whole float64, d [3]float64) float64 {
	xx, xy, xz := c[3]*c[5]-c[4]*c[4], c[2]*c[4]-c[1]*c[5], c[1]*c[4]-c[2]*c[3]
	yy, yz, zz := c[0]*c[5]-c[2]*c[2], c[1]*c[2]-c[0]*c[4], c[0]*c[3]-c[1]*c[1]
	return (d[0]*(xx*d[0]+2*xy*d[1]+2*xz*d[2]) + d[1]*(yy*d[1]+2*yz*d[2]) + zz*d[2]*d[2]) / whole
}

// Merge puts what splats a and b of s become at place at of into, which has the degree of s.
func Merge(s *scene.Splats, a, b int, into *scene.Splats, at int) {
	ga, gb := gaussianOf(s, a), gaussianOf(s, b)
	m, share := merged(&ga, &gb)
	c := &m.cov
	values, axes := geom.SymmetricEigen([3][3]float64{{c[0], c[1], c[2]}, {c[1], c[3], c[4]}, {c[2], c[4], c[5]}})
	q := geom.QuatFromRotation(rightHanded(axes))
	for k := range 4 {
		into.Quats[4*at+k] = float32(q[k])
	}
	for k := range 3 {
		into.Means[3*at+k] = float32(m.mean[k])
		into.LogScales[3*at+k] = float32(math.Log(max(values[k], math.SmallestNonzeroFloat32)) / 2)
	}
	opacity := max(-math.Expm1(-m.depth), math.SmallestNonzeroFloat32) // a logit must be finite
	into.LogitOpacities[at] = float32(math.Log(opacity) + m.depth)
	width := 3 * s.K()
	for k := range width {
		into.SH[width*at+k] = float32(share*float64(s.SH[width*a+k]) + (1-share)*float64(s.SH[width*b+k]))
	}
}

// rightHanded gives a matrix with these columns, the last turned round where the matrix would mirror.
func rightHanded(columns [3][3]float64) (r [9]float64) {
	for row := range 3 {
		copy(r[3*row:], columns[row][:])
	}
	if geom.Det3(r) < 0 {
		r[2], r[5], r[8] = -r[2], -r[5], -r[8]
	}
	return r
}
