package ref

import (
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
			colours, sums := render()
			loss, _, _ := DepthLoss(colours, sums, known, 20, 100)
			return loss
		})
	}
}
