// Package edit is what a person changes of a finished model in the viewer: splats are removed by a box or a brush, and
// up is chosen. The model's file is not touched. An edit is a list of operations; carried out on the same splats, the
// same list leaves the same ones, with or without a device (Replay).
//
// State carries operations out and takes them back. Stroke says which splats a brush means in a picture, so that an
// operation can name them. Document is the list as a file, beside what was exported.
package edit
