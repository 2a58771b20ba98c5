package check

import (
	"fmt"
	"math"
	"math/rand/v2"

	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// source is where cases get their inputs from: random numbers of a seed.
type source struct {
	*rand.Rand
	halvings int // of the number of splats or elements: see Bisect
}

// fewer returns n after the halvings, 1 or more.
func (t source) fewer(n int) int { return max(min(n, 1), n>>t.halvings) }

// camera returns a view of the given size that looks at the splats of t.splats, with a turned camera and an off-centre
// principal point.
func (t source) camera(width, height int) *ref.View[float32] {
	a, b := 0.3*t.NormFloat64(), 0.2*t.NormFloat64()
	ca, sa, cb, sb := math.Cos(a), math.Sin(a), math.Cos(b), math.Sin(b)
	v := &ref.View[float32]{Fx: float32(0.9 * float64(width)), Fy: float32(1.05 * float64(width)),
		Cx: float32(0.47 * float64(width)), Cy: float32(0.55 * float64(height)), Width: width, Height: height,
		Near: 0.01, Background: [3]float32{0.2, 0.5, 0.9}}
	// A turn about y, then one about x.
	for i, x := range []float64{ca, 0, sa, sb * sa, cb, -sb * ca, -cb * sa, sb, cb * ca} {
		v.R[i] = float32(x)
	}
	v.T = [3]float32{0.1, -0.2, 5}
	return v
}

// splats returns n splats in and around the view of t.camera, at camera depths from about 2 to 8: needles, discs and
// balls.
func (t source) splats(n, degree int) *ref.Params[float32] {
	n = t.fewer(n)
	p := ref.NewParams[float32](n, degree)
	for _, x := range p.Tensors() { // also those that nothing below knows
		for i := range x.Data {
			x.Data[i] = float32(t.NormFloat64())
		}
	}
	for i := range n {
		for k := range 3 {
			p.Means[3*i+k] = float32(3 * (t.Float64() - 0.5) * 2 * 0.55)
			p.LogScales[3*i+k] = float32(-3 + t.NormFloat64())
		}
		for k := range 4 {
			p.Quats[4*i+k] = float32(t.NormFloat64() * (0.5 + t.Float64()))
		}
		p.LogitOpacities[i] = float32(2 * t.NormFloat64())
	}
	for i := range p.SH {
		p.SH[i] = float32(0.4 * t.NormFloat64())
	}
	return p
}

// ellipses returns n projected splats of all shapes and sizes in and around an image; a tenth of them are culled.
func (t source) ellipses(n, width, height int) *ref.Projection[float32] {
	p := &ref.Projection[float32]{}
	for range t.fewer(n) {
		x, y := (1.4*t.Float64()-0.2)*float64(width), (1.4*t.Float64()-0.2)*float64(height)
		long, short := math.Exp(6*t.Float64()-1.5), math.Exp(6*t.Float64()-1.5)
		t.addEllipse(p, [2]float64{x, y}, long, short, 0.004+0.99*t.Float64()*t.Float64())
		if t.IntN(10) == 0 {
			p.DepthKeys[len(p.DepthKeys)-1] = ref.Culled
		}
	}
	return p
}

// addEllipse adds a splat with the given standard deviations along its axes, in px, turned at random, with a random
// colour and depth.
func (t source) addEllipse(p *ref.Projection[float32], mean [2]float64, long, short, opacity float64) {
	sin, cos := math.Sincos(2 * math.Pi * t.Float64())
	a, b := long*long, short*short
	xx, xy, yy := a*cos*cos+b*sin*sin+ref.Eps2D, (a-b)*sin*cos, a*sin*sin+b*cos*cos+ref.Eps2D
	det := xx*yy - xy*xy
	s := ref.Projected[float32]{Mean2D: [2]float32{float32(mean[0]), float32(mean[1])},
		Conic: [3]float32{float32(yy / det), float32(-xy / det), float32(xx / det)}, Opacity: float32(opacity),
		Color: [3]float32{t.Float32(), t.Float32(), t.Float32()}}
	e := 2*math.Log(255*opacity) + ref.ExtentSlack
	p.Splats = append(p.Splats, s)
	p.Extents = append(p.Extents,
		[3]float32{float32(math.Sqrt(e * xx)), float32(math.Sqrt(e * yy)), float32(math.Sqrt(e * det / yy))})
	p.DepthKeys = append(p.DepthKeys, math.Float32bits(1+4*t.Float32()))
}

// scaled returns p with extents a little larger (sign 1) or smaller (-1): rounding in the kernel, which works at the
// size of the image's coordinates, may decide what lies between the two.
func scaled(p *ref.Projection[float32], sign float64) *ref.Projection[float32] {
	q := &ref.Projection[float32]{Splats: p.Splats, DepthKeys: p.DepthKeys}
	for _, e := range p.Extents {
		f := float32(1 + sign*(2e-4+2e-3/float64(min(e[0], e[1]))))
		q.Extents = append(q.Extents, [3]float32{f * e[0], f * e[1], f * e[2]})
	}
	return q
}

// crowd returns n splats of about the given opacity that cover most of the image.
func (t source) crowd(n, width, height int, opacity float64) *ref.Projection[float32] {
	p := &ref.Projection[float32]{}
	for range t.fewer(n) {
		mean := [2]float64{t.Float64() * float64(width), t.Float64() * float64(height)}
		t.addEllipse(p, mean, (0.3+t.Float64())*float64(width), (0.1+t.Float64())*float64(height),
			opacity*(0.5+0.5*t.Float64()))
	}
	return p
}

func paramsOf(v *ref.View[float32]) layout.StepParams {
	g := v.Grid()
	p := layout.StepParams{View: layout.View{Rot: v.R, Trans: v.T, Focal: [2]float32{v.Fx, v.Fy},
		Center: [2]float32{v.Cx, v.Cy}, Width: uint32(v.Width), Height: uint32(v.Height), TileWidth: uint32(g.Cols),
		TileHeight: uint32(g.Rows), Near: v.Near, ShDegree: uint32(v.SHDegree), Background: v.Background,
		Antialiased: layout.Bit(v.Antialiased)}}
	if v.Fisheye {
		p.View.CameraModel = layout.CameraFisheye
	}
	return p
}

// shapesOf converts the shapes of projected splats to the kernels' layout.
func shapesOf(p *ref.Projection[float32]) [][4]float32 {
	var out [][4]float32
	for i, s := range p.Splats {
		e := p.Extents[i]
		out = append(out, [4]float32{s.Mean2D[0], s.Mean2D[1], s.Conic[0], s.Conic[1]},
			[4]float32{s.Conic[2], e[0], e[1], e[2]})
	}
	return out
}

func paintsOf(splats []ref.Projected[float32]) [][4]float32 {
	out := make([][4]float32, len(splats))
	for i, s := range splats {
		out[i] = [4]float32{s.Opacity, s.Color[0], s.Color[1], s.Color[2]}
	}
	return out
}

func projectionOf(shapes, paints [][4]float32, keys []uint32) *ref.Projection[float32] {
	p := &ref.Projection[float32]{DepthKeys: keys}
	for i, paint := range paints {
		a, b := shapes[2*i], shapes[2*i+1]
		p.Splats = append(p.Splats, ref.Projected[float32]{Mean2D: [2]float32(a[:2]),
			Conic: [3]float32{a[2], a[3], b[0]}, Opacity: paint[0], Color: [3]float32(paint[1:])})
		p.Extents = append(p.Extents, [3]float32(b[1:]))
	}
	return p
}

// projection64 converts a projection to float64, so that the reference starts from the kernel's own inputs.
func projection64(p *ref.Projection[float32]) *ref.Projection[float64] {
	out := &ref.Projection[float64]{DepthKeys: p.DepthKeys}
	for i, s := range p.Splats {
		out.Splats = append(out.Splats,
			ref.Projected[float64]{Mean2D: [2]float64(ref.ConvertSlice[float64](s.Mean2D[:])),
				Conic: [3]float64(ref.ConvertSlice[float64](s.Conic[:])), Opacity: float64(s.Opacity),
				Color: [3]float64(ref.ConvertSlice[float64](s.Color[:]))})
		out.Extents = append(out.Extents, [3]float64(ref.ConvertSlice[float64](p.Extents[i][:])))
	}
	return out
}

func pixels64(x [][4]float32) [][4]float64 {
	out := make([][4]float64, len(x))
	for i := range x {
		copy(out[i][:], ref.ConvertSlice[float64](x[i][:]))
	}
	return out
}

func flat64(x [][4]float64) (out []float64) {
	for i := range x {
		out = append(out, x[i][:]...)
	}
	return out
}

func gradientsOf(v []ref.ProjectedGrad[float32]) []layout.ProjectedGrad {
	out := make([]layout.ProjectedGrad, len(v))
	for i, g := range v {
		out[i] = layout.ProjectedGrad{Mean2d: [2]float32(g[0:2]), Conic: [3]float32(g[2:5]), Opacity: g[5],
			Color: [3]float32(g[6:9])}
	}
	return out
}

var nan = float32(math.NaN())

// bad are numbers that break careless arithmetic.
var bad = []float32{
	nan, float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32, 1e-42, -1e-42,
	math.SmallestNonzeroFloat32, 0, float32(math.Copysign(0, -1)), 88, -88, 200, -200, 1e19, -1e19,
}

func isNaN(x float32) bool { return x != x }
func isInf(x float32) bool { return math.IsInf(float64(x), 0) }

// model is a model on the device, in chunks.
type model struct {
	layout.Rows
	t      *trial
	size   int // splats of a chunk
	chunks []vk.Slice[float32]
}

// upload puts m in chunks of the given size, at least so many. Places that hold no splat hold NaN. In mixed precision m
// is rounded first.
func (t *trial) upload(m *ref.Model[float32], size, least int) *model {
	d := &model{Rows: layout.RowsOf(m.Degree, t.mixed), t: t, size: size}
	if d.Mixed {
		representable(m)
	}
	for c := range max(1, least, blocksOf(m.N, size)) {
		data := make([]float32, d.NRows()*size)
		for k := range data {
			if data[k] = float32(math.NaN()); c*size+k%size < m.N {
				data[k] = math.Float32frombits(d.word(m, k/size, c*size+k%size))
			}
		}
		d.chunks = append(d.chunks, scratchOf(t, data))
	}
	return d
}

// dispatch records a pass on each chunk, whose first splat it is told, with an invocation a splat.
func (d *model) dispatch(group int, pass func(first uint32, chunk vk.Slice[float32]) vk.Pass) {
	for i, chunk := range d.chunks {
		d.t.dispatch(pass(uint32(i*d.size), chunk), vk.Items(d.size, group))
	}
}

func (d *model) words(f func(row, splat int, was, is uint32)) {
	for c, chunk := range d.chunks {
		b := d.t.bindings[chunk.Name()]
		for k, was := range b.start {
			f(k/d.size, c*d.size+k%d.size, was, b.words[k])
		}
	}
}

// becomes wants the words that want returns, which is told what they were.
func (d *model) becomes(want func(row, splat int, was uint32) uint32) {
	d.words(func(row, splat int, was, is uint32) {
		if w := want(row, splat, was); is != w {
			failf("binding chunk: row %d of splat %d: got %#x, %g, want %#x, %g", row, splat, is,
				math.Float32frombits(is), w, math.Float32frombits(w))
		}
	})
}

// untouched wants no bit of the model changed.
func (d *model) untouched() { d.becomes(func(_, _ int, was uint32) uint32 { return was }) }

// restUntouched wants places that hold no splat to be as they were, and the rows of SH coefficients that are not
// trained yet.
func (d *model) restUntouched(n, trained int) {
	d.words(func(row, splat int, was, is uint32) {
		if (splat >= n || !d.trains(row, trained)) && was != is {
			failf("binding chunk: row %d of splat %d: got %#x, want %#x as before", row, splat, is, was)
		}
	})
}

// trains reports whether a step trains anything in a row, if the first parameters are those that are trained.
func (d *model) trains(row, trained int) bool {
	switch {
	case row >= d.Stats:
		return true
	case !d.Mixed:
		return row%d.NParams < trained
	case row >= d.First:
		return row-d.First < trained
	}
	return row < layout.RowSh || layout.RowSh+2*(row-layout.RowSh) < trained
}

// download returns the first n splats after the run.
func (d *model) download(n, degree int) *ref.Model[float32] {
	m := ref.NewModel(ref.NewParams[float32](n, degree))
	d.words(func(row, splat int, _, is uint32) {
		if splat < n {
			d.setWord(m, row, splat, is)
		}
	})
	return m
}

// modelAt returns row r of splat i of a chunk in full precision: parameters, first moments, second moments, statistics.
func modelAt(m *ref.Model[float32], r, i int) *float32 {
	rows := ref.ParamRows(m.Degree)
	switch {
	case r < rows:
		return m.Params.At(r, i)
	case r < 2*rows:
		return m.M.At(r-rows, i)
	case r < 3*rows:
		return m.V.At(r-2*rows, i)
	case r == 3*rows+layout.StatGrad2d:
		return &m.Grad2D[i]
	}
	return &m.Count[i]
}

// representable rounds a model to what a chunk in mixed precision holds.
func representable(m *ref.Model[float32]) {
	for i, x := range m.SH {
		m.SH[i] = layout.HalfValue(layout.NearestHalf(x))
	}
	for _, p := range []*ref.Params[float32]{&m.M, &m.V} {
		for _, t := range p.Tensors() {
			for i, x := range t.Data {
				t.Data[i] = ref.BFloatValue(ref.RoundBFloat(x, 1<<15))
			}
		}
	}
}

// word returns row r of splat i of m.
func (d *model) word(m *ref.Model[float32], r, i int) uint32 {
	switch {
	case !d.Mixed || r < layout.RowSh:
		return math.Float32bits(*modelAt(m, r, i))
	case r < d.Stored:
		at := layout.RowSh + 2*(r-layout.RowSh)
		w := uint32(layout.NearestHalf(*m.Params.At(at, i)))
		if at+1 < d.NParams {
			w |= uint32(layout.NearestHalf(*m.Params.At(at+1, i))) << 16
		}
		return w
	case r < d.Stats:
		r -= d.First
		return uint32(ref.RoundBFloat(*m.M.At(r, i), 0)) | uint32(ref.RoundBFloat(*m.V.At(r, i), 0))<<16
	}
	return math.Float32bits(*modelAt(m, 3*d.NParams+r-d.Stats, i))
}

// setWord is the way back.
func (d *model) setWord(m *ref.Model[float32], r, i int, w uint32) {
	switch {
	case !d.Mixed || r < layout.RowSh:
		*modelAt(m, r, i) = math.Float32frombits(w)
	case r < d.Stored:
		at := layout.RowSh + 2*(r-layout.RowSh)
		*m.Params.At(at, i) = layout.HalfValue(uint16(w))
		if at+1 < d.NParams {
			*m.Params.At(at+1, i) = layout.HalfValue(uint16(w >> 16))
		}
	case r < d.Stats:
		r -= d.First
		*m.M.At(r, i), *m.V.At(r, i) = ref.BFloatValue(uint16(w)), ref.BFloatValue(uint16(w>>16))
	default:
		*modelAt(m, 3*d.NParams+r-d.Stats, i) = math.Float32frombits(w)
	}
}

// rowName names parameter r of a splat: "quats[2]".
func rowName(r int) string {
	row := r
	for _, x := range ref.NewParams[float32](0, 3).Tensors() {
		if row < x.Width {
			return fmt.Sprintf("%s[%d]", x.Name, row)
		}
		row -= x.Width
	}
	return fmt.Sprintf("row %d", r)
}

func model64(m *ref.Model[float32]) *ref.Model[float64] {
	return &ref.Model[float64]{Params: *ref.ConvertParams[float64](&m.Params), M: *ref.ConvertParams[float64](&m.M),
		V: *ref.ConvertParams[float64](&m.V), Grad2D: ref.ConvertSlice[float64](m.Grad2D),
		Count: ref.ConvertSlice[float64](m.Count)}
}
