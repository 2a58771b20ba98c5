package adjust

import (
	"errors"
	"math"
	"slices"
)

// gaugeDamping keeps the normal equations solvable, which leave open where the scene as a whole is. What they determine
// hardly changes.
const gaugeDamping = 1e-9

// Sigmas prepares standard deviations: of returns those of parameters of a lens, which must be free, in their units:
// square roots of the inverse normal equations' diagonal (Triggs et al., section 9), times the deviation of the
// weighted residuals. What the observations do not determine is large, not infinite.
func (p *Problem) Sigmas(loss Loss) (of func(lens int, params ...int) ([]float64, error), err error) {
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
	unsolved := errors.New("adjust cameras: the normal equations have no solution")
	if !ok {
		return nil, unsolved
	}
	return func(lens int, params ...int) ([]float64, error) {
		list := make([]float64, len(params))
		for i, param := range params {
			k := slices.Index(y.free[lens], param)
			if k < 0 {
				return nil, errors.New("adjust cameras: no observation determines the parameter")
			}
			at, unit := y.offset[len(p.Poses)+lens]+k, make([]float64, len(y.rhs))
			unit[at] = 1
			x, ok := solve(unit)
			if !ok {
				return nil, unsolved
			}
			list[i] = math.Sqrt(max(0, variance*x[at]))
		}
		return list, nil
	}, nil
}
