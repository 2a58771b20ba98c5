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
	return slices.Concat(projectCasesOf("project", newCase), projectCasesOf("project_mixed", mixedCase), []Case{
		newCase("project_pages", "sizes", func(t *trial) error {
			return each([]int{0, 1, pageSplats - 1, pageSplats, pageSplats + 1, 1000}, func(n int) error {
				return each([]int{0, 3}, func(degree int) error {
					return checkProjectPages(t, t.splats(n, degree), t.camera(123, 83))
				})
			})
		}),
	})
}

// projectCasesOf are the cases of one precision.
func projectCasesOf(kernel string, newCase func(kernel, name string, run func(t *trial) error) Case) []Case {
	modes := func(fisheye, antialiased bool) func(t *trial) error {
		return func(t *trial) error {
			return each([]int{0, 1, 2, 3}, func(degree int) error {
				v := t.camera(123, 83)
				v.Fisheye, v.Antialiased, v.SHDegree = fisheye, antialiased, degree
				return checkProject(t, t.splats(400, 3), v)
			})
		}
	}
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
				func(n int) error {
					return checkProject(t, t.splats(n, 0), t.camera(123, 83))
				})
		}),
		newCase(kernel, "pinhole", modes(false, false)), newCase(kernel, "pinhole antialiased", modes(false, true)),
		newCase(kernel, "fisheye", modes(true, false)), newCase(kernel, "fisheye antialiased", modes(true, true)),
		newCase(kernel, "views of one pixel and of one tile", func(t *trial) error {
			return each([][2]int{{1, 1}, {16, 16}, {17, 1}},
				func(s [2]int) error { return checkProject(t, t.splats(300, 1), t.camera(s[0], s[1])) })
		}),
		newCase(kernel, "near plane, behind, on the axis", checkProjectPlaces),
		newCase(kernel, "poison", checkProjectPoison),
		newCase(kernel, "a failed unit sees nothing", checkProjectFailed),
	}
}

// runProject projects p in chunks, with active splats in the counters.
func runProject(t *trial, p *ref.Params[float32], v *ref.View[float32], active int) (*ref.Projection[float32], error) {
	l := t.list()
	n := max(1, blocksOf(p.N, chunkSplats)) * chunkSplats
	shapes, paints, keys := output[[4]float32](l, "shapes", 2*n), output[[4]float32](l, "paints", n),
		output[uint32](l, "depth_keys", n)
	params := input(l, "params", []layout.StepParams{paramsOf(v)})
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(active)}))
	m := l.upload(ref.NewModel(p), chunkSplats, n/chunkSplats)
	for i, chunk := range m.chunks {
		first := i * chunkSplats
		pass := shaders.Project{
			Params: params, Counters: counters, Chunk: chunk.Slice, DepthKeys: keys.At(first, chunkSplats),
			Mixed:  m.mixed,
			Shapes: shapes.At(2*first, 2*chunkSplats), Paints: paints.At(first, chunkSplats),
			Push: shaders.ProjectPush{FirstId: uint32(first), ChunkSplats: chunkSplats},
		}
		if v.Lens == nil {
			l.r.Dispatch(&pass, vk.Items(chunkSplats, 128))
		} else {
			l.projectLens(&pass, v)
		}
	}
	if err := l.run(); err != nil {
		return nil, err
	}
	a, errA := shapes.written(2 * active)
	b, errB := paints.written(active)
	c, errC := keys.written(active)
	return projectionOf(a, b, c), first(errA, errB, errC, m.untouched())
}

func checkProject(t *trial, p *ref.Params[float32], v *ref.View[float32]) error {
	out, err := runProject(t, p, v, p.N)
	if err != nil {
		return err
	}
	return compareProjection(out, p, v)
}

// compareProjection judges by the reference in float64.
func compareProjection(out *ref.Projection[float32], p *ref.Params[float32], v *ref.View[float32]) error {
	want := ref.Project(ref.ConvertParams[float64](p), ref.ConvertView[float64](v))
	for i := range p.N {
		if (out.DepthKeys[i] != layout.Culled) != want.Visible(i) {
			if onThreshold(p, v, i) {
				continue
			}
			return fmt.Errorf("binding depth_keys: [%d]: got %#x, want %#x: one is culled, the other is not", i,
				out.DepthKeys[i], want.DepthKeys[i])
		}
		if !want.Visible(i) {
			continue
		}
		if err := compareSplat(out, want, i); err != nil {
			return fmt.Errorf("splat %d: %w", i, err)
		}
	}
	return nil
}

