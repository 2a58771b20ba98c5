// Package bundler reads the files of Noah Snavely's Bundler, version 0.3, which RealityScan and others export, too: a
// bundle of cameras and points, and a list of the photos in the same order.
//
// A point X is P = R X + t in the axes of a camera that looks along -z with y up; p = -P / P.z; p' = f (1 + k1 |p|² +
// k2 |p|⁴) p in pixels from the middle of the photo, x to the right and y up. A focal length of 0 marks a photo that
// was not registered.
package bundler
