package ply

import "vksplat/scene"

// ReadCloud reads the points of a capture from a point cloud. Points that are absurdly far away are left out, with a
// warning.
func ReadCloud(c *scene.Capture, file string) error {
	points, err := ReadPoints(file)
	if err != nil {
		return err
	}
	kept := points[:0]
	for _, p := range points {
		if scene.InRange(p.Pos) {
			kept = append(kept, p)
		}
	}
	bad := len(points) - len(kept)
	c.Points = kept
	c.WarnBadPoints(bad)
	return nil
}
