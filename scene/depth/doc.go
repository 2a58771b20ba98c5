// Package depth finds what is known of the depths of a capture's photos beside the photos themselves: of the points
// that its reconstruction saw in each (points.go), of clouds of points that are projected into them (visible.go), and
// of depth maps in files (maps.go), which may need a scale and an offset found by the points (fit.go). All of it
// becomes a list of pixels with depths of camera z for each camera.
//
// Of normal maps in files (normals.go) it makes cells of pixels with a direction in the camera's axes.
//
// The capture is in its own frame.
package depth
