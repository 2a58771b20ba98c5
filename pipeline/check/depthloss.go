package check

import (
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func depthLossCases() []Case {
	sizes := [][2]int{{1, 1}, {16, 16}, {17, 33}, {50, 40}}
	return []Case{
		newCase("depth_loss", "sizes and shares of pixels", func(t *trial) error {
			return each(sizes, func(s [2]int) error {
				return each([]float64{0, 0.01, 0.5, 1},
					func(share float64) error { return checkDepthLoss(t, t.photo(s[0], s[1], false), share) })
			})
		}),
		newCase("depth_loss", "masks", func(t *trial) error {
			return each(sizes,
				func(s [2]int) error { return checkDepthLoss(t, t.photo(s[0], s[1], false).masked(0.5), 0.7) })
		}),
		newCase("depth_loss", "smaller than the photo", func(t *trial) error {
			return each([]int{1, 2}, func(level int) error {
				return checkDepthLoss(t, t.photo(83, 101, false).shrunk(level).masked(0.9), 0.7)
			})
		}),
	}
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

// fillTable makes the table of the words of all tiles.
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

// checkDepthLoss compares a picture with a known inverse depth at a share of its pixels.
func checkDepthLoss(t *trial, p *photo, share float64) error {
	l, w := t.list(), p.witness(share)
	gotDepths, gotRender := inout(l, "depths", w.depths), inout(l, "v_render", w.vRender)
	l.r.Dispatch(&shaders.DepthLoss{
		Params: input(l, "params", []layout.StepParams{w.params}), Table: input(l, "table", w.table),
		Target: input(l, "target", w.target), Render: input(l, "render", p.render), Depths: gotDepths.Slice,
		VRender: gotRender.Slice,
		Push: shaders.DepthLossPush{NHeads: depthLevels, Weight: depthWeight,
			Log2Final: float32(math.Log2(depthFinal)), DecaySteps: depthSteps},
		Spec: shaders.DepthLossSpec{Masked: p.mask != nil, Shrunk: p.level > 0},
	}, vk.Groups(int(w.params.View.TileWidth*w.params.View.TileHeight)+2))
	if err := l.run(); err != nil {
		return err
	}
	var sums, wantDepths, wantRender []float64
	for i := range w.known {
		sums = append(sums, float64(w.depths[2*i]))
	}
	weight := depthWeight * math.Sqrt(depthFinal)
	_, vSums, vAlphas := ref.DepthLoss(pixels64(p.render), sums, w.known, weight, max(w.total, 1))
	for i := range w.known {
		wantDepths = append(wantDepths, sums[i], vSums[i])
		for k, x := range w.vRender[i] {
			if wantRender = append(wantRender, float64(x)); k == 3 {
				wantRender[len(wantRender)-1] += vAlphas[i]
			}
		}
	}
	return first(closeTo("depths", gotDepths.got, wantDepths, 0, 1e-5),
		closeTo("v_render", floatsOf(gotRender.got), wantRender, 1e-6, 1e-5))
}

// anyPositive are n positive floats.
func (t *trial) anyPositive(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = t.Float32()
	}
	return x
}
