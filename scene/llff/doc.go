// Package llff reads poses_bounds.npy, which the scripts of "Local Light Field Fusion" (Mildenhall et al. 2019) make of
// a COLMAP model for NeRF and its followers.
//
// A row is of one photo, in the order of the photos' names: a matrix of three rows [R | t | (height, width, focal
// length)] from camera to world, whose columns of R point down, right and backwards, and the depths of the nearest and
// the farthest point that the photo shows. There is no distortion, and the principal point is the middle.
package llff
