package sky

import (
	"slices"

	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// meanUp returns the mean up direction of the photos as people see them: poses are of the pixels as stored, which
// phones turn. If the photos agree on none, as when tags were not updated, it is that of the pixels.
func meanUp(cams []scene.Camera) ([3]float64, error) {
	shown := slices.Clone(cams)
	parallel.For(len(cams), func(i int) {
		if cams[i].Photo != "" {
			return // a face of a panorama
		}
		tag, err := photo.Orientation(cams[i].Path)
		if err != nil {
			return // a photo that cannot be read says nothing
		}
		r := &shown[i].R
		copy(r[3:6], down(tag, r))
	})
	if up, err := scene.MeanUp(shown); err == nil {
		return up, nil
	}
	return scene.MeanUp(cams)
}

// down is the direction down in a photo with an EXIF orientation, of a camera with the rotation r: against the side
// where the first row of the pixels or, in photos that lie on their sides, their first column is shown.
func down(tag int, r *[9]float64) []float64 {
	axis, sign := r[3:6], 1.0
	if tag > 4 {
		axis = r[0:3]
	}
	if tag == 3 || tag == 4 || tag == 7 || tag == 8 {
		sign = -1
	}
	return []float64{sign * axis[0], sign * axis[1], sign * axis[2]}
}
