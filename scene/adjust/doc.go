// Package adjust refines cameras and points by bundle adjustment: it minimises the distances between where photos show
// points and where the cameras project them (Triggs, McLauchlan, Hartley, Fitzgibbon: Bundle Adjustment, a Modern
// Synthesis, 2000), by Levenberg and Marquardt's method in float64.
//
// The path: Solve (solve.go) linearises all observations (linear.go), eliminates the points (schur.go), and solves what
// is left for poses and lenses, by Cholesky or by conjugate gradients (reduced.go). Point (point.go) refines a point
// alone. covariance.go says how well parameters are determined.
//
// Results do not depend on the number of cores: each sum belongs to one goroutine and has a fixed order.
package adjust
