package check

import (
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
)

// camera returns a view of the given size that looks at the splats of t.splats, with a turned camera and an off-centre
// principal point.
func (t *trial) camera(width, height int) *ref.View[float32] {
	a, b := 0.3*t.NormFloat64(), 0.2*t.NormFloat64()
	ca, sa, cb, sb := math.Cos(a), math.Sin(a), math.Cos(b), math.Sin(b)
	v := &ref.View[float32]{
		Fx: float32(0.9 * float64(width)), Fy: float32(1.05 * float64(width)), Cx: float32(0.47 * float64(width)),
		Cy:    float32(0.55 * float64(height)),
		Width: width, Height: height, Near: 0.01, Background: [3]float32{0.2, 0.5, 0.9},
	}
	// A turn about y, then one about x.
	for i, x := range []float64{ca, 0, sa, sb * sa, cb, -sb * ca, -cb * sa, sb, cb * ca} {
		v.R[i] = float32(x)
	}
	v.T = [3]float32{0.1, -0.2, 5}
	return v
}

// splats returns n splats in and around the view of t.camera, at camera depths from about 2 to 8: needles, discs and
// balls.
func (t *trial) splats(n, degree int) *ref.Params[float32] {
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

// paramsOf fills the kernels' parameters for a view.
func paramsOf(v *ref.View[float32]) layout.StepParams {
	g := v.Grid()
	p := layout.StepParams{View: layout.View{
		Rot: v.R, Trans: v.T, Focal: [2]float32{v.Fx, v.Fy}, Center: [2]float32{v.Cx, v.Cy}, Width: uint32(v.Width),
		Height:    uint32(v.Height),
		TileWidth: uint32(g.Cols), TileHeight: uint32(g.Rows), Near: v.Near, ShDegree: uint32(v.SHDegree),
		Background: v.Background,
	}}
	if v.Fisheye {
		p.View.CameraModel = layout.CameraFisheye
	}
	if v.Antialiased {
		p.View.Antialiased = 1
	}
	return p
}

// modelAt returns row r of splat i of a chunk: parameters, first moments, second moments, statistics.
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

// model is a model on the device, in chunks.
type model struct {
	chunkRows
	size   int // splats of a chunk
	chunks []*buffer[float32]
}

// upload puts m in chunks of the given size. Places that hold no splat hold NaN. In mixed precision m is rounded first.
func (l *list) upload(m *ref.Model[float32], size, chunks int) *model {
	d := &model{chunkRows: rowsOf(m.Degree, l.mixed), size: size}
	if d.mixed {
		representable(m)
	}
	rows := d.stats + layout.StatRows
	for c := range chunks {
		data := make([]float32, rows*size)
		for k := range data {
			data[k] = float32(math.NaN())
			if id := c*size + k%size; id >= m.N {
				continue
			} else if d.mixed {
				data[k] = math.Float32frombits(d.word(m, k/size, id))
			} else {
				data[k] = *modelAt(m, k/size, id)
			}
		}
		d.chunks = append(d.chunks, inout(l, "chunk", data))
	}
	return d
}

// download returns the first n splats after the list has run.
func (d *model) download(n, degree int) *ref.Model[float32] {
	m := ref.NewModel(ref.NewParams[float32](n, degree))
	for i := range n {
		for r := range d.stats + layout.StatRows {
			x := d.chunks[i/d.size].got[r*d.size+i%d.size]
			if d.mixed {
				d.setWord(m, r, i, math.Float32bits(x))
			} else {
				*modelAt(m, r, i) = x
			}
		}
	}
	return m
}

// untouched requires that no bit of the model has changed.
func (d *model) untouched() error {
	for _, c := range d.chunks {
		if err := sameBytes("chunk", c.got, c.start); err != nil {
			return err
		}
	}
	return nil
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

// paintsOf converts what they are painted with.
func paintsOf(splats []ref.Projected[float32]) [][4]float32 {
	out := make([][4]float32, len(splats))
	for i, s := range splats {
		out[i] = [4]float32{s.Opacity, s.Color[0], s.Color[1], s.Color[2]}
	}
	return out
}

// projectionOf takes the kernels' layout apart.
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
		var d ref.Projected[float64]
		copy(d.Mean2D[:], ref.ConvertSlice[float64](s.Mean2D[:]))
		copy(d.Conic[:], ref.ConvertSlice[float64](s.Conic[:]))
		copy(d.Color[:], ref.ConvertSlice[float64](s.Color[:]))
		d.Opacity = float64(s.Opacity)
		out.Splats = append(out.Splats, d)
		var e [3]float64
		copy(e[:], ref.ConvertSlice[float64](p.Extents[i][:]))
		out.Extents = append(out.Extents, e)
	}
	return out
}

// gradientsOf converts gradients to the kernels' layout.
func gradientsOf(v []ref.ProjectedGrad[float32]) []layout.ProjectedGrad {
	out := make([]layout.ProjectedGrad, len(v))
	for i, g := range v {
		out[i] = layout.ProjectedGrad{Mean2d: [2]float32(g[0:2]), Conic: [3]float32(g[2:5]), Opacity: g[5],
			Color: [3]float32(g[6:9])}
	}
	return out
}

// bad are numbers that break careless arithmetic.
var bad = []float32{
	float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32, 1e-42, -1e-42,
	math.SmallestNonzeroFloat32,
	0, float32(math.Copysign(0, -1)), 88, -88, 200, -200, 1e19, -1e19,
}

func isNaN(x float32) bool { return x != x }
func isInf(x float32) bool { return math.IsInf(float64(x), 0) }
