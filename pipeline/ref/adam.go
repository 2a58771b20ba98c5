package ref

import "math"

// AdamConfig is the optimiser's constants (Kingma and Ba 2015).
type AdamConfig struct {
	Beta1, Beta2, Eps float64
}

// DefaultAdam is what every published 3DGS recipe uses.
var DefaultAdam = AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-15}

// Rates are the learning rates of one step.
type Rates struct {
	Means, Quats, LogScales, LogitOpacities, SH0, SHN float64
}

// Adam updates weights w and moments m, v in place with gradient g at step (1, 2, ...). Epsilon is added to sqrt(v_hat), as torch does.
func Adam[T Real](w, m, v, g []T, lr float64, c AdamConfig, step int) {
	b1, b2 := T(c.Beta1), T(c.Beta2)
	invBias1 := T(1 / (1 - math.Pow(c.Beta1, float64(step))))
	invSqrtBias2 := T(1 / math.Sqrt(1-math.Pow(c.Beta2, float64(step))))
	for i := range w {
		m[i] += (g[i] - m[i]) * (1 - b1)
		v[i] = v[i]*b2 + g[i]*g[i]*(1-b2)
		w[i] -= T(lr) * (m[i] * invBias1) / (sqrt(v[i])*invSqrtBias2 + T(c.Eps))
	}
}

// AdamModel updates every parameter of the model, of culled splats too: their gradient is 0 but their momentum acts.
func AdamModel[T Real](model *Model[T], g *Params[T], r Rates, c AdamConfig, step int) {
	w, m, v, gs := model.Tensors(), model.M.Tensors(), model.V.Tensors(), g.Tensors()
	for k, lr := range []float64{r.Means, r.Quats, r.LogScales, r.LogitOpacities} {
		Adam(w[k].Data, m[k].Data, v[k].Data, gs[k].Data, lr, c, step)
	}
	width := w[4].Width
	for i := range model.N {
		a, b, end := width*i, width*i+3, width*(i+1)
		Adam(model.SH[a:b], model.M.SH[a:b], model.V.SH[a:b], g.SH[a:b], r.SH0, c, step)
		Adam(model.SH[b:end], model.M.SH[b:end], model.V.SH[b:end], g.SH[b:end], r.SHN, c, step)
	}
}

// Statistics adds what the default strategy watches for each visible splat: the norm of the 2D mean's gradient scaled by half the image, and one.
func Statistics[T Real](model *Model[T], v *View[T], proj *Projection[T], vProjected []ProjectedGrad[T]) {
	for i := range model.N {
		if !proj.Visible(i) {
			continue
		}
		x := vProjected[i][0] * (0.5 * T(v.Width))
		y := vProjected[i][1] * (0.5 * T(v.Height))
		model.Grad2D[i] += sqrt(x*x + y*y)
		model.Count[i]++
	}
}
