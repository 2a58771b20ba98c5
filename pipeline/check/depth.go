package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func depthCases() []Case {
	type image struct {
		name          string
		width, height int
		p             func(t *trial) *ref.Projection[float32]
	}
	crowd := func(name string, n, width, height int, opacity float64) image {
		return image{name, width, height,
			func(t *trial) *ref.Projection[float32] { return t.crowd(n, width, height, opacity) }}
	}
	var forward, backward table
	for _, m := range []image{
		crowd("no splats", 0, 40, 30, 1), crowd("several buckets in several tiles", 900, 50, 40, 0.03),
		crowd("opaque: pixels stop early", 600, 40, 24, 0.9),
		{"above the ceiling of alpha", 40, 24, func(t *trial) *ref.Projection[float32] {
			p := t.crowd(12, 40, 24, 0.3)
			p.Splats[5].Opacity = 1.6 // one alone: where two are, rounding decides whether a pixel stops
			return p
		}},
		{"all shapes", 100, 60, func(t *trial) *ref.Projection[float32] { return t.ellipses(150, 100, 60) }},
	} {
		forward = append(forward, table{{m.name, func(t *trial) {
			newDeep(t, m.p(t), t.camera(m.width, m.height), false).checkSums()
		}}}...)
		backward = append(backward, table{{m.name, func(t *trial) {
			newDeep(t, m.p(t), t.camera(m.width, m.height), false).checkBackward()
		}}}...)
	}
	return slices.Concat(shapedCases("rasterize_depth", forward), shapedCases("rasterize_bwd_depth", backward),
		shapedCases("rasterize_bwd_depth", table{
			{"absolute gradients",
				func(t *trial) { newDeep(t, t.crowd(300, 40, 30, 0.1), t.camera(40, 30), true).checkBackward() }},
			{"subgroup sizes give the same bytes", checkDepthSubgroups},
		}), shapedCases("rasterize_depth", table{{"packed states", func(t *trial) {
			newDeep(t, vivid(t.crowd(900, 50, 40, 0.03), 0), t.camera(50, 40), false).checkSums()
		}}}, packStates), shapedCases("rasterize_bwd_depth", table{
			{"packed states", func(t *trial) {
				newDeep(t, vivid(t.crowd(600, 40, 30, 0.05), 0), t.camera(40, 30), true).checkBackward()
			}},
			{"packed states: subgroup sizes give the same bytes", checkDepthSubgroups},
		}, packStates))
}

// deep is a picture whose depth is blended, too, and gradients of it.
type deep struct {
	t        *trial
	p        *ref.Projection[float32]
	v        *ref.View[float32]
	absgrad  bool
	vRender  [][4]float32
	vSums    []float32
	subgroup uint32
	// What the kernels wrote.
	r      *raster
	depths vk.Slice[float32]
	slots  vk.Slice[layout.ProjectedGrad]
	beside vk.Slice[[3]float32]
}

// newDeep makes those of a projection, whose depths become 1 to 6.
func newDeep(t *trial, p *ref.Projection[float32], v *ref.View[float32], absgrad bool) *deep {
	for i := range p.DepthKeys {
		p.DepthKeys[i] = math.Float32bits(1 + 5*t.Float32())
	}
	d := &deep{t: t, p: p, v: v, absgrad: absgrad, vRender: t.pixelGrads(v.Width * v.Height),
		subgroup: t.d.Info().Limits.SubgroupSize}
	for range v.Width * v.Height {
		d.vSums = append(d.vSums, float32(3*t.NormFloat64()))
	}
	return d
}

func (d *deep) inverse() (inverse []float64) {
	for _, key := range d.p.DepthKeys {
		inverse = append(inverse, 1/float64(math.Float32frombits(key)))
	}
	return inverse
}

