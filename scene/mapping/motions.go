package mapping

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"vksplat/internal/geom"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/twoview"
)

// motion is a pair's relative pose: x_b = R x_a + s T.
type motion struct {
	r     [9]float64
	t     [3]float64
	ok    bool
	rough bool    // the rotation is a guess, there is no translation
	score float64 // as a pair to begin with: its points, those at small angles for less
}

// findMotions finds the relative poses of pairs with the focal lengths that were found, from their fundamental
// matrices.
func (m *mapper) findMotions() {
	m.motions = make([]motion, len(m.pairs))
	m.eachPair(func(i int) {
		p, c := m.pairs[i], &m.motions[i]
		r := &p.Relation
		a, b := &m.in.Lenses[m.in.Photos[p.A].Lens], &m.in.Lenses[m.in.Photos[p.B].Lens]
		switch {
		case r.Kind == twoview.Planar || r.Kind == twoview.Rotation:
			*c = motion{rough: true}
			c.r, c.ok = m.turnOf(p)
		case a.FocalKnown && b.FocalKnown && r.R != [9]float64{}:
			*c = motion{r: r.R, t: r.T, ok: true}
		default:
			*c = m.factorise(p)
		}
		c.score = m.score(p, c)
	})
}

// turnOf returns the rotation that is closest to a pair's homography: within some 60 degrees of the right one.
func (m *mapper) turnOf(p *Pair) (r [9]float64, ok bool) {
	a, b := &m.lenses[m.in.Photos[p.A].Lens], &m.lenses[m.in.Photos[p.B].Lens]
	h := geom.Product(geom.Transposed(geom.InverseTransposed(matrixOf(b))), geom.Product(p.Relation.H, matrixOf(a)))
	u, v, ok := rotations(h)
	if !ok {
		return r, false
	}
	return geom.Product(u, geom.Transposed(v)), true
}

// factorise finds the relative pose of a pair from its fundamental matrix.
func (m *mapper) factorise(p *Pair) (best motion) {
	most := 0.5 * float64(len(p.Relation.Inliers)) // all points of a right pair are in front of both photos
	for _, c := range decompose(m.essential(p)) {
		if n := m.inFront(p, &c); n > most {
			best, most = c, n
			best.ok = true
		}
	}
	return best
}

// relate finds the relative pose of a pair from its inliers, or some of them.
func (m *mapper) relate(p *Pair) motion {
	var inliers [][2]int32
	step := 1 + len(p.Relation.Inliers)/enoughInliers
	for i := 0; i < len(p.Relation.Inliers); i += step {
		inliers = append(inliers, p.Matches[p.Relation.Inliers[i]])
	}
	r := twoview.Relate(m.view(p.A), m.view(p.B), inliers, twoview.Options{Key: m.key(p.A, p.B)})
	return motion{r: r.R, t: r.T, ok: r.R != [9]float64{}}
}

func (m *mapper) view(photo int) twoview.View {
	p := &m.in.Photos[photo]
	return twoview.View{Optics: m.start[p.Lens], FocalKnown: true, Points: p.Keypoints}
}

// streamMapping is the purpose of random numbers: the third word of Philox's counter.
const streamMapping uint32 = 0x20001

// key mixes the seed and two numbers, below 2³².
func (m *mapper) key(a, b int) uint64 {
	r := philox.Block([4]uint32{uint32(a), uint32(b), streamMapping, 0}, philox.Key(m.o.Seed))
	return uint64(r[0])<<32 | uint64(r[1])
}

// essential returns a pair's essential matrix with the focal lengths that were found, of any scale.
func (m *mapper) essential(p *Pair) [9]float64 {
	a, b := &m.lenses[m.in.Photos[p.A].Lens], &m.lenses[m.in.Photos[p.B].Lens]
	return geom.Product(geom.Transposed(matrixOf(b)), geom.Product(p.Relation.F, matrixOf(a)))
}

// matrixOf returns the map from rays to what matrices of relations are of: pixels without distortion, or rays of
// panoramas.
func matrixOf(k *scene.Calibration) [9]float64 {
	info, _ := k.Model.Info()
	if info.Focals == 0 {
		return geom.Identity
	}
	p := k.Params
	return [9]float64{p[0], 0, p[info.Focals], 0, p[info.Focals-1], p[info.Focals+1], 0, 0, 1}
}

// rotations returns the factors u and v of a matrix u d v', rotations both: its singular vectors, for the sign that
// makes the determinant positive. ok is false if there are none.
func rotations(m [9]float64) (u, v [9]float64, ok bool) {
	var svd mat.SVD
	if !geom.Finite(m[:]...) || m == [9]float64{} || !svd.Factorize(mat.NewDense(3, 3, m[:]), mat.SVDFull) {
		return u, v, false
	}
	var left, right mat.Dense
	svd.UTo(&left)
	svd.VTo(&right)
	u, v = [9]float64(left.RawMatrix().Data), [9]float64(right.RawMatrix().Data)
	for _, f := range []*[9]float64{&u, &v} {
		if geom.Det3(*f) < 0 {
			*f = [9]float64{-f[0], -f[1], -f[2], -f[3], -f[4], -f[5], -f[6], -f[7], -f[8]}
		}
	}
	return u, v, true
}

// decompose returns the four motions of an essential matrix (Hartley and Zisserman: Multiple View Geometry, 9.6.2).
func decompose(e [9]float64) (list []motion) {
	u, v, ok := rotations(e)
	if !ok {
		return nil
	}
	t := [3]float64{u[2], u[5], u[8]}
	for _, s := range [2]float64{1, -1} {
		turn := geom.Product(u, geom.Product([9]float64{0, -s, 0, s, 0, 0, 0, 0, 1}, geom.Transposed(v)))
		list = append(list, motion{r: turn, t: t}, motion{r: turn, t: geom.Scale(t, -1)})
	}
	return list
}

// inFront counts the inliers that are in front of both photos.
func (m *mapper) inFront(p *Pair, c *motion) (n float64) {
	return m.eachFront(p, c, func(float64) float64 { return 1 })
}

// score counts points that are in front of both photos, those at angles below seedAngle for less.
func (m *mapper) score(p *Pair, c *motion) float64 {
	if !c.ok || c.t == [3]float64{} {
		return 0
	}
	return m.eachFront(p, c, func(angle float64) float64 {
		if angle < leastAngle {
			return 0
		}
		return min(1, angle/seedAngle)
	})
}

// eachFront sums f over inliers that are in front of both photos, of the angle between the rays.
func (m *mapper) eachFront(p *Pair, c *motion, f func(angle float64) float64) (sum float64) {
	for _, at := range p.Relation.Inliers {
		x, y := m.rays[p.A][p.Matches[at][0]], m.rays[p.B][p.Matches[at][1]]
		x = geom.Rotate(c.r, x)
		cross := geom.Cross(x, y)
		// b y = a x + t, for the distances a and b along the rays, at which they are closest
		b, a := geom.Dot(geom.Cross(x, c.t), cross), geom.Dot(geom.Cross(y, c.t), cross)
		if a > 0 && b > 0 {
			sum += f(math.Atan2(math.Sqrt(geom.Dot(cross, cross)), geom.Dot(x, y)))
		}
	}
	return sum
}
