package twoview

import (
	"math"

	"vksplat/scene/adjust"
)

var infinite = math.Inf(1)

const maxFreedoms = 9

// normal holds the normal equations of a robust least squares problem.
type normal struct {
	freedoms int
	a        [maxFreedoms][maxFreedoms]float64 // J'WJ, lower triangle
	b        [maxFreedoms]float64              // J'Wr
	cost     float64
}

// add adds residuals that share a loss: r and their derivatives.
func (n *normal) add(loss adjust.Loss, r []float64, j [][maxFreedoms]float64) {
	s := 0.0
	for _, x := range r {
		s += x * x
	}
	cost, w := loss(s)
	n.cost += cost
	for k := range r {
		row := &j[k]
		for i := range n.freedoms {
			wi := w * row[i]
			n.b[i] += wi * r[k]
			for l := range i + 1 {
				n.a[i][l] += wi * row[l]
			}
		}
	}
}

// solve returns the step -(A + damping diag A)^-1 b; ok is false if A is not positive definite.
func (n *normal) solve(damping float64) (x [maxFreedoms]float64, ok bool) {
	a, f := n.a, n.freedoms
	for i := range f {
		x[i] = -n.b[i]
		a[i][i] += damping*a[i][i] + 1e-300
		for k := i + 1; k < f; k++ {
			a[i][k] = a[k][i]
		}
	}
	for c := range f { // Gauss and Jordan's elimination
		if !(a[c][c] > 0) {
			return x, false
		}
		for r := range f {
			if r == c {
				continue
			}
			s := a[r][c] / a[c][c]
			for k := c; k < f; k++ {
				a[r][k] -= s * a[c][k]
			}
			x[r] -= s * x[c]
		}
	}
	for i := range f {
		x[i] /= a[i][i]
	}
	return x, true
}

// minimise lowers the cost of a model by Levenberg and Marquardt's method, in a number of steps at most.
func minimise[M any](at M, freedoms, steps int, linearise func(m *M, n *normal),
	moved func(m *M, step [maxFreedoms]float64) M) M {
	here := normal{freedoms: freedoms}
	linearise(&at, &here)
	damping := 1e-9
	for range steps {
		step, ok := here.solve(damping)
		if !ok {
			damping = max(damping, 1e-8) * 100
			continue
		}
		next, there := moved(&at, step), normal{freedoms: freedoms}
		linearise(&next, &there)
		if !(there.cost < here.cost) {
			damping = max(damping, 1e-8) * 100
			continue
		}
		done := here.cost-there.cost <= 1e-6*here.cost
		at, here, damping = next, there, damping/100
		if done {
			break
		}
	}
	return at
}
