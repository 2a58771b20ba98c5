package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDepthGradients compares every parameter's gradient with central differences: of a loss of colours, alpha and sums
// of inverse depths, and of the depth loss.
func TestDepthGradients(t *testing.T) {
	for _, fisheye := range []bool{false, true} {
		p, v := gradScene(1, 11), gradView(fisheye, !fisheye, 1)
		r := rand.New(rand.NewPCG(4, 4))
		up, vSums, known := make([][4]float64, v.Width*v.Height), make([]float64, v.Width*v.Height),
			make([]float64, v.Width*v.Height)
		for i := range up {
			up[i] = [4]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
			vSums[i] = 3 * r.NormFloat64()
			if r.IntN(2) == 0 {
				known[i] = 0.1 + r.Float64()
			}
		}
		render := func() ([][4]float64, []float64) {
			proj, img := Render(p, v, 1)
			l := NewLists(proj, v.Grid())
			return img.Render, RasterizeDepth(proj.Splats, InverseDepths(p, v, proj), l, v, v.Grid())
		}
		proj, _ := Render(p, v, 1)
		checkGradients(t, p, BackwardDepth(p, v, proj, up, vSums), func() (sum float64) {
			colours, sums := render()
			for i, c := range colours {
				sum += up[i][0]*c[0] + up[i][1]*c[1] + up[i][2]*c[2] + up[i][3]*(1-c[3]) + vSums[i]*sums[i]
			}
			return sum
		})
		colours, sums := render()
		_, vSums, vAlphas := DepthLoss(colours, sums, known, 20, 100)
		for i, a := range vAlphas {
			up[i] = [4]float64{0, 0, 0, a}
		}
		checkGradients(t, p, BackwardDepth(p, v, proj, up, vSums), func() float64 {
			now, sums := render()
			loss := 0.0
			for i, c := range now {
				if known[i] > 0 && c[3] < 1 { // the weight is the alpha of before
					loss += 20.0 / 100 * (1 - colours[i][3]) * math.Abs(sums[i]/(1-c[3])-known[i])
				}
			}
			return loss
		})
	}
}

// TestDepthLossKeepsAlpha wants splats that are all at one depth, and that a wrong one, to be moved and not made
// transparent or opaque: where training begins with random points, that would be all of them.
func TestDepthLossKeepsAlpha(t *testing.T) {
	const inverse = 0.25
	for _, known := range []float64{0.1, 0.5} {
		for _, alpha := range []float64{0.01, 0.5, 1} {
			loss, vSums, vAlphas := DepthLoss([][4]float64{{3: 1 - alpha}}, []float64{alpha * inverse},
				[]float64{known}, 2, 1)
			want := 2 * alpha * math.Abs(inverse-known)
			if by := inverse*vSums[0] + vAlphas[0]; math.Abs(by) > 1e-12 || vSums[0]*(inverse-known) <= 0 ||
				math.Abs(loss-want) > 1e-12 {
				t.Errorf("known %g, alpha %g: the gradient by the weight of a splat is %g, by the sum %g, the loss %g",
					known, alpha, by, vSums[0], loss)
			}
		}
	}
	if _, vSums, vAlphas := DepthLoss([][4]float64{{3: 1}}, []float64{0}, []float64{0.3}, 2, 1); vSums[0] != 0 ||
		vAlphas[0] != 0 {
		t.Errorf("a pixel without splats has gradients %g and %g", vSums[0], vAlphas[0])
	}
}

// BackwardDepth is Backward where the sums of inverse depths have gradients, too, in one band.
func BackwardDepth[T Real](p *Params[T], v *View[T], proj *Projection[T], vRender [][4]T, vSums []T) *Params[T] {
	l := NewLists(proj, v.Grid())
	vSlots, vBeside := RasterizeBwdDepth(proj.Splats, InverseDepths(p, v, proj), l, v, v.Grid(), vRender, vSums)
	vProjected, vInverse := make([]ProjectedGrad[T], p.N), make([]T, p.N)
	ReduceSlots(vProjected, vSlots, l, v.Grid().Cols, l.tiles)
	for slot, x := range vBeside {
		vInverse[l.SplatFromSlot[slot]] += x[2]
	}
	g := ProjectBwd(p, v, proj, vProjected)
	AddInverseDepthGrads(g, p, v, proj, vInverse)
	return g
}