// compareSplat compares one visible splat. The tolerances are float32's rounding, magnified by the projection's own
// steps: a point of size 10 at depth 1 loses 2^-20 of its depth, sums of squares of a few of these reach the
// covariance, and its inverse.
func compareSplat(out *ref.Projection[float32], want *ref.Projection[float64], i int) error {
	got, w := out.Splats[i], want.Splats[i]
	e := want.Extents[i]
	cross := 1e-4 * math.Sqrt(w.Conic[0]*w.Conic[2]) // the mixed term cancels
	return first(
		closeTo("depth_keys", []float32{math.Float32frombits(out.DepthKeys[i])},
			[]float64{float64(math.Float32frombits(want.DepthKeys[i]))}, 2e-6, 2e-6),
		closeTo("shapes.mean2d", got.Mean2D[:], w.Mean2D[:], 1e-3, 1e-5),
		closeTo("shapes.conic", got.Conic[:], w.Conic[:], cross, 1e-4),
		closeTo("paints.opacity", []float32{got.Opacity}, []float64{w.Opacity}, 1e-6, 1e-4),
		closeTo("paints.color", got.Color[:], w.Color[:], 2e-5, 1e-5),
		closeTo("shapes.extents", out.Extents[i][:], e[:], 2e-3, 1e-3),
	)
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
func checkProjectPlaces(t *trial) error {
	return each([]bool{false, true}, func(fisheye bool) error {
		v := t.camera(64, 48)
		v.R, v.T, v.Fisheye = [9]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float32{}, fisheye
		var places [][3]float32
		for _, z := range []float32{-5, -0.01, 0, 0.005, 0.01, 0.010001, 0.02, 1, 50, 1e4} {
			for _, x := range []float32{0, 1e-6, 0.01, 0.3, 1, 3} {
				places = append(places, [3]float32{x * z, -x * z, z}, [3]float32{x, 0, z})
			}
		}
		p := t.splats(len(places), 0)
		for i, place := range places {
			copy(p.Means[3*i:], place[:])
			for k := range 3 {
				p.LogScales[3*i+k] = float32(math.Log(0.02*math.Abs(float64(place[2])) + 1e-4))
			}
		}
		return checkProject(t, p, v)
	})
}

// checkProjectPoison puts each bad number into each parameter row: what is not a number is culled, and nothing visible
// is infinite or NaN. A row that is not drawn may hold anything.
func checkProjectPoison(t *trial) error {
	return each([]int{0, 1, 2, 3}, func(mode int) error {
		v := t.camera(123, 83)
		v.Fisheye, v.Antialiased, v.SHDegree = mode&1 != 0, mode&2 != 0, 1
		return checkProjectPoisonIn(t, v)
	})
}

func checkProjectPoisonIn(t *trial, v *ref.View[float32]) error {
	const degree = 1
	rows := ref.ParamRows(degree)
	p := t.splats(rows*len(bad), degree)
	for i := range p.N {
		p.LogitOpacities[i] = 2
		copy(p.Means[3*i:3*i+3], []float32{0, 0, 0})
		*p.At(i/len(bad), i) = bad[i%len(bad)]
	}
	out, err := runProject(t, p, v, p.N)
	if err != nil {
		return err
	}
	for i := range p.N {
		if err := checkPoisoned(out, i, i/len(bad), bad[i%len(bad)]); err != nil {
			return fmt.Errorf("splat %d with %g in parameter row %d: %w", i, bad[i%len(bad)], i/len(bad), err)
		}
	}
	return nil
}

// checkPoisoned judges splat i, whose parameter row is x.
func checkPoisoned(out *ref.Projection[float32], i, row int, x float32) error {
	// An infinite opacity is 1, an infinitely small axis is flat; every other infinity is nowhere.
	axis := row >= layout.RowLogScales && row < layout.RowLogitOpacities
	legal := row == layout.RowLogitOpacities && x > 0 || axis && x < 0
	visible := out.DepthKeys[i] != layout.Culled
	if visible && layout.Drawn(row) && (isNaN(x) || isInf(x) && !legal) {
		return fmt.Errorf("binding depth_keys: got %#x, want %#x: it is not culled; projected %+v", out.DepthKeys[i],
			uint32(layout.Culled), out.Splats[i])
	}
	if !visible {
		return nil
	}
	return first(finite("shapes, paints", floatsOf(out.Splats[i:i+1])), finite("shapes", out.Extents[i][:]))
}

func checkProjectFailed(t *trial) error {
	// begin sets N_ACTIVE to 0 after a failure; then nothing may be written.
	_, err := runProject(t, t.splats(500, 0), t.camera(64, 48), 0)
	return err
}

// pageSplats is how many splats a page of project_pages has.
const pageSplats = 128

// checkProjectPages puts every other page of splats into each of two buffers, from the last to the first, with pages
// between them that are not listed.
func checkProjectPages(t *trial, p *ref.Params[float32], v *ref.View[float32]) error {
	l := t.list()
	n, rows := blocksOf(p.N, pageSplats), ref.ParamRows(p.Degree)
	words := rows * pageSplats
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
	shapes, paints, keys := output[[4]float32](l, "shapes", 2*all), output[[4]float32](l, "paints", all),
		output[uint32](l, "depth_keys", all)
	params, pages := input(l, "params", []layout.StepParams{paramsOf(v)}), input(l, "page_list", list)
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(all)}))
	for i := range data {
		l.r.Dispatch(&shaders.ProjectPages{
			Params: params, Counters: counters, PageList: pages, Chunk: input(l, "chunk", data[i]),
			Shapes: shapes.Slice, Paints: paints.Slice, DepthKeys: keys.Slice,
			Push: shaders.ProjectPagesPush{FirstPage: uint32(i * each), NPages: uint32(each), PageWords: uint32(words),
				ChunkSplats: pageSplats},
		}, vk.Groups(n+3))
	}
	if err := l.run(); err != nil {
		return err
	}
	for i := p.N; i < all; i++ { // zeros
		if keys.got[i] != layout.Culled {
			return fmt.Errorf("binding depth_keys: [%d]: got %#x, want %#x: there is no splat", i, keys.got[i],
				uint32(layout.Culled))
		}
	}
	return compareProjection(projectionOf(shapes.got, paints.got, keys.got), p, v)
}
