// Package reconstruct finds the cameras of photos by the program's own means: Find has their features, Match the
// geometry of pairs, both on a device; Map makes a COLMAP model of these.
package reconstruct
