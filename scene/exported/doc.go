// Package exported has what the readers of other programs' cameras share: files of bounded size, poses in the axes of
// this project, photos that a name means, and the cloud of points beside them.
package exported
