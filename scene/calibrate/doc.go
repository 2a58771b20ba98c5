// Package calibrate checks the lenses and poses of a reconstruction against its own observations, and refines them
// where observations that were held back say so.
//
// The path: Capture (capture.go) reads the reconstruction, leaves out photos that stand apart (apart.go), and climbs
// from the given lens to richer ones (ladder.go) on a sample of the points (network.go). If a rung explains the
// observations better that were held back, finish.go adjusts everything once more, brings it back into the capture's
// frame, and finds the poses of held-out photos, which had no part in it.
package calibrate
