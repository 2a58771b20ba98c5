// Package opensfm reads the reconstruction.json of OpenSfM, and of OpenDroneMap, which runs it: cameras, shots and
// points.
//
// A shot's rotation is a vector along the axis as long as the angle in radians; with the translation it takes the world
// to the camera, which looks along +z with y down. Lengths in the image are in units of its longer side, from its
// middle. The models are those of OpenSfM's page "Geometric Models".
package opensfm
