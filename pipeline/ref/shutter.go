package ref

// Motion is how a camera moves while its rows are read out, from the pose of the top edge of the picture to that of the
// bottom, along the axes of the middle one: shared/shutter.glsl.
type Motion[T Real] struct {
	Turn [3]T // rotation vector
	Move [3]T // of the centre
}

const (
	shutterSteps = 2   // in which a splat's row is found
	shutterReach = 1.0 // the longest time from the middle row that a pose is taken at, of the readout's
	shutterDrift = 0.5 // the most that a splat moves by over the readout, of the picture's height
)

// shear is what a moving camera does to the picture around a splat's mean: at = by at' + off.
type shear[T Real] struct {
	by  mat2[T]
	off [2]T // keeps the mean where it is
}

// atTime returns the view with the pose that it has at time t, -1/2 at the top edge of the picture and 1/2 at the
// bottom.
func (v *View[T]) atTime(t T) *View[T] {
	c := *v
	e, _ := turned(vec3[T](v.Motion.Turn).scale(-t))
	r := e.times(v.rotation())
	for i := range r {
		copy(c.R[3*i:], r[i][:])
	}
	c.T = e.apply(vec3[T](v.T).sub(vec3[T](v.Motion.Move).scale(t)))
	return &c
}

// drift is by how much the motion of the view, which is that of time t, moves the image of a point of the world over
// the readout, of the picture's height.
func (v *View[T]) drift(t T, mean vec3[T]) (d [2]T) {
	q := v.rotation().apply(mean).add(vec3[T](v.T))
	e, _ := turned(vec3[T](v.Motion.Turn).scale(-t))
	along := vec3[T](v.Motion.Turn).cross(q).add(e.apply(v.Motion.Move)).scale(-1)
	plane := v.plane()
	_, slope := v.Lens.bend(plane.projectPoint(q))
	for i, row := range v.focal().mul(slope) {
		d[i] = plane.pointVJP(q, row, mat23[T]{}).dot(along) / T(v.Height)
		d[i] = min(max(d[i], -shutterDrift), shutterDrift)
	}
	return d
}

// atRow returns the view with the pose of the row that shows a point of the world, and what its motion does to the
// picture around that.
func (v *View[T]) atRow(mean vec3[T]) *View[T] {
	row, t := v, T(0)
	for range shutterSteps {
		at := row.projectPoint(row.rotation().apply(mean).add(vec3[T](row.T)))
		t += (at[1]/T(v.Height) - 0.5 - t) / (1 - row.drift(t, mean)[1])
		if !(t > -shutterReach) {
			t = -shutterReach
		}
		t = min(t, shutterReach)
		row = v.atTime(t)
	}
	d, out := row.drift(t, mean), *row
	out.Motion = nil
	if abs(t) < shutterReach {
		slow := 1 / (1 - d[1])
		s := &shear[T]{by: mat2[T]{{1, d[0] * slow}, {0, slow}}}
		at := row.projectPoint(row.rotation().apply(mean).add(vec3[T](row.T)))
		moved := s.by.apply(at)
		s.off = [2]T{at[0] - moved[0], at[1] - moved[1]}
		out.sheared = s
	}
	return &out
}

func (v *View[T]) ofSplat(p *Params[T], i int) *View[T] {
	switch {
	case v.held != nil:
		return v.held[i]
	case v.Motion == nil:
		return v
	}
	return v.atRow(p.mean(i))
}
