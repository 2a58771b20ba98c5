package initial

import (
	"context"
	"math"

	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// Values of a new splat.
const (
	// minSpacing is the floor of the mean neighbour distance, in units of the training frame: the root of the 1e-7 that
	// INRIA's trainer puts under the squared distance. About a third of a pixel at distance 1, so that splats of
	// coinciding points can still be seen and grow.
	minSpacing = 3.1622776601683794e-4
	// loneSpacing stands in for the neighbour distance of a point that has no neighbour.
	loneSpacing = 0.1
)

// Initialise returns one splat per point, in the order of the points, which are in the training frame: a sphere as wide
// as the mean distance to the three nearest other points (to all others if there are fewer; at least minSpacing) times
// scale, the given opacity, the point's colour from every side, and a random rotation that depends on seed and the
// point's index alone. Points that are not finite as float32 are left out. degree is clamped to 0..MaxSHDegree; opacity
// must be between 0 and 1, scale positive. The published recipe has opacity 0.1 and scale 1. When ctx ends it returns
// early, with splats of no use.
func Initialise(ctx context.Context, points []scene.Point, seed uint64, degree int,
	opacity, scale float64) *scene.Splats {
	points = finitePoints(points)
	// first: what it takes beside them is free again when the splats are made
	logScales := spacingLogs(ctx, points, scale)
	s := scene.NewSplats(len(points), min(max(degree, 0), scene.MaxSHDegree))
	logit := float32(math.Log(opacity / (1 - opacity)))
	key, width := philox.Key(seed), 3*s.K()
	parallel.For((s.N+spacingBlock-1)/spacingBlock, func(block int) {
		if ctx.Err() != nil {
			return
		}
		for i := block * spacingBlock; i < min((block+1)*spacingBlock, s.N); i++ {
			quat := randomQuat(uint32(i), key)
			copy(s.Quats[4*i:], quat[:])
			s.LogitOpacities[i] = logit
			for c := range 3 {
				s.Means[3*i+c] = float32(points[i].Pos[c])
				s.LogScales[3*i+c] = logScales[i]
				s.SH[width*i+c] = float32((float64(points[i].Color[c])/255 - 0.5) / scene.SH0)
			}
		}
	})
	return s
}

// finitePoints returns points itself if all are finite.
func finitePoints(points []scene.Point) []scene.Point {
	for i, p := range points {
		if !finitePoint(p) {
			kept := append([]scene.Point(nil), points[:i]...)
			for _, q := range points[i+1:] {
				if finitePoint(q) {
					kept = append(kept, q)
				}
			}
			return kept
		}
	}
	return points
}

func finitePoint(p scene.Point) bool {
	return scene.Finite32(float32(p.Pos[0])) && scene.Finite32(float32(p.Pos[1])) && scene.Finite32(float32(p.Pos[2]))
}

// spacingBlock is how many points one unit of parallel work holds.
const spacingBlock = 4096

// spacingLogs returns per point the logarithm of its spacing times scale.
func spacingLogs(ctx context.Context, points []scene.Point, scale float64) []float32 {
	out := make([]float32, len(points))
	tree := newPointTree(ctx, points)
	// By position in the tree: neighbours in space follow each other, so that a walk finds its nodes in the cache.
	parallel.For((len(points)+spacingBlock-1)/spacingBlock, func(block int) {
		if ctx.Err() != nil {
			return
		}
		for at := block * spacingBlock; at < min((block+1)*spacingBlock, len(points)); at++ {
			out[tree.index[at]] = float32(math.Log(tree.spacing(at) * scale))
		}
	})
	return out
}

// spacing returns the mean distance from the point at a position to its three nearest neighbours, never below
// minSpacing.
func (t *pointTree) spacing(at int) float64 {
	count := min(3, len(t.pos)-1)
	if count == 0 {
		return loneSpacing
	}
	var sum float64
	near := [3]neighbour{noNeighbour, noNeighbour, noNeighbour}
	t.search(0, 0, len(t.pos), at, near[:])
	for _, found := range near[:count] {
		sum += math.Sqrt(found.d2)
	}
	return max(sum/float64(count), minSpacing)
}

// randomQuat returns a rotation (w, x, y, z) of unit length, uniform over all rotations: four normal numbers (Box and
// Muller), normalised.
func randomQuat(id uint32, key [2]uint32) [4]float32 {
	words := philox.Block([4]uint32{id, 0, philox.StreamQuats, 0}, key)
	var q [4]float64
	var norm float64
	for k := 0; k < 4; k += 2 {
		u, v := (float64(words[k])+0.5)/(1<<32), (float64(words[k+1])+0.5)/(1<<32) // never 0 nor 1
		r, sin, cos := philox.NormalPair(u, v)
		q[k], q[k+1] = r*cos, r*sin
		norm += r * r
	}
	norm = math.Sqrt(norm)
	var out [4]float32
	for k := range q {
		out[k] = float32(q[k] / norm)
	}
	return out
}
