package twoview

import (
	"context"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/adjust"
)

// Location is where a photo was taken.
type Location struct {
	Pose        adjust.Pose
	Calibration scene.Calibration // as given, or with the focal length that fits
	Inliers     []int32           // ascending places in pixels and points
}

// Locate finds the pose of a photo by points that it shows at pixels: by three of them, then by least squares over the
// inliers with Cauchy's loss, which also adjust the focal length unless it is known. A wrong focal length is found if
// points agree within Options.Pixels for the given one. ok is false if too few agree or the calibration is none.
func Locate(k scene.Calibration, focalKnown bool, pixels [][2]float32, points [][3]float64, o Options) (l Location,
	ok bool) {
	optics, err := k.Optics(k.Width, k.Height)
	if err != nil {
		return l, false
	}
	var sights []Sight
	var at []vec
	var places []int32
	for _, i := range philox.ViewOrder(o.Key, 0, len(pixels)) {
		if s, ok := Look(optics, float64(pixels[i][0]), float64(pixels[i][1])); ok {
			sights, at, places = append(sights, s), append(at, points[i]), append(places, int32(i))
		}
	}
	o = o.filled(12, 2000)
	s := search[pose]{n: len(sights), size: 3, purpose: forPose}
	s.solve = func(sample []int32, out []pose) []pose { return threePoint(sights, at, sample, out) }
	s.miss = func(m *pose, i int32) float64 { return sights[i].missed(m.apply(at[i])) }
	s.improve = func(m pose, inliers []int32) pose {
		return refinedPose(m, sights, at, inliers, 6, 5, adjust.Cauchy(o.Pixels/4))
	}
	best, inliers, ok := s.run(o)
	if !ok {
		return l, false
	}
	for i, at := range inliers {
		inliers[i] = places[at]
	}
	slices.Sort(inliers)
	l = Location{Pose: adjust.Pose{R: best.r, T: best.t}, Calibration: k, Inliers: inliers}
	if l.adjust(focalKnown, pixels, points, o) != nil {
		return l, false
	}
	return l, len(l.Inliers) >= o.MinInliers
}

// adjust refines the pose by the inliers, and finds these again.
func (l *Location) adjust(focalKnown bool, pixels [][2]float32, points [][3]float64, o Options) error {
	p := adjust.Problem{Lenses: []adjust.Lens{{Calibration: l.Calibration}}, Poses: []adjust.Pose{l.Pose},
		Points: points, PointsFixed: true}
	p.Lenses[0].Params = slices.Clone(l.Calibration.Params)
	info, _ := l.Calibration.Model.Info()
	for i := range info.Focals {
		p.Lenses[0].Free[i] = !focalKnown
	}
	seen := func(i int32) adjust.Observation {
		return adjust.Observation{Point: i, X: float64(pixels[i][0]), Y: float64(pixels[i][1])}
	}
	for _, i := range l.Inliers {
		p.Observations = append(p.Observations, seen(i))
	}
	loss := adjust.Cauchy(o.Pixels / 8)
	if _, err := adjust.Solve(context.Background(), &p, adjust.Options{Loss: loss}); err != nil { // of milliseconds
		return err
	}
	p.Observations = nil
	for i := range pixels {
		p.Observations = append(p.Observations, seen(int32(i)))
	}
	off, err := p.Residuals()
	l.Pose, l.Calibration.Params, l.Inliers = p.Poses[0], p.Lenses[0].Params, nil
	for i, d := range off {
		if math.Hypot(d[0], d[1]) < o.Pixels {
			l.Inliers = append(l.Inliers, int32(i))
		}
	}
	return err
}

