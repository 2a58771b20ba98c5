package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// chunkSplats is the size of chunks in cases: no multiple of a workgroup, small enough that a few hundred splats fill
// several, and a multiple of 64 as all chunks are, so that parts of buffers begin where devices can bind them.
const chunkSplats = 320

func projectCases() []Case {
	sizes := []int{0, 1, pageSplats - 1, pageSplats, pageSplats + 1, 1000}
	return slices.Concat(casesOf("project", projectRows()), casesOf("project_mixed", projectRows(), inMixed),
		casesOf("project_lens", projectLensRows()), casesOf("project_lens_mixed", projectLensRows(), inMixed),
		[]Case{newCase("project_pages", "sizes", over(sizes, func(t *trial, n int) {
			eachOf([]int{0, 3},
				func(degree int) { checkProjectPages(t, t.splats(n, degree), t.camera(123, 83)) })
		}))})
}

func projectRows() table {
	modes := func(fisheye, antialiased bool) func(t *trial) {
		return over([]int{0, 1, 2, 3}, func(t *trial, degree int) {
			v := t.camera(123, 83)
			v.Fisheye, v.Antialiased, v.SHDegree = fisheye, antialiased, degree
			checkProject(t, t.splats(400, 3), v)
		})
	}
	return table{
		{"sizes", over([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
			func(t *trial, n int) { checkProject(t, t.splats(n, 0), t.camera(123, 83)) })},
		{"pinhole", modes(false, false)}, {"pinhole antialiased", modes(false, true)},
		{"fisheye", modes(true, false)}, {"fisheye antialiased", modes(true, true)},
		{"views of one pixel and of one tile", over([][2]int{{1, 1}, {16, 16}, {17, 1}},
			func(t *trial, s [2]int) { checkProject(t, t.splats(300, 1), t.camera(s[0], s[1])) })},
		{"near plane, behind, on the axis", over([]bool{false, true}, checkProjectPlaces)},
		{"poison", over([]int{0, 1, 2, 3}, func(t *trial, mode int) {
			v := t.camera(123, 83)
			v.Fisheye, v.Antialiased, v.SHDegree = mode&1 != 0, mode&2 != 0, 1
			checkProjectPoison(t, v)
		})},
		// begin sets N_ACTIVE to 0 after a failure; then nothing may be written.
		{"a failed unit sees nothing", func(t *trial) { runProject(t, t.splats(500, 0), t.camera(64, 48), 0) }},
	}
}

func runProject(t *trial, p *ref.Params[float32], v *ref.View[float32], active int) *ref.Projection[float32] {
	m := t.upload(ref.NewModel(p), chunkSplats, 1)
	n := len(m.chunks) * chunkSplats
	shapes, paints := out[[4]float32](t, 2*n), out[[4]float32](t, n)
	keys, lens, params := out[uint32](t, n), t.lensOf(v), in(t, paramsOf(v))
	counters := in(t, junkCounters(counts{layout.NActive: uint32(active)})...)
	m.dispatch(128, func(id uint32, chunk vk.Slice[float32]) vk.Pass {
		first := int(id)
		pass := shaders.Project{Params: params, Counters: counters, Chunk: chunk, DepthKeys: keys.At(first,
			chunkSplats), Mixed: m.Mixed, Shapes: shapes.At(2*first, 2*chunkSplats), Paints: paints.At(first,
			chunkSplats), Push: shaders.ProjectPush{FirstId: id, ChunkSplats: chunkSplats}}
		if v.Lens == nil {
			return &pass
		}
		return vk.Derive(&pass, func(p *shaders.ProjectLens) { p.Lens, p.Spec.Shutter = lens, v.Motion != nil })
	})
	t.run()
	m.untouched()
	return projectionOf(head(t, shapes, 2*active), head(t, paints, active), head(t, keys, active))
}

func checkProject(t *trial, p *ref.Params[float32], v *ref.View[float32]) {
	compareProjection(runProject(t, p, v, p.N), p, v)
}

// compareProjection judges by the reference in float64.
func compareProjection(out *ref.Projection[float32], p *ref.Params[float32], v *ref.View[float32]) {
	want := ref.Project(ref.ConvertParams[float64](p), ref.ConvertView[float64](v))
	for i := range p.N {
		switch seen := want.Visible(i); {
		case seen == (out.DepthKeys[i] != layout.Culled):
			if seen {
				during(fmt.Sprint("splat ", i), func() { compareSplat(out, want, i) })
			}
		case !onThreshold(p, v, i):
			failf("binding depth_keys: [%d]: got %#x, want %#x: one is culled, the other is not", i, out.DepthKeys[i],
				want.DepthKeys[i])
		}
	}
}

// compareSplat compares one visible splat. The tolerances are float32's rounding, magnified by the projection's own
// steps: a point of size 10 at depth 1 loses 2^-20 of its depth, sums of squares of a few of these reach the
// covariance, and its inverse.
func compareSplat(out *ref.Projection[float32], want *ref.Projection[float64], i int) {
	s, w := out.Splats[i], want.Splats[i]
	cross := 1e-4 * math.Sqrt(w.Conic[0]*w.Conic[2]) // the mixed term cancels
	near("depth_keys", []float32{math.Float32frombits(out.DepthKeys[i])},
		[]float32{math.Float32frombits(want.DepthKeys[i])}, 2e-6, 2e-6)
	near("shapes.mean2d", s.Mean2D[:], w.Mean2D[:], 1e-3, 1e-5)
	near("shapes.conic", s.Conic[:], w.Conic[:], cross, 1e-4)
	near("paints.opacity", []float32{s.Opacity}, []float64{w.Opacity}, 1e-6, 1e-4)
	near("paints.color", s.Color[:], w.Color[:], 2e-5, 1e-5)
	near("shapes.extents", out.Extents[i][:], want.Extents[i][:], 2e-3, 1e-3)
}

// onThreshold reports whether splat i is so near to a culling threshold that rounding decides.
func onThreshold(p *ref.Params[float32], v *ref.View[float32], i int) bool {
	one := func(change func(*ref.Params[float64], *ref.View[float64])) bool {
		q := ref.NewParams[float64](1, p.Degree)
		for r := range ref.ParamRows(p.Degree) {
			*q.At(r, 0) = float64(*p.At(r, i))
		}
		w := ref.ConvertView[float64](v)
		change(q, w)
		return ref.Project(q, w).Visible(0)
	}
	seen := one(func(*ref.Params[float64], *ref.View[float64]) {})
	for _, s := range []float64{-1, 1} {
		if seen != one(func(q *ref.Params[float64], _ *ref.View[float64]) { q.LogitOpacities[0] += s * 1e-3 }) ||
			seen != one(func(_ *ref.Params[float64], w *ref.View[float64]) { w.Near *= 1 + s*1e-4 }) ||
			seen != one(func(_ *ref.Params[float64], w *ref.View[float64]) { w.Cx += s * 0.02 }) ||
			seen != one(func(_ *ref.Params[float64], w *ref.View[float64]) { w.Cy += s * 0.02 }) ||
			v.Lens != nil &&
				seen != one(func(_ *ref.Params[float64], w *ref.View[float64]) { w.Lens.Limit *= 1 + s*1e-4 }) {
			return true
		}
	}
	return false
}

// checkProjectPlaces puts splats where projections are delicate.
func checkProjectPlaces(t *trial, fisheye bool) {
	v := t.camera(64, 48)
	v.R, v.T, v.Fisheye = [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float32{}, fisheye
	var places [][3]float32
	for _, z := range []float32{-5, -0.01, 0, 0.005, 0.01, 0.010001, 0.02, 1, 50, 1e4} {
		for _, x := range []float32{0, 1e-6, 0.01, 0.3, 1, 3} {
			places = append(places, [3]float32{x * z, -x * z, z}, [3]float32{x, 0, z})
		}
	}
	checkProject(t, t.splatsAt(places, func(at [3]float32) float64 {
		return math.Log(0.02*math.Abs(float64(at[2])) + 1e-4)
	}), v)
}

// splatsAt are splats at some places, each with a log scale.
func (t source) splatsAt(places [][3]float32, logScale func(at [3]float32) float64) *ref.Params[float32] {
	p := t.splats(len(places), 0)
	for i, at := range places {
		copy(p.Means[3*i:], at[:])
		for k := range 3 {
			p.LogScales[3*i+k] = float32(logScale(at))
		}
	}
	return p
}

// checkProjectPoison puts each bad number into each parameter row: what is not a number is culled, and nothing visible
// is infinite or NaN. A row that is not drawn may hold anything.
func checkProjectPoison(t *trial, v *ref.View[float32]) {
	const degree = 1
	p := t.splats(ref.ParamRows(degree)*len(bad), degree)
	for i := range p.N {
		p.LogitOpacities[i] = 2
		copy(p.Means[3*i:3*i+3], []float32{0, 0, 0})
		*p.At(i/len(bad), i) = bad[i%len(bad)]
	}
	is := runProject(t, p, v, p.N)
	for i, key := range is.DepthKeys {
		row, x := i/len(bad), bad[i%len(bad)]
		if key == layout.Culled {
			continue
		}
		// An infinite opacity is 1, an infinitely small axis is flat; every other infinity is nowhere.
		axis := row >= layout.RowLogScales && row < layout.RowLogitOpacities
		legal := row == layout.RowLogitOpacities && x > 0 || axis && x < 0
		if layout.Drawn(row) && (isNaN(x) || isInf(x) && !legal) {
			failf("binding depth_keys: [%d]: got %#x, want %#x: it is not culled for %g in parameter row %d", i, key,
				uint32(layout.Culled), x, row)
		}
		during(fmt.Sprintf("splat %d with %g in parameter row %d", i, x, row), func() {
			areFinite("shapes, paints", append(floatsOf(is.Splats[i:i+1]), is.Extents[i][:]...))
		})
	}
}

// pageSplats is how many splats a page of project_pages has.
const pageSplats = 128

// checkProjectPages puts every other page of splats into each of two buffers, from the last to the first, with pages
// between them that are not listed.
func checkProjectPages(t *trial, p *ref.Params[float32], v *ref.View[float32]) {
	n, words := blocksOf(p.N, pageSplats), ref.ParamRows(p.Degree)*pageSplats
	each := n + 2 // pages of a buffer
	data := [2][]float32{make([]float32, each*words), make([]float32, each*words)}
	list := make([]uint32, max(n, 1))
	for k := range n {
		page := each - 1 - k
		list[k] = uint32(k%2*each + page)
		for at := range words {
			if id := k*pageSplats + at%pageSplats; id < p.N {
				data[k%2][page*words+at] = *p.At(at/pageSplats, id)
			}
		}
	}
	all := n * pageSplats
	shapes, paints, keys := out[[4]float32](t, 2*all), out[[4]float32](t, all), out[uint32](t, all)
	params, pages := in(t, paramsOf(v)), in(t, list...)
	counters := in(t, junkCounters(counts{layout.NActive: uint32(all)})...)
	for i := range data {
		t.dispatch(&shaders.ProjectPages{Params: params, Counters: counters, PageList: pages, Chunk: in(t, data[i]...),
			Shapes: shapes, Paints: paints, DepthKeys: keys, Push: shaders.ProjectPagesPush{FirstPage: uint32(i * each),
				NPages: uint32(each), PageWords: uint32(words), ChunkSplats: pageSplats}}, vk.Groups(n+3))
	}
	t.run()
	same("depth_keys (no splats)", got(t, keys)[p.N:], slices.Repeat([]uint32{layout.Culled}, all-p.N)) // zeros
	compareProjection(projectionOf(got(t, shapes), got(t, paints), got(t, keys)), p, v)
}

// numLenses is how many kinds of lenses bend makes.
const numLenses = 6

// bend gives the view the lens of a number: a camera's of OpenCV, a rational one, a fisheye's, thin prisms both ways,
// and one that sees behind the camera. The last three are fisheyes.
func (t source) bend(v *ref.View[float32], number int) *ref.View[float32] {
	l := &ref.Lens[float32]{Lo: [2]float32{-0.7, -0.6}, Hi: [2]float32{0.65, 0.55}, Margin: [2]float32{0.2, 0.17},
		Limit: 1.1}
	switch number {
	case 0:
		l.Num, l.P1, l.P2 = [6]float32{-0.2, 0.08}, 0.01, -0.02
	case 1:
		l.Num, l.Den, l.P1, l.P2, l.Skew = [6]float32{0.4, 0.1, 0.02}, [3]float32{0.6, 0.2, 0.01}, -0.02, 0.01, 0.03
	case 2:
		l.Num = [6]float32{0.05, -0.03, 0.02, -0.004, 0.001, -0.0001}
	case 3:
		l.Num, l.PrismX, l.PrismY = [6]float32{-0.1, 0.02}, [2]float32{0.02, -0.01}, [2]float32{-0.03, 0.02}
	case 4:
		l.Num, l.P1, l.P2, l.After = [6]float32{-0.1, 0.02}, 0.02, 0.01, true
		l.PrismX, l.PrismY = [2]float32{0.02, -0.01}, [2]float32{-0.03, 0.02}
	case 5:
		l.Lo, l.Hi = [2]float32{-1.8, -1.7}, [2]float32{1.7, 1.8}
		l.Num, l.Limit, l.Wide = [6]float32{-0.02, 0.001}, 2, true
		v.Fx, v.Fy, v.T = 0.3*v.Fx, 0.3*v.Fy, [3]float32{0.1, -0.2, 1.2}
	}
	v.Lens, v.Fisheye = l, number >= 3
	return v
}

// move has the view's camera move while its rows are read out, more than a phone does.
func (t source) move(v *ref.View[float32]) *ref.View[float32] {
	v.Motion = &ref.Motion[float32]{}
	for k := range 3 {
		v.Motion.Turn[k], v.Motion.Move[k] = float32(0.05*t.NormFloat64()), float32(0.1*t.NormFloat64())
	}
	return v
}

func projectLensRows() table {
	check := checkProject
	return table{
		{"sizes", over([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
			func(t *trial, n int) { check(t, t.splats(n, 0), t.bend(t.camera(123, 83), 0)) })},
		{"lenses", func(t *trial) { eachLens(t, func(v *ref.View[float32]) { check(t, t.splats(400, 3), v) }) }},
		{"at a fold", func(t *trial) { eachFold(t, check) }},
		{"near, all round", over([]int{0, 1, 2, 3}, checkNearLens)},
		{"rolling shutter", func(t *trial) {
			eachLens(t, func(v *ref.View[float32]) { check(t, t.splats(400, 3), t.move(v)) })
		}},
		{"poison", over(indices(8), func(t *trial, mode int) {
			v := t.camera(123, 83)
			v.Antialiased, v.SHDegree = mode&1 != 0, 1
			if v = t.bend(v, 1+mode%4); mode >= 4 {
				v = t.move(v)
			}
			checkProjectPoison(t, v)
		})},
		{"a failed unit sees nothing",
			func(t *trial) { runProject(t, t.splats(500, 0), t.bend(t.camera(64, 48), 0), 0) }},
	}
}

// eachLens calls f for each lens, plain and antialiased, with SH degrees up to 3.
func eachLens(t *trial, f func(v *ref.View[float32])) {
	eachOf(indices(2*numLenses), func(i int) {
		v := t.bend(t.camera(123, 83), i%numLenses)
		v.Antialiased, v.SHDegree = i >= numLenses, i%4
		f(v)
	})
}

// eachFold calls f with splats at the radius where a lens folds its picture, and just inside: the Jacobian has no
// inverse there.
func eachFold(t *trial, f func(t *trial, p *ref.Params[float32], v *ref.View[float32])) {
	const k = -0.3
	fold := math.Sqrt(-1 / (3 * k)) // where the derivative of r + k r^3 is 0
	inside := []float64{0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2}
	const directions = 8
	eachOf([]bool{false, true}, func(fisheye bool) {
		v := t.camera(123, 83)
		v.R, v.T, v.Fisheye = [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float32{}, fisheye
		v.Fx, v.Fy = 40, 35
		v.Lens = &ref.Lens[float32]{Num: [6]float32{k}, Lo: [2]float32{-1.2, -1.2}, Hi: [2]float32{1.2, 1.2},
			Margin: [2]float32{0.3, 0.3}, Limit: float32(fold)}
		p := t.splats(directions*len(inside), 0)
		for i := range p.N {
			sin, cos := math.Sincos(2 * math.Pi * float64(i%directions) / directions)
			r := fold * (1 - inside[i/directions])
			side, z := 4*r, 4.0
			if fisheye {
				side, z = 4*math.Sin(r), 4*math.Cos(r)
			}
			copy(p.Means[3*i:], []float32{float32(side * cos), float32(side * sin), float32(z)})
		}
		f(t, p, v)
	})
}

// checkNearLens puts splats about as far away as the nearest that are seen, at angles up to those that lie behind the
// camera.
func checkNearLens(t *trial, mode int) {
	v := t.bend(t.camera(123, 83), 5)
	v.R, v.T, v.Near = [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float32{}, 0.1
	if v.Lens.Wide = mode&1 != 0; mode&2 != 0 {
		v = t.move(v)
		v.Motion.Move = [3]float32{0.01, -0.005, 0.008}
	}
	var places [][3]float32
	for _, angle := range []float64{0, 45, 80, 84, 87, 87.5, 87.9, 88.1, 89, 91, 95, 110} {
		sin, cos := math.Sincos(angle * math.Pi / 180)
		for _, distance := range []float64{0.05, 0.099, 0.101, 0.2, 1, 3} {
			places = append(places, [3]float32{float32(distance * sin), 0, float32(distance * cos)})
		}
	}
	checkProject(t, t.splatsAt(places, func([3]float32) float64 { return -6 }), v)
}

func (t *trial) lensOf(v *ref.View[float32]) vk.Slice[layout.Lens] { return in(t, lensParams(v)) }

// lensParams is what kernels know of a view's lens.
func lensParams(v *ref.View[float32]) (l layout.Lens) {
	d := v.Lens
	if d == nil {
		return l
	}
	l = layout.Lens{Num: d.Num, Den: d.Den, P1: d.P1, P2: d.P2, Prism: [2]float32{d.PrismX[0], d.PrismY[0]},
		Prism4: [2]float32{d.PrismX[1], d.PrismY[1]}, Skew: d.Skew, Limit2: d.Limit * d.Limit, Lo: d.Lo, Hi: d.Hi,
		Margin: d.Margin, Flags: layout.LensAfter*layout.Bit(d.After) | layout.LensWide*layout.Bit(d.Wide)}
	if m := v.Motion; m != nil {
		l.Turn, l.Move = m.Turn, m.Move
	}
	for k := range d.Lo {
		l.Radius += max(d.Lo[k]*d.Lo[k], d.Hi[k]*d.Hi[k])
	}
	l.Radius = float32(math.Sqrt(float64(l.Radius)))
	return l
}
