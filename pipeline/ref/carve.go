package ref

// IsFloater reports whether a splat with a mean and a largest scale lies where half of the views that show it, or more,
// see empty space, or is larger than its distance to the nearest camera. A view's Near is the depth up to which it sees
// empty space.
func IsFloater[T Real](mean [3]T, scale T, views []View[T]) bool {
	shown, empty, nearest := 0, 0, T(3.4e38)
	for k := range views {
		v := &views[k]
		p := v.rotation().apply(mean).add(vec3[T](v.T))
		nearest = min(nearest, sqrt(p[0]*p[0]+p[1]*p[1]+p[2]*p[2]))
		if !v.shows(p) {
			continue
		}
		shown++
		if p[2] < v.Near {
			empty++
		}
	}
	return empty > 0 && 2*empty >= shown || scale > nearest
}

// shows reports whether a point in the camera's axes lies in the picture.
func (v *View[T]) shows(p vec3[T]) bool {
	if !(p[2] > 0) {
		return false
	}
	at := v.projectPoint(p)
	return at[0] >= 0 && at[1] >= 0 && at[0] < T(v.Width) && at[1] < T(v.Height)
}
