package adjust

import (
	"errors"
	"math"
)

// gaugeDamping keeps the normal equations solvable, which leave open where the scene as a whole is. What they determine
// hardly changes.
const gaugeDamping = 1e-9

// Sigmas returns the standard deviations of parameters of a lens, which must be free, in their units: square roots of
// the inverse normal equations' diagonal (Triggs et al., section 9), times the deviation of the weighted residuals.
// What the observations do not determine is large, not infinite.
func (p *Problem) Sigmas(loss Loss, lens int, params ...int) ([]float64, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	y, s := newSystem(p), p.state()
	sum := y.linearise(s, loss)
	y.reduce(s, gaugeDamping)
	freedoms := 2*len(y.rows) - len(y.rhs)
	if !p.PointsFixed {
		freedoms -= 3 * len(p.Points)
	}
	variance := sum / float64(max(1, freedoms))
	solve, ok := y.solver()
	list := make([]float64, len(params))
	for i, param := range params {
		at := -1
		for k, free := range y.free[lens] {
			if free == param {
				at = y.offset[len(p.Poses)+lens] + k
			}
		}
		if at < 0 {
			return nil, errors.New("adjust cameras: no observation determines the parameter")
		}
		unit := make([]float64, len(y.rhs))
		unit[at] = 1
		var x []float64
		if ok {
			x, ok = solve(unit)
		}
		if !ok {
			return nil, errors.New("adjust cameras: the normal equations have no solution")
		}
		list[i] = math.Sqrt(max(0, variance*x[at]))
	}
	return list, nil
}
