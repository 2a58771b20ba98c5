package adjust

import (
	"fmt"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Lens is a camera's calibration, shared by all poses that name it.
type Lens struct {
	scene.Calibration
	// which of the leading parameters move; those beyond Model.Calibrated never do
	Free [scene.MaxCalibrated]bool
	// standard deviation of a prior about the initial value, in the parameter's unit; 0 without a prior
	Sigma [scene.MaxCalibrated]float64
}

// Pose is where a photo was taken: x_cam = R x + T, R row-major.
type Pose struct {
	R     [9]float64
	T     [3]float64
	Lens  int  // in Problem.Lenses
	Fixed bool // the pose stays
}

// Mount is a camera that is fixed to others: x_cam = R x + T of a point x in the axes of the pose that they share.
type Mount struct {
	R    [9]float64
	T    [3]float64
	Lens int // in Problem.Lenses
}

// Observation is a photo that shows a point at a pixel of the lens's calibration, whose centres are at +0.5.
type Observation struct {
	Pose, Point int32
	X, Y        float64
	Mount       int32 // 1 + the place of the camera in Problem.Mounts; 0: the pose is the camera's
}

// Problem is what Solve refines in place.
type Problem struct {
	Lenses       []Lens
	Poses        []Pose
	Points       [][3]float64
	PointsFixed  bool
	Observations []Observation
	Mounts       []Mount // they stay, and so must the lenses where there are any
}

// check refuses what cannot be linearised.
func (p *Problem) check() error {
	for i, l := range p.Lenses {
		if _, err := l.Optics(l.Width, l.Height); err != nil {
			return fmt.Errorf("adjust cameras: lens %d: %w", i, err)
		}
	}
	for i := range p.Lenses {
		if len(p.Mounts) > 0 && len(p.Lenses[i].free()) > 0 {
			return fmt.Errorf("adjust cameras: lens %d is free, and there are mounts", i)
		}
	}
	for i, m := range p.Mounts {
		if m.Lens < 0 || m.Lens >= len(p.Lenses) || !geom.Finite(m.R[:]...) || !geom.Finite(m.T[:]...) {
			return fmt.Errorf("adjust cameras: mount %d is not finite or has no lens", i)
		}
	}
	for i, pose := range p.Poses {
		if pose.Lens < 0 || pose.Lens >= len(p.Lenses) || !geom.Finite(pose.R[:]...) || !geom.Finite(pose.T[:]...) {
			return fmt.Errorf("adjust cameras: pose %d is not finite or has no lens", i)
		}
	}
	for i, x := range p.Points {
		if !geom.Finite(x[:]...) {
			return fmt.Errorf("adjust cameras: point %d is not finite", i)
		}
	}
	for i, o := range p.Observations {
		if o.Pose < 0 || int(o.Pose) >= len(p.Poses) || o.Point < 0 || int(o.Point) >= len(p.Points) ||
			o.Mount < 0 || int(o.Mount) > len(p.Mounts) || !geom.Finite(o.X, o.Y) {
			return fmt.Errorf("adjust cameras: observation %d is not finite or has no pose, point or mount", i)
		}
	}
	return nil
}

// state is all that moves.
type state struct {
	params [][]float64 // of each lens
	poses  []Pose
	points [][3]float64
}

func (p *Problem) state() *state {
	s := &state{poses: slices.Clone(p.Poses), points: slices.Clone(p.Points)}
	for _, l := range p.Lenses {
		s.params = append(s.params, slices.Clone(l.Params))
	}
	return s
}

// put writes a state into the problem.
func (p *Problem) put(s *state) {
	for i := range p.Lenses {
		p.Lenses[i].Params = s.params[i]
	}
	copy(p.Poses, s.poses)
	copy(p.Points, s.points)
}

// free returns the places in Params of the parameters of a lens that move.
func (l *Lens) free() (list []int) {
	for i := range l.Model.Calibrated() {
		if l.Free[i] {
			list = append(list, i)
		}
	}
	return list
}
