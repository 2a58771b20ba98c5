// Package opf reads projects in Pix4D's Open Photogrammetry Format, version 1.0: the calibrated cameras, the list of
// photos, the sizes of the sensors, and the points of the calibration.
//
// orientation_deg are omega, phi and kappa: Rx(omega) Ry(phi) Rz(kappa) takes the camera, which looks along -z with y
// up, to the world. The principal point is in pixels from the corner of the photo. Distortion is that of OpenCV, in the
// axes x right, y down: R1, R2, R3 are its k1, k2, k3 and T1, T2 its p1, p2. A cloud is a glTF, whose y is up, of a
// world whose z is up.
package opf
