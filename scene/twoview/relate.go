package twoview

import (
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

// View is a photo with its keypoints.
type View struct {
	Optics     *scene.Optics
	FocalKnown bool         // otherwise the photo's size alone counts
	Points     [][2]float32 // pixels
}

// Kind says what two photos have to do with each other.
type Kind int

const (
	Unrelated    Kind = iota // too few matches agree
	Calibrated               // an essential matrix: R and T hold
	Uncalibrated             // a fundamental matrix: a focal length is not known
	Planar                   // a homography explains as much: R and T are one of two that a plane allows
	Rotation                 // taken from one place: R holds, T is 0 and there are no depths
	Watermark                // matches are the same marks at the borders of both photos
)

// Relation is the geometry of two photos, a and b. Matrices that a kind does not have are 0.
type Relation struct {
	Kind Kind
	E    [9]float64 // b' E a = 0 of rays: [T]x R; if both focal lengths are known
	// b' F a = 0 of pixels (x, y, 1) as if the lenses had no distortion, of length 1
	F [9]float64
	H [9]float64 // b ~ H a of such pixels, of length 1; if it explains planarShare of the inliers
	R [9]float64 // x_b = R x_a + s T for some s > 0; if both focal lengths are known
	T [3]float64 // of length 1
	// ascending places in the list of matches: Sampson's distance is below Options.Pixels, and if R is known, the point
	// is in front of both cameras or so far that its depth is not determined
	Inliers []int32
	Angle   float64 // median of the angles between the rays of inliers, radians; 0 without R
}

const (
	// planarShare is the share of inliers that a homography explains from which on a pair is planar (COLMAP).
	planarShare = 0.8
	// A pair is a rotation where the median distance from one is less than so many times that from the epipolar lines.
	// Noise alone makes it 2.5 times, as the former has twice two noisy coordinates and the latter is one of them.
	rotationFactor = 4
	planarSamples  = 10 // to find both poses that a plane allows
	// leastNoise is the smallest median distance that is told from exact matches, pixels.
	leastNoise = 0.05
	// Matches are a watermark's if markShare of them are within borderShare of the diagonal from the borders, and as
	// many have moved alike (COLMAP).
	markShare, borderShare = 0.7, 0.1
)

// The purposes of random numbers.
const (
	forEpipolar uint32 = iota
	forHomography
	forRotation
	forPlane
	forPose
	forPoint
)

// pairing is the matches of two photos as sights.
type pairing struct {
	list   []couple
	places []int32 // in the caller's list of matches
	known  bool    // both focal lengths
	na, nb matrix  // pixels to rays, without distortion
	o      Options
}

// newPairing has the matches in a random order.
func newPairing(a, b View, matches [][2]int32, o Options) *pairing {
	p := &pairing{known: a.FocalKnown && b.FocalKnown, list: make([]couple, 0, len(matches)),
		places: make([]int32, 0, len(matches))}
	look, iterations := flat, 4000
	p.na, p.nb = normalisation(a.Optics), normalisation(b.Optics)
	if p.known {
		look, iterations = Look, 2000
		p.na, p.nb = toPlane(a.Optics), toPlane(b.Optics)
	}
	p.o = o.filled(4, iterations)
	for _, i := range philox.ViewOrder(o.Key, 0, len(matches)) {
		x, y := a.Points[matches[i][0]], b.Points[matches[i][1]]
		ca, okA := look(a.Optics, float64(x[0]), float64(x[1]))
		cb, okB := look(b.Optics, float64(y[0]), float64(y[1]))
		if okA && okB {
			p.list, p.places = append(p.list, couple{ca, cb}), append(p.places, int32(i))
		}
	}
	return p
}

// Relate finds the geometry of two photos from matches, pairs of places in their keypoints: by 5 points if both focal
// lengths are known, and by 7 otherwise. Panoramas are Unrelated.
func Relate(a, b View, matches [][2]int32, o Options) (r Relation) {
	p := newPairing(a, b, matches, o)
	first, inliers, ok := p.searchEpipolar()
	if !ok {
		return r
	}
	best, ok := factorised(&first, p.known)
	if !ok {
		return r
	}
	best, inliers = p.finish(best, inliers)
	r.Kind = Uncalibrated
	if p.known {
		r.Kind = Calibrated
		inliers = p.decompose(&best, inliers, &r)
	}
	if len(inliers) < p.o.MinInliers {
		return Relation{}
	}
	if p.degenerate(&best, inliers, &r); r.Kind == Planar && p.known {
		best, inliers = p.planar(best, inliers, &r)
	}
	p.setMatrices(&best, &r)
	for _, i := range inliers {
		r.Inliers = append(r.Inliers, p.places[i])
	}
	slices.Sort(r.Inliers)
	if marked(a, b, matches, r.Inliers, p.o.Pixels) {
		r.Kind = Watermark
	}
	return r
}

func (p *pairing) searchEpipolar() (e matrix, inliers []int32, ok bool) {
	loss := adjust.Cauchy(p.o.Pixels / 4)
	s := search[matrix]{n: len(p.list), size: 7, purpose: forEpipolar}
	s.miss = func(m *matrix, i int32) float64 { return sampson(m, &p.list[i].a, &p.list[i].b) }
	s.improve = func(m matrix, inliers []int32) matrix {
		if q, ok := factorised(&m, p.known); ok {
			return q.refined(p.list, inliers, p.known, 4, loss).e
		}
		return m
	}
	s.solve = func(sample []int32, out []matrix) []matrix { return sevenPoint(p.list, sample, out) }
	if p.known {
		s.size = 5
		s.solve = func(sample []int32, out []matrix) []matrix { return fivePoint(p.list, sample, out) }
	}
	return s.run(p.o)
}

// finish refines a model by all of its inliers, with a loss that fits their noise.
func (p *pairing) finish(e epipolar, inliers []int32) (epipolar, []int32) {
	limit := p.o.Pixels * p.o.Pixels
	for range 2 {
		scale := 3 * max(leastNoise, p.medianSampson(&e.e, inliers))
		e = e.refined(p.list, inliers, p.known, 5, adjust.Cauchy(min(scale, p.o.Pixels)))
		inliers = inliers[:0]
		for i := range p.list {
			if sampson(&e.e, &p.list[i].a, &p.list[i].b) < limit {
				inliers = append(inliers, int32(i))
			}
		}
		if len(inliers) == 0 {
			break
		}
	}
	return e, inliers
}

func (p *pairing) medianSampson(e *matrix, inliers []int32) float64 {
	return p.median(inliers, func(c *couple) float64 { return math.Sqrt(sampson(e, &c.a, &c.b)) })
}

func (p *pairing) median(inliers []int32, f func(c *couple) float64) float64 {
	list := make([]float64, len(inliers))
	for k, i := range inliers {
		list[k] = f(&p.list[i])
	}
	return geom.Quantile(list, 0.5)
}

// setMatrices fills E and F.
func (p *pairing) setMatrices(e *epipolar, r *Relation) {
	r.E = essential(r.R, r.T)
	r.F = unit(geom.Product(geom.Transposed(p.nb), geom.Product(e.e, p.na)))
}

func unit(m matrix) matrix {
	s := 0.0
	for _, x := range m {
		s += x * x
	}
	for i := range m {
		m[i] /= math.Sqrt(s)
	}
	return m
}

// degenerate fills H, and the kind of pairs that are planar or rotations.
func (p *pairing) degenerate(e *epipolar, inliers []int32, r *Relation) {
	sub := &pairing{list: make([]couple, len(inliers)), o: p.o}
	for k, i := range inliers {
		sub.list[k] = p.list[i]
	}
	sub.o.MinInliers = max(p.o.MinInliers, int(math.Ceil(planarShare*float64(len(inliers)))))
	h, _, ok := sub.searchHomography()
	if !ok {
		return
	}
	r.H = unit(geom.Product(geom.Transposed(geom.InverseTransposed(p.nb)), geom.Product(h, p.na)))
	r.Kind = Planar
	if !p.known {
		return
	}
	turn, agree, ok := sub.searchRotation()
	if !ok {
		return
	}
	off := sub.median(agree, func(c *couple) float64 { return math.Sqrt(c.b.missed(geom.Rotate(turn.r, c.a.ray))) })
	if off < rotationFactor*max(leastNoise, sub.medianSampson(&e.e, agree)) {
		r.Kind, r.R, r.T = Rotation, turn.r, vec{}
	}
}

func (p *pairing) searchHomography() (h matrix, inliers []int32, ok bool) {
	s := search[matrix]{n: len(p.list), size: 4, purpose: forHomography,
		solve: func(sample []int32, out []matrix) []matrix { return fourPoint(p.list, sample, out) },
		miss:  func(m *matrix, i int32) float64 { return transfer(m, &p.list[i].a, &p.list[i].b) },
		improve: func(m matrix, inliers []int32) matrix {
			return refinedHomography(p.list, m, inliers, adjust.Cauchy(p.o.Pixels/4))
		}}
	return s.run(p.o)
}

func (p *pairing) searchRotation() (turn pose, inliers []int32, ok bool) {
	points, sights := make([]vec, len(p.list)), make([]Sight, len(p.list))
	for i := range p.list {
		points[i], sights[i] = p.list[i].a.ray, p.list[i].b
	}
	loss := adjust.Cauchy(p.o.Pixels / 4)
	s := search[pose]{n: len(p.list), size: 2, purpose: forRotation,
		solve: func(sample []int32, out []pose) []pose {
			i, j := sample[0], sample[1]
			r := geom.Product(frame(sights[i].ray, sights[j].ray), geom.Transposed(frame(points[i], points[j])))
			return append(out, pose{r: r})
		},
		miss: func(m *pose, i int32) float64 { return sights[i].missed(geom.Rotate(m.r, points[i])) },
		improve: func(m pose, inliers []int32) pose {
			return refinedPose(m, sights, points, inliers, 3, 5, loss)
		}}
	return s.run(p.o)
}

// frame has as columns right-handed axes of which the first is a's and the second is orthogonal to b.
func frame(a, b vec) matrix {
	a = geom.Scale(a, 1/geom.Length(a))
	c := geom.Cross(a, b)
	c = geom.Scale(c, 1/geom.Length(c))
	return fromColumns(a, c, geom.Cross(a, c))
}

// marked says whether matches are a watermark.
func marked(a, b View, matches [][2]int32, inliers []int32, pixels float64) bool {
	moves := [2][]float64{make([]float64, len(inliers)), make([]float64, len(inliers))}
	border := 0
	for k, i := range inliers {
		x, y := a.Points[matches[i][0]], b.Points[matches[i][1]]
		for axis := range moves {
			moves[axis][k] = float64(y[axis]) - float64(x[axis])
		}
		if atBorder(a.Optics, x) && atBorder(b.Optics, y) {
			border++
		}
	}
	enough := markShare * float64(len(inliers))
	if float64(border) < enough {
		return false
	}
	mx, my := geom.Quantile(append([]float64{}, moves[0]...), 0.5), geom.Quantile(append([]float64{}, moves[1]...), 0.5)
	alike := 0
	for k := range inliers {
		if math.Hypot(moves[0][k]-mx, moves[1][k]-my) < pixels {
			alike++
		}
	}
	return float64(alike) >= enough
}

func atBorder(o *scene.Optics, p [2]float32) bool {
	x, y := float64(p[0]), float64(p[1])
	return min(x, o.Width-x, y, o.Height-y) < borderShare*math.Hypot(o.Width, o.Height)
}
