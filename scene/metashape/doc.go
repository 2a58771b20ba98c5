// Package metashape reads the cameras of Agisoft Metashape, as File, Export, Export Cameras writes them in Agisoft's
// XML, with the points of a PLY beside it.
//
// Cameras look along +z with x to the right and y down; their matrix takes them to the chunk. A component's transform,
// scale R x + translation, takes the chunk to the world. The lens is that of appendix "Camera models" of the manual:
// with x = X/Z, y = Y/Z (fisheye: as long as the angle from the axis) and r² = x² + y²,
//
//	x' = x (1 + K1 r² + K2 r⁴ + K3 r⁶ + K4 r⁸) + P1 (r² + 2 x²) + 2 P2 x y
//	y' = y (1 + K1 r² + K2 r⁴ + K3 r⁶ + K4 r⁸) + P2 (r² + 2 y²) + 2 P1 x y
//	u = w/2 + cx + x' f + x' B1 + y' B2
//	v = h/2 + cy + y' f
//
// so that P1 stands where OpenCV has p2. The centre of the first pixel is at 0.5, 0.5.
//
// A rig has one pose, that of its master: the other cameras name the master's. Their sensors have a rotation and a
// location, which take their coordinates to those of the master's sensor.
//
// Agisoft does not say in which unit a location is. This package takes it for the chunk's, as the cameras' matrices
// are: public scripts multiply the Python API's sensor.location by chunk.transform.scale to get metres. (A manual by
// users says metres instead. The offsets that people type in, in the element reference, are in metres and not read.)
package metashape
