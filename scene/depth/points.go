package depth

import (
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// Points returns the depths of a capture's own points, which are those that its files hold: in each camera of those
// that the reconstruction saw there. They are at the places of the points' projections, which lenses and scaling need
// no more care for than for splats. Where the reconstruction does not say what it saw, those points are taken that no
// other hides; tracked tells.
func Points(c *scene.Capture, points []scene.Point) (known Known, tracked bool, err error) {
	known = make(Known, len(c.Cameras))
	err = colmap.EachTrack(c, func(point int, cams []int) {
		if point >= len(points) {
			return
		}
		for _, i := range cams {
			if x, y, depth, in := c.Cameras[i].Project(points[point].Pos, nearest, farthest); in {
				known[i] = append(known[i], pixel(x, y, depth))
			}
		}
	})
	if err != nil {
		return nil, false, err
	}
	if known.Count() == 0 {
		return Visible(c.Cameras, points), false, nil
	}
	for i := range known {
		known[i] = thin(known[i])
	}
	return known, true, nil
}
