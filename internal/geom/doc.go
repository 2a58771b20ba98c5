// Package geom is the vector algebra of poses: vectors of three, rotation matrices in row-major order, quaternions in
// the order w, x, y, z, all in float64.
package geom