// run runs the forward and the backward pass.
func (d *deep) run() {
	t := d.t
	t.inSubgroups(d.subgroup, func() { d.r = t.rasterize(d.p, d.v, 0, 1, true, nil) })
	r, n := &d.r.in, len(d.r.lists.TileIDs)
	start := make([]float32, 2*len(d.vSums)+n/d.r.bucket*layout.TilePixels)
	for i, x := range d.vSums {
		start[2*i+1] = x
	}
	d.depths = scratchOf(t, start)
	keys := in(t, d.p.DepthKeys...)
	t.dispatch(vk.Derive(r, func(p *shaders.RasterizeDepth) { p.DepthKeys, p.Depths = keys, d.depths }),
		vk.Groups(d.v.Grid().Tiles()+3))
	d.slots, d.beside = scratch[layout.ProjectedGrad](t, n), scratch[[3]float32](t, n)
	t.dispatch(vk.Derive(r, func(p *shaders.RasterizeBwdDepth) {
		p.VRender, p.VSlots, p.VBesideSlots = in(t, d.vRender...), vk.Cast[float32](d.slots.View), d.beside
		p.DepthKeys, p.Depths, p.Spec.WorkgroupSize = keys, d.depths, layout.TilePixels/4
		p.Spec.SubgroupSize, p.Spec.Absgrad, p.Spec.HandRound = d.subgroup, d.absgrad, t.processor
	}), vk.Groups(n/d.r.bucket+2*len(d.r.lists.TileOffsets)+3))
	t.run()
}

// checkSums compares the picture, which must be that of rasterize, and the sums.
func (d *deep) checkSums() {
	d.run()
	d.r.compare(d.p, d.v)
	want := ref.RasterizeDepth(projection64(d.p).Splats, d.inverse(), d.r.lists, ref.ConvertView[float64](d.v),
		d.v.Grid())
	var sums []float32
	depths := got(d.t, d.depths)
	for i, x := range d.vSums {
		if sums = append(sums, depths[2*i]); depths[2*i+1] != x {
			failf("binding depths: the gradient of pixel %d was written", i)
		}
	}
	r := ref.PixelCompare(sums, want, 1, 1e-4)
	if r.Outliers > outliers(len(sums)) || r.Worst > 0.01 || r.RelNorm > 1e-5 {
		failf("binding depths: %v", r)
	}
}

func (d *deep) checkBackward() {
	d.run()
	grads, beside := ref.RasterizeBwdDepth(projection64(d.p).Splats, d.inverse(), d.r.lists,
		ref.ConvertView[float64](d.v), d.v.Grid(), pixels64(d.vRender), ref.ConvertSlice[float64](d.vSums))
	var abs, inverse []float32
	var wantAbs, wantInverse []float64
	for i, x := range got(d.t, d.beside) {
		if !d.absgrad {
			beside[i][0], beside[i][1] = 0, 0
		}
		abs, inverse = append(abs, x[:2]...), append(inverse, x[2])
		wantAbs, wantInverse = append(wantAbs, beside[i][:2]...), append(wantInverse, beside[i][2])
	}
	packing := d.t.packing(d.p, d.inverse(), d.v, d.r, d.vRender, d.vSums)
	compareGrads("v_slots", got(d.t, d.slots), grads, 2e-4, packing)
	nearNorm("v_beside_slots (absolute)", abs, wantAbs, 2e-4+packedNorm(packing, wantAbs, 9, 11))
	nearNorm("v_beside_slots (inverse depth)", inverse, wantInverse, 2e-4+packedNorm(packing, wantInverse, 11, 12))
}

func checkDepthSubgroups(t *trial) {
	d := newDeep(t, t.crowd(400, 33, 20, 0.05), t.camera(33, 20), true)
	var one *deep
	for _, size := range subgroupSizes(t.d) {
		if size > layout.TilePixels/4 {
			continue
		}
		now := *d
		now.subgroup = size
		now.run()
		if one == nil {
			one = &now
		}
		during(size, func() {
			same("render", got(t, now.r.in.Render), got(t, one.r.in.Render))
			same("depths", got(t, now.depths), got(t, one.depths))
			same("v_slots", got(t, now.slots), got(t, one.slots))
			same("v_beside_slots", got(t, now.beside), got(t, one.beside))
		})
	}
}