// threePoint appends the poses, at most 4, from which three points are seen along three rays: depths are common points
// of two conics, which are found on the two lines of the degenerate conic of their pencil (Persson, Nordberg: Lambda
// Twist, ECCV 2018). They are exact to about 1e-9 pixels.
func threePoint(sights []Sight, points []vec, sample []int32, out []pose) []pose {
	var x, y [3]vec
	for k, i := range sample {
		x[k], y[k] = points[i], unit(sights[i].ray)
	}
	// depths' form depths is the squared distance of two points
	var forms [3]matrix
	var squared [3]float64
	for k, pair := range [3][2]int{{0, 1}, {0, 2}, {1, 2}} {
		i, j := pair[0], pair[1]
		f, d := &forms[k], geom.Sub(x[i], x[j])
		f[4*i], f[4*j], f[3*i+j] = 1, 1, -geom.Dot(y[i], y[j])
		f[3*j+i], squared[k] = f[3*i+j], geom.Dot(d, d)
	}
	var conics [2]matrix
	for k := range conics {
		for i := range 9 {
			conics[k][i] = (squared[2]*forms[k][i] - squared[k]*forms[2][i]) / (squared[0] + squared[1] + squared[2])
		}
	}
	lines, other, ok := degenerateConic(&conics)
	if !ok {
		return out
	}
	for _, n := range lines {
		for _, depth := range onLine(n, other) {
			if depth[0] < 0 {
				depth = geom.Scale(depth, -1)
			}
			sum := 0.0
			for _, f := range forms {
				sum += geom.Dot(depth, geom.Rotate(f, depth))
			}
			depth = geom.Scale(depth, math.Sqrt((squared[0]+squared[1]+squared[2])/sum))
			if !(min(depth[0], depth[1], depth[2]) > 0) {
				continue
			}
			var z [3]vec
			for i := range z {
				z[i] = geom.Scale(y[i], depth[i])
			}
			r := geom.Product(frame(geom.Sub(z[1], z[0]), geom.Sub(z[2], z[0])),
				geom.Transposed(frame(geom.Sub(x[1], x[0]), geom.Sub(x[2], x[0]))))
			p := pose{r, geom.Sub(z[0], geom.Rotate(r, x[0]))}
			worst := 0.0
			for _, i := range sample {
				worst = max(worst, sights[i].missed(p.apply(points[i])))
			}
			if worst > 1e-18 && worst < infinite {
				p = refinedPose(p, sights, points, sample, 6, 3, squares)
			}
			out = append(out, p)
		}
	}
	return out
}

// degenerateConic returns the lines of the conic of a pencil that is two lines, and the one of both conics that is less
// like it.
func degenerateConic(conics *[2]matrix) (lines [2]vec, other *matrix, ok bool) {
	p := determinant(&conics[0], &conics[1])
	var roots [2 * maxDegree]float64
	most := 0.0
	for _, b := range p.realRoots(3, roots[:0]) {
		a, less := 1.0, 1
		if math.Abs(b) > 1 {
			a, b, less = 1/b, 1, 0
		}
		var m matrix
		for i := range m {
			m[i] = a*conics[0][i] + b*conics[1][i]
		}
		values, vectors := eigen(m)
		if size := -values[0] * values[2]; size > most { // lines are real
			most, other, ok = size, &conics[less], true
			u, v := geom.Scale(vectors[0], math.Sqrt(values[0])), geom.Scale(vectors[2], math.Sqrt(-values[2]))
			lines = [2]vec{geom.Add(u, v), geom.Sub(u, v)}
		}
	}
	return lines, other, ok
}

// onLine returns the points of a line, in homogeneous coordinates, that are on a conic: none or two.
func onLine(n vec, conic *matrix) []vec {
	beside := vec{1, 0, 0}
	if math.Abs(n[0]) > geom.Length(n)/2 {
		beside = vec{0, 1, 0}
	}
	r := frame(n, beside)
	p, q := vec{r[1], r[4], r[7]}, vec{r[2], r[5], r[8]}
	cp, cq := geom.Rotate(*conic, p), geom.Rotate(*conic, q)
	a, b, c := geom.Dot(p, cp), geom.Dot(p, cq), geom.Dot(q, cq)
	d := b*b - a*c
	if d < -1e-9*(b*b+math.Abs(a*c)) {
		return nil
	}
	w := -b - math.Copysign(math.Sqrt(max(d, 0)), b)
	return []vec{geom.Add(geom.Scale(p, w), geom.Scale(q, a)), geom.Add(geom.Scale(p, c), geom.Scale(q, w))}
}
