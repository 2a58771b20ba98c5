// Package load reads a capture: it finds the reconstruction and the photos in a folder, matches them, and leaves out,
// with a warning, what cannot be used.
//
// Capture is the one entry. discover.go decides what is in the folder, package colmap or transforms reads it as
// scene.Records, locate.go and photos.go find the photos and make a scene.Camera of each, wildposes.go drops poses that
// no photo can have.
package load
