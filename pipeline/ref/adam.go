package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// AdamConfig is the optimiser's constants (Kingma and Ba 2015).
type AdamConfig struct {
	Beta1, Beta2, Eps float64
}

// DefaultAdam has the constants of every published 3DGS recipe.
var DefaultAdam = AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-15}

// Batch returns the constants for steps on the mean gradient of some views, each of which stands for so many steps on
// one view: 1 - beta grows with their number, epsilon falls with its root, and so should learning rates grow (Malladi
// et al. 2022; gsplat's and Grendel's rule). No beta is below 0.
func (c AdamConfig) Batch(views int) AdamConfig {
	n := float64(views)
	return AdamConfig{Beta1: max(0, 1-n*(1-c.Beta1)), Beta2: max(0, 1-n*(1-c.Beta2)), Eps: c.Eps / math.Sqrt(n)}
}

// Adam updates weights w and moments m, v in place with gradient g at step (1, 2, ...). Epsilon is added to
// sqrt(v_hat), as torch does.
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
	for k, lr := range r.geometry() {
		Adam(w[k].Data, m[k].Data, v[k].Data, gs[k].Data, lr, c, step)
	}
	width := 3 * model.Coefficients()
	for i := range model.N {
		a, b, end := width*i, width*i+3, width*(i+1)
		Adam(model.SH[a:b], model.M.SH[a:b], model.V.SH[a:b], g.SH[a:b], r.SH0, c, step)
		Adam(model.SH[b:end], model.M.SH[b:end], model.V.SH[b:end], g.SH[b:end], r.SHN, c, step)
	}
}

// Penalties are the weights of the mean opacity and of the mean scale, over all splats and components, in the loss.
type Penalties struct {
	Opacity, Scale float64
	Splats         int // of the whole scene, if others hold some of it; 0: none do
}

// ShellUnits returns how far away the splats of the far shell are, which begins at a distance, and 1 for all others;
// nil without a shell, which is a distance of 0. What is the same from every camera may as well stand at a distance of
// 1: its size counts as if it did, and it moves as far.
func ShellUnits[T Real](p *Params[T], shell T) (units []T) {
	if !(shell > 0) {
		return nil
	}
	for i := range p.N {
		m := p.mean(i)
		units = append(units, 1)
		if distance := sqrt(m[0]*m[0] + m[1]*m[1] + m[2]*m[2]); distance > shell {
			units[i] = distance
		}
	}
	return units
}

func unitOf[T Real](units []T, i int) T {
	if units == nil {
		return 1
	}
	return units[i]
}

// WidenSteps makes what a step moved means by, which were before, as large as the units of their splats.
func WidenSteps[T Real](p *Params[T], before, units []T) {
	for i, x := range before {
		p.Means[i] = x + (p.Means[i]-x)*unitOf(units, i/3)
	}
}

// Penalise adds the gradients of the penalties to g. units are those of ShellUnits.
func Penalise[T Real](g, p *Params[T], w Penalties, units []T) {
	n := w.Splats
	if n == 0 {
		n = p.N
	}
	for i, x := range p.LogitOpacities {
		o := Sigmoid(x)
		g.LogitOpacities[i] += T(w.Opacity/float64(n)) * o * (1 - o)
	}
	for i, x := range p.LogScales {
		g.LogScales[i] += T(w.Scale/float64(3*n)) / unitOf(units, i/3) * exp(x)
	}
}

// Explore moves every mean by a normal sample times the covariance, scale and a gate that is open for splats of little
// opacity (Kheradmand et al. 2024, equation 8; gsplat's gate). units are those of ShellUnits.
func Explore[T Real](p *Params[T], scale T, units []T, seed uint64, step uint32) {
	for i := range p.N {
		r := Philox([4]uint32{uint32(i), step, layout.DrawNoise, 0}, [2]uint32{uint32(seed), uint32(seed >> 32)})
		var normal vec3[T]
		normal[0], normal[1] = normalPair[T](r[0], r[1])
		normal[2], _ = normalPair[T](r[2], r[3])
		q, s := p.quat(i), p.scales(i)
		norm := quatNorm(q)
		for k := range q {
			q[k] /= norm
		}
		rotation := quatRotation(q)
		offset := rotation.transposed().apply(normal)
		for k := range offset {
			offset[k] *= s[k] * s[k]
		}
		gate := scale / (1 + exp(layout.NoiseSteepness*(Sigmoid(p.LogitOpacities[i])-layout.NoiseOpacity)))
		for k, x := range rotation.apply(offset) {
			p.Means[3*i+k] += x * gate / unitOf(units, i)
		}
	}
}

// Statistics adds what the strategy 3dgs watches for each visible splat: the norm of the 2D mean's gradient scaled
// by half the image, and one.
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
