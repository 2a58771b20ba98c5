package ref

// Voter is a camera that judges splats by the points that it sees: space up to the depth Empty is empty, and Median is
// that of the points' depths. Both are 0 where it sees too few.
type Voter[T Real] struct {
	View[T]
	Empty, Median T
}

// IsFloater reports whether a splat with a mean and a largest scale lies where half of the views that can tell, or
// more, see empty space, or is larger than its distance to the nearest camera; scale is divided by what reach it may
// have instead. A view can tell if it shows the splat no deeper than half of its points.
func IsFloater[T Real](mean [3]T, scale T, voters []Voter[T]) bool {
	votes, empty, nearest := 0, 0, T(3.4e38)
	for k := range voters {
		v := &voters[k]
		p := v.rotation().apply(mean).add(vec3[T](v.T))
		nearest = min(nearest, sqrt(p[0]*p[0]+p[1]*p[1]+p[2]*p[2]))
		if p[2] > v.Median || !v.shows(p) {
			continue
		}
		votes++
		if p[2] < v.Empty {
			empty++
		}
	}
	return empty > 0 && 2*empty >= votes || scale > nearest
}

// shows reports whether a point in the camera's axes lies in the picture.
func (v *View[T]) shows(p vec3[T]) bool {
	if !(p[2] > 0) {
		return false
	}
	at := v.projectPoint(p)
	return at[0] >= 0 && at[1] >= 0 && at[0] < T(v.Width) && at[1] < T(v.Height)
}