func depthLossCases() []Case {
	sizes := [][2]int{{1, 1}, {16, 16}, {17, 33}, {50, 40}}
	return slices.Concat(casesOf("depth_loss", table{
		{"sizes and shares of pixels", over(sizes, func(t *trial, s [2]int) {
			eachOf([]float64{0, 0.01, 0.5, 1},
				func(share float64) { checkDepthLoss(newPhoto(t, s[0], s[1], false), share) })
		})},
		{"masks", over(sizes, func(t *trial, s [2]int) {
			checkDepthLoss(newPhoto(t, s[0], s[1], false).masked(0.5), 0.7)
		})},
		{"smaller than the photo", over([]int{1, 2}, func(t *trial, level int) {
			checkDepthLoss(newPhoto(t, 83, 101, false).shrunk(level).masked(0.9), 0.7)
		})},
	}), casesOf("normal_loss", table{
		{"sizes and shares of pixels", over(sizes, func(t *trial, s [2]int) {
			eachOf([]float64{0, 0.5, 1},
				func(share float64) { checkNormalLoss(newPhoto(t, s[0], s[1], false), tilted{share: share}) })
		})},
		{"cells of several pixels", over([]int{1, 2, 7}, func(t *trial, shift int) {
			checkNormalLoss(newPhoto(t, 83, 41, false), tilted{share: 0.9, shift: shift})
		})},
		{"masks", over(sizes, func(t *trial, s [2]int) {
			checkNormalLoss(newPhoto(t, s[0], s[1], false).masked(0.7), tilted{share: 0.9})
		})},
		{"smaller than the photo", over([]int{1, 2}, func(t *trial, level int) {
			eachOf([]int{0, 1, 3}, func(shift int) {
				checkNormalLoss(newPhoto(t, 83, 101, false).shrunk(level).masked(0.95), tilted{share: 0.9,
					shift: shift})
			})
		})},
		{"fisheye",
			func(t *trial) { checkNormalLoss(newPhoto(t, 50, 40, false), tilted{share: 1, fisheye: true}) }},
	}))
}

// Of the weight in the checks: half a run of steps is done, at whose end a quarter of it is left.
const (
	depthWeight = 3
	depthStep   = 50
	depthSteps  = 100
	depthFinal  = 0.25
)

// witness is a picture and what is known of its depths, as pixels and as the kernel reads them.
type witness struct {
	*photo
	params  layout.StepParams
	total   int       // pixels that are known, with those that do not count
	known   []float64 // inverse depths of those that count, 0 elsewhere
	table   []uint32
	target  []uint32
	depths  []float32
	vRender [][4]float32
}

// Of the table in the checks.
const (
	depthLevels = 5
	depthViews  = 4
	depthView   = 2
)

// witness knows the inverse depth of a share of p's pixels.
func (p *photo) witness(share float64) *witness {
	t, n := p.t, p.width*p.height
	w := &witness{photo: p, params: paramsOf(&ref.View[float32]{Width: p.width, Height: p.height}),
		known: make([]float64, n), depths: t.anyPositive(2 * n), vRender: t.pixelGrads(n),
		target: make([]uint32, p.texelWidth*p.texelHeight)} // its colours mean nothing here
	w.params.ViewId, w.params.Level, w.params.Step = depthView, uint32(p.level), depthStep
	w.params.PhotoWidth, w.params.PhotoHeight = uint32(p.texelWidth), uint32(p.texelHeight)
	if p.mask != nil {
		w.params.PhotoFlags, w.target = layout.PhotoMasked, append(w.target, p.mask...)
	}
	columns := int(w.params.View.TileWidth)
	tiles := make([][]uint32, columns*int(w.params.View.TileHeight))
	for i := range w.known {
		x, y := i%p.width, i/p.width
		p.render[i][3] = t.Float32()
		if t.Float64() >= share {
			continue
		}
		bits := math.Float32bits(0.1+t.Float32()) >> 7
		if w.total++; p.counts(i) {
			w.known[i] = float64(math.Float32frombits(bits << 7))
		}
		tile := &tiles[y/layout.TileSize*columns+x/layout.TileSize]
		*tile = append(*tile, bits<<8|uint32(y%layout.TileSize*layout.TileSize+x%layout.TileSize))
	}
	w.fillTable(tiles)
	return w
}

func (w *witness) fillTable(tiles [][]uint32) {
	w.table = make([]uint32, depthViews*depthLevels)
	if w.total == 0 {
		return
	}
	w.table[depthView*depthLevels+w.level] = uint32(len(w.table))
	w.table = append(w.table, uint32(w.total), 0)
	first := uint32(0)
	for _, words := range tiles {
		first += uint32(len(words))
		w.table = append(w.table, first)
	}
	for _, words := range tiles {
		w.table = append(w.table, words...)
	}
}

func (w *witness) sums() (sums []float64) {
	for i := range w.known {
		sums = append(sums, float64(w.depths[2*i]))
	}
	return sums
}

