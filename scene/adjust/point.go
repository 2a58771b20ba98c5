package adjust

import (
	"vksplat/internal/geom"
	"vksplat/scene"
)

// Sight is a camera that shows a point at a pixel of the lens's calibration.
type Sight struct {
	Pose   *Pose
	Optics *scene.Optics
	X, Y   float64
}

// pointFit is how well a point agrees with its sights, and its normal equations.
type pointFit struct {
	row
	cost float64
}

// Point refines a point alone, as Solve does with cameras that are fixed. o has all of its fields set.
func Point(x [3]float64, sights []Sight, o Options) [3]float64 {
	at, lambda := fitPoint(x, sights, o.Loss), 1e-6
	for range o.Steps {
		v := at.square
		for _, d := range [3]int{0, 3, 5} {
			v[d] += lambda * max(v[d], leastDamping)
		}
		inverse := invert(v)
		moved := geom.Sub(x, times(&inverse, at.grad[:]))
		next := fitPoint(moved, sights, o.Loss)
		if !(next.cost < at.cost) {
			lambda *= 100
			continue
		}
		done := at.cost-next.cost <= o.Gain*at.cost
		if x, at, lambda = moved, next, lambda/3; done {
			break
		}
	}
	return x
}

func fitPoint(x [3]float64, sights []Sight, loss Loss) (f pointFit) {
	var slope scene.Slope
	for i := range sights {
		s := &sights[i]
		weight, cost, d := observe(s.Pose, s.Optics, x, [2]float64{s.X, s.Y}, loss, &slope)
		f.cost += cost
		if weight > 0 {
			f.add(&slope, &d, weight)
		}
	}
	return f
}
