package adjust

import (
	"context"
	"math"
	"slices"

	"vksplat/internal/geom"
)

// Options say how to minimise.
type Options struct {
	Loss  Loss    // nil: that of least squares
	Steps int     // at most, accepted or not; 0: 50
	Gain  float64 // done when an accepted step lowers the cost by less than this share; 0: 1e-6
}

// Summary is what Solve did.
type Summary struct {
	Before, After float64 // cost: the sum of losses, square pixels
	Steps         int     // tried
	Converged     bool    // false if it stopped at Options.Steps
}

// Solve refines poses, points and the free parameters of lenses in place. The scene may move, turn and scale as a whole
// unless poses are fixed. It returns an error for numbers that are not finite, or when ctx is done; the problem is
// unchanged then.
func Solve(ctx context.Context, p *Problem, o Options) (sum Summary, err error) {
	if err := p.check(); err != nil {
		return sum, err
	}
	if o.Loss == nil {
		o.Loss = squares
	}
	if o.Steps == 0 {
		o.Steps = 50
	}
	if o.Gain == 0 {
		o.Gain = 1e-6
	}
	m := &minimiser{system: newSystem(p), at: p.state(), lambda: 1e-6, growth: 2}
	m.cost = p.cost(m.at, o.Loss)
	sum.Before = m.cost
	sum.Converged = len(m.rhs) == 0 && (p.PointsFixed || len(p.Points) == 0)
	fresh := false
	for sum.Steps < o.Steps && !sum.Converged {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		if !fresh {
			m.linearise(m.at, o.Loss)
			fresh = true
		}
		before := m.cost
		switch m.step(o.Loss) {
		case accepted:
			fresh = false
			sum.Converged = before-m.cost <= o.Gain*before
		case stuck:
			sum.Converged = true
		}
		sum.Steps++
	}
	sum.After = m.cost
	p.put(m.at)
	return sum, nil
}

// minimiser damps Gauss and Newton's steps as Nielsen (1999) does: by how well the linearisation predicts the cost.
type minimiser struct {
	*system
	at             *state
	cost           float64
	lambda, growth float64
}

type outcome int

const (
	rejected outcome = iota
	accepted
	stuck // no damping helps any more
)

func (m *minimiser) step(loss Loss) outcome {
	m.reduce(m.at, m.lambda)
	if delta, ok := m.solve(); ok {
		moves := m.moves(m.at, delta)
		next := m.moved(delta, moves)
		cost, predicted := m.p.cost(next, loss), m.predicted(delta, moves)
		if gain := (m.cost - cost) / predicted; predicted > 0 && cost < m.cost {
			m.at, m.cost = next, cost
			m.lambda *= max(1.0/3, 1-math.Pow(2*gain-1, 3))
			m.lambda = max(m.lambda, 1e-12)
			m.growth = 2
			return accepted
		}
	}
	m.lambda *= m.growth
	m.growth *= 2
	if m.lambda > 1e10 {
		return stuck
	}
	return rejected
}

// moved returns the state after a step.
func (m *minimiser) moved(delta []float64, moves [][3]float64) *state {
	s := &state{poses: slices.Clone(m.at.poses), points: make([][3]float64, len(moves))}
	for i := range s.poses {
		if d := delta[m.offset[i]:m.offset[i+1]]; len(d) > 0 {
			p := &s.poses[i]
			turn := geom.RotationFromVector(geom.Rotate(p.R, [3]float64(d[:3])))
			p.T = geom.Add(geom.Rotate(turn, p.T), geom.Rotate(p.R, [3]float64(d[3:])))
			p.R = geom.Product(turn, p.R)
		}
	}
	for i := range m.at.params {
		params := slices.Clone(m.at.params[i])
		for k, at := range m.free[i] {
			params[at] += delta[m.offset[len(s.poses)+i]+k]
		}
		s.params = append(s.params, params)
	}
	for i, d := range moves {
		s.points[i] = geom.Add(m.at.points[i], d)
	}
	return s
}

// predicted returns by how much the linearised cost falls in a step: d' (lambda D d - g).
func (m *minimiser) predicted(delta []float64, moves [][3]float64) (sum float64) {
	for i, d := range delta {
		sum += d * (m.lambda*max(m.diag[i], leastDamping)*d - m.grad[i])
	}
	for i, d := range moves {
		v := &m.v[i]
		for k, at := range [3]int{0, 3, 5} {
			sum += d[k] * (m.lambda*max(v[at], leastDamping)*d[k] - m.pointGrad[i][k])
		}
	}
	return sum
}
