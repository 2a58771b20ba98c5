package ply

import "vksplat/scene"

// ReadCloud reads the points of a capture from a point cloud. Points that are not finite or absurdly far away are left
// out, with a warning.
func ReadCloud(c *scene.Capture, file string) error {
	points, note, err := ReadPoints(file)
	if err != nil {
		return err
	}
	if note != "" {
		c.Warnings = append(c.Warnings, scene.Warning{Code: "long-cloud", Count: 1, Text: file + ": " + note,
			Remedy: "export the points again if some are missing"})
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
