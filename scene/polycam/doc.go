// Package polycam reads the raw data that Polycam exports: a JSON of camera for each photo, in keyframes. The optimised
// cameras and the photos without distortion, corrected_cameras and corrected_images, go before those of the session.
//
// t_ij is the row-major matrix from the camera, which looks along -z with y up, to the world of ARKit, whose y is up;
// fx, fy, cx and cy are pixels of a photo of width x height, from its corner.
package polycam
