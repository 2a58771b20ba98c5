// Package colmap reads and writes COLMAP's sparse models: cameras, images and points3D, binary or text.
//
// Read gives the photos of a model as scene.Records and its points; EachTrack tells which photos a point was matched
// in; Write makes a binary model. A Form is one of the two encodings.
package colmap
