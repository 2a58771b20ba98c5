package check

import (
	"math"

	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func normalLossCases() []Case {
	sizes := [][2]int{{1, 1}, {16, 16}, {17, 33}, {50, 40}}
	return []Case{
		newCase("normal_loss", "sizes and shares of pixels", func(t *trial) error {
			return each(sizes, func(s [2]int) error {
				return each([]float64{0, 0.5, 1}, func(share float64) error {
					return checkNormalLoss(t, t.photo(s[0], s[1], false), tilted{share: share})
				})
			})
		}),
		newCase("normal_loss", "cells of several pixels", func(t *trial) error {
			return each([]int{1, 2, 7}, func(shift int) error {
				return checkNormalLoss(t, t.photo(83, 41, false), tilted{share: 0.9, shift: shift})
			})
		}),
		newCase("normal_loss", "masks", func(t *trial) error {
			return each(sizes, func(s [2]int) error {
				return checkNormalLoss(t, t.photo(s[0], s[1], false).masked(0.7), tilted{share: 0.9})
			})
		}),
		newCase("normal_loss", "smaller than the photo", func(t *trial) error {
			return each([]int{1, 2}, func(level int) error {
				return each([]int{0, 1, 3}, func(shift int) error {
					return checkNormalLoss(t, t.photo(83, 101, false).shrunk(level).masked(0.95),
						tilted{share: 0.9, shift: shift})
				})
			})
		}),
		newCase("normal_loss", "fisheye", func(t *trial) error {
			return checkNormalLoss(t, t.photo(50, 40, false), tilted{share: 1, fisheye: true})
		}),
	}
}

// tilted says what normals are known.
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
func checkNormalLoss(t *trial, p *photo, o tilted) error {
	w := p.witness(0)
	v := t.camera(p.width, p.height)
	v.Fisheye = o.fisheye
	w.params.View = paramsOf(v).View
	for i := range w.known {
		w.depths[2*i] = (1 - p.render[i][3]) * (0.5 + 0.02*t.Float32())
	}
	table, normals := p.normals(o)
	l := t.list()
	gotDepths, gotRender := inout(l, "depths", w.depths), inout(l, "v_render", w.vRender)
	l.r.Dispatch(&shaders.NormalLoss{
		Params: input(l, "params", []layout.StepParams{w.params}), Table: input(l, "table", table),
		Target: input(l, "target", w.target), Render: input(l, "render", p.render), Depths: gotDepths.Slice,
		VRender: gotRender.Slice,
		Push: shaders.NormalLossPush{NHeads: depthLevels, Weight: depthWeight,
			Log2Final: float32(math.Log2(depthFinal)), DecaySteps: depthSteps},
		Spec: shaders.NormalLossSpec{Masked: p.mask != nil, Shrunk: p.level > 0},
	}, vk.Groups(int(w.params.View.TileWidth*w.params.View.TileHeight)+2))
	if err := l.run(); err != nil {
		return err
	}
	var sums, covers, wantDepths, wantRender []float64
	for i := range w.known {
		sums, covers = append(sums, float64(w.depths[2*i])), append(covers, 1-float64(p.render[i][3]))
	}
	_, vSums, vAlphas := ref.NormalLoss(pixels64(p.render), sums, normals, covers, ref.ConvertView[float64](v),
		depthWeight*math.Sqrt(depthFinal))
	most := 0.0
	for i := range w.known {
		wantDepths = append(wantDepths, sums[i], float64(w.depths[2*i+1])+vSums[i])
		for k, x := range w.vRender[i] {
			if wantRender = append(wantRender, float64(x)); k == 3 {
				wantRender[len(wantRender)-1] += vAlphas[i]
			}
		}
		most = max(most, math.Abs(vSums[i]), math.Abs(vAlphas[i]))
	}
	// Between neighbours most of the inverse depth cancels.
	return first(closeTo("depths", gotDepths.got, wantDepths, 1e-6+2e-4*most, 1e-5),
		closeTo("v_render", floatsOf(gotRender.got), wantRender, 1e-6+2e-4*most, 1e-5))
}