// pass fills depth_loss, with what the gradients become by a loss: those by the sums add to what is there if add.
func (w *witness) pass(vSums, vAlphas []float64, add bool, abs float64) *shaders.DepthLoss {
	t := w.t
	var depths, render []float64
	for i, x := range vSums {
		if add {
			x += float64(w.depths[2*i+1])
		}
		depths = append(depths, float64(w.depths[2*i]), x)
		pixel := ref.ConvertSlice[float64](w.vRender[i][:])
		pixel[3] += vAlphas[i]
		render = append(render, pixel...)
	}
	return &shaders.DepthLoss{Params: in(t, w.params), Table: in(t, w.table...), Target: in(t, w.target...),
		Render: in(t, w.render...), Depths: update(t, w.depths, roughly(depths, abs, 1e-5)), VRender: update(t,
			w.vRender, roughly(render, max(1e-6, abs), 1e-5)), Push: shaders.DepthLossPush{NHeads: depthLevels,
			Weight: depthWeight, Log2Final: float32(math.Log2(depthFinal)), DecaySteps: depthSteps},
		Spec: shaders.DepthLossSpec{Masked: w.mask != nil, Shrunk: w.level > 0}}
}

func (w *witness) grid() vk.Grid {
	return vk.Groups(int(w.params.View.TileWidth*w.params.View.TileHeight) + 2)
}

// checkDepthLoss compares a picture with a known inverse depth at a share of its pixels.
func checkDepthLoss(p *photo, share float64) {
	w := p.witness(share)
	_, vSums, vAlphas := ref.DepthLoss(pixels64(p.render), w.sums(), w.known, depthWeight*math.Sqrt(depthFinal),
		max(w.total, 1))
	p.t.dispatch(w.pass(vSums, vAlphas, false, 0), w.grid())
	p.t.run()
}

type tilted struct {
	share   float64 // of the cells
	shift   int     // cells are 2^shift pixels wide and high
	fisheye bool
}

// normals makes up some that are alike, as in the table and as pixels of the picture have them.
func (p *photo) normals(o tilted) (table []uint32, normals [][3]float64) {
	m := scene.NewNormalMap(p.texelWidth, p.texelHeight, o.shift)
	for i := range m.Cells {
		if p.t.Float64() < o.share {
			n := [3]float64{0.3 * p.t.Float64(), 0.3 * p.t.Float64(), -1}
			length := math.Sqrt(n[0]*n[0] + n[1]*n[1] + 1)
			m.Cells[i] = scene.PackNormal([3]float64{n[0] / length, n[1] / length, n[2] / length})
		}
	}
	table = make([]uint32, depthViews*depthLevels)
	table[(depthView+1)*depthLevels-1] = uint32(len(table))
	table = append(append(table, uint32(o.shift), uint32(m.Columns)), m.Cells...)
	normals = make([][3]float64, p.width*p.height)
	half := 1 << p.level >> 1
	for i := range normals {
		x, y := (i%p.width<<p.level+half)>>o.shift, (i/p.width<<p.level+half)>>o.shift
		if word := m.Cells[y*m.Columns+x]; word != 0 && p.counts(i) {
			normals[i] = scene.UnpackNormal(word)
		}
	}
	return table, normals
}

// checkNormalLoss compares a picture of a rough surface with normals.
func checkNormalLoss(p *photo, o tilted) {
	t, w := p.t, p.witness(0)
	v := t.camera(p.width, p.height)
	v.Fisheye = o.fisheye
	w.params.View = paramsOf(v).View
	var covers []float64
	for i := range w.known {
		w.depths[2*i] = (1 - p.render[i][3]) * (0.5 + 0.02*t.Float32())
		covers = append(covers, 1-float64(p.render[i][3]))
	}
	var normals [][3]float64
	w.table, normals = p.normals(o)
	_, vSums, vAlphas := ref.NormalLoss(pixels64(p.render), w.sums(), normals, covers, ref.ConvertView[float64](v),
		depthWeight*math.Sqrt(depthFinal))
	most := 0.0
	for i := range vSums {
		most = max(most, math.Abs(vSums[i]), math.Abs(vAlphas[i]))
	}
	d := w.pass(vSums, vAlphas, true, 1e-6+2e-4*most) // between neighbours most of the inverse depth cancels
	t.dispatch(vk.Derive(d, func(*shaders.NormalLoss) {}), w.grid())
	t.run()
}

func (t source) anyPositive(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = t.Float32()
	}
	return x
}
