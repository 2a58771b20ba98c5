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
	// b' F a = 0 of pixels (x, y, 1) as if the lenses had no distortion, of rays in panoramas; of length 1
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
	// A pair is a rotation where the median distance from one is below rotationFactor times that from the epipolar
	// lines. Noise alone makes it 2.5 times, as the former has twice two noisy coordinates, and the latter is one of
	// them.
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
	if p.o = o.filled(4, 2000); !p.known {
		p.o = o.filled(4, 4000)
		a.Optics, b.Optics = pinhole(a.Optics), pinhole(b.Optics)
	}
	p.na, p.nb = toPlane(a.Optics), toPlane(b.Optics)
	for _, i := range philox.ViewOrder(o.Key, 0, len(matches)) {
		x, y := a.Points[matches[i][0]], b.Points[matches[i][1]]
		ca, okA := Look(a.Optics, float64(x[0]), float64(x[1]))
		cb, okB := Look(b.Optics, float64(y[0]), float64(y[1]))
		if okA && okB {
			p.list, p.places = append(p.list, couple{ca, cb}), append(p.places, int32(i))
		}
	}
	return p
}

// Relate finds the geometry of two photos from matches, pairs of places in their keypoints: by 5 points if both focal
// lengths are known, and by 7 otherwise.
func Relate(a, b View, matches [][2]int32, o Options) (r Relation) {
	p := newPairing(a, b, matches, o)
	s := p.searchEpipolar()
	first, inliers, ok := s.run(p.o)
	if !ok {
		return r
	}
	best, ok := factorised(&first, p.known)
	if !ok {
		return r
	}
	best, inliers = p.finish(s, best, inliers)
	agree := inliers
	r.Kind = Uncalibrated
	if p.known {
		r.Kind = Calibrated
		inliers = p.decompose(&best, inliers, &r)
	}
	if len(inliers) < p.o.MinInliers {
		return Relation{}
	}
	if p.degenerate(&best, inliers, &r); r.Kind == Planar && p.known {
		best, inliers = p.planar(s, best, agree, &r)
	}
	r.E, r.F = essential(r.R, r.T), p.inPixels(&best.e)
	for _, i := range inliers {
		r.Inliers = append(r.Inliers, p.places[i])
	}
	slices.Sort(r.Inliers)
	if marked(a, b, matches, r.Inliers, p.o.Pixels) {
		r.Kind = Watermark
	}
	return r
}

func (p *pairing) searchEpipolar() *search[matrix] {
	loss := adjust.Cauchy(p.o.Pixels / 4)
	s := &search[matrix]{n: len(p.list), size: 7, purpose: forEpipolar}
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
	return s
}

// finish refines a model by all of its inliers, twice, and finds them again.
func (p *pairing) finish(s *search[matrix], e epipolar, inliers []int32) (epipolar, []int32) {
	for range 2 {
		e = p.refine(e, inliers, 5)
		inliers = s.inliers(&e.e, p.o.limit(), inliers[:0])
	}
	return e, inliers
}

// refine takes steps with a loss that fits the noise of the inliers.
func (p *pairing) refine(e epipolar, inliers []int32, steps int) epipolar {
	if len(inliers) == 0 {
		return e
	}
	scale := 3 * max(leastNoise, p.medianSampson(&e.e, inliers))
	return e.refined(p.list, inliers, p.known, steps, adjust.Cauchy(min(scale, p.o.Pixels)))
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

// inPixels returns F of pixels.
func (p *pairing) inPixels(e *matrix) matrix {
	return normalised(geom.Product(geom.Transposed(p.nb), geom.Product(*e, p.na)))
}

// degenerate fills H, and the kind of pairs that are planar or rotations.
func (p *pairing) degenerate(e *epipolar, inliers []int32, r *Relation) {
	sub := &pairing{list: make([]couple, len(inliers)), o: p.o}
	for k, i := range inliers {
		sub.list[k] = p.list[i]
	}
	sub.o.MinInliers = max(p.o.MinInliers, int(math.Ceil(planarShare*float64(len(inliers)))))
	loss := adjust.Cauchy(p.o.Pixels / 4)
	s := search[matrix]{n: len(sub.list), size: 4, purpose: forHomography}
	s.solve = func(sample []int32, out []matrix) []matrix { return fourPoint(sub.list, sample, out) }
	s.miss = func(m *matrix, i int32) float64 { return transfer(m, &sub.list[i].a, &sub.list[i].b) }
	s.improve = func(m matrix, inliers []int32) matrix { return refinedHomography(sub.list, m, inliers, loss) }
	h, agree, ok := s.run(sub.o)
	if !ok {
		return
	}
	r.H = normalised(geom.Product(geom.Transposed(geom.InverseTransposed(p.nb)), geom.Product(h, p.na)))
	r.Kind = Planar
	if !p.known {
		return
	}
	rotation, _, _, err := geom.NearestRotation(h)
	if err != nil {
		return
	}
	points, sights := make([]vec, len(sub.list)), make([]Sight, len(sub.list))
	for i := range sub.list {
		points[i], sights[i] = sub.list[i].a.ray, sub.list[i].b
	}
	turn := refinedPose(pose{r: rotation}, sights, points, agree, 3, 5, loss)
	off := sub.median(agree, func(c *couple) float64 { return math.Sqrt(c.b.missed(geom.Rotate(turn.r, c.a.ray))) })
	if off < rotationFactor*max(leastNoise, sub.medianSampson(&e.e, agree)) {
		r.Kind, r.R, r.T = Rotation, turn.r, vec{}
	}
}

// marked says whether matches are a watermark.
func marked(a, b View, matches [][2]int32, inliers []int32, pixels float64) bool {
	var moves [2][]float64
	border, alike := 0, 0
	for _, i := range inliers {
		x, y := a.Points[matches[i][0]], b.Points[matches[i][1]]
		for axis := range moves {
			moves[axis] = append(moves[axis], float64(y[axis])-float64(x[axis]))
		}
		if atBorder(a.Optics, x) && atBorder(b.Optics, y) {
			border++
		}
	}
	mx, my := geom.Quantile(slices.Clone(moves[0]), 0.5), geom.Quantile(slices.Clone(moves[1]), 0.5)
	for k := range inliers {
		if math.Hypot(moves[0][k]-mx, moves[1][k]-my) < pixels {
			alike++
		}
	}
	return float64(min(border, alike)) >= markShare*float64(len(inliers))
}

func atBorder(o *scene.Optics, p [2]float32) bool {
	x, y := float64(p[0]), float64(p[1])
	return min(x, o.Width-x, y, o.Height-y) < borderShare*math.Hypot(o.Width, o.Height)
}
