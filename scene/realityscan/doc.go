// Package realityscan reads the cameras of RealityScan (formerly RealityCapture), as its export of the registration
// "Internal/External camera parameters" writes them in CSV, with the points of a PLY beside it.
//
// A row has name, x, y, alt, heading, pitch, roll, f, px, py, k1..k4, t1, t2; the columns may be fewer and in another
// order. x, y and alt are the position; the axes of a camera that looks along -z with y up are Rz(-heading) Rx(pitch)
// Ry(roll), in degrees. f is the focal length of film of 36 mm; 36 mm, and 1 in px and py, are the longer side of the
// photo; px and py are offsets from its middle to the right and down. k1..k4 are of r², r⁴, r⁶, r⁸, and t1, t2 stand
// where OpenCV has p1, p2. (The sources are nerfstudio's and Brush's importers, which agree.)
package realityscan
