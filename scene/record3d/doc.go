// Package record3d reads what Record3D exports from an iPhone as EXR and JPEG: a metadata.json beside a folder rgb of
// photos, which are called by the number of their frame.
//
// A pose is a quaternion x, y, z, w and a position that take the camera, which looks along -z with y up, to the world
// of ARKit, whose y is up. K is a matrix of pixels of a photo of w x h, column by column; where there are
// perFrameIntrinsicCoeffs, they are fx, fy, cx and cy of each frame.
package record3d
