// Package mapping finds cameras and points from photos whose keypoints were matched and verified in pairs: structure
// from motion. It grows one model from its best pair, many photos at a time.
//
// The path: Map (mapping.go) finds focal lengths that explain the fundamental matrices (focal.go), or by which pairs of
// fisheyes have most inliers (fisheye.go), drops pairs whose rotations contradict the others (rotations.go), joins
// matches into tracks (tracks.go), begins with the best pair (seed.go), and then, round by round, locates photos by the
// points that they show (grow.go), or by a pair and few points (attach.go), triangulates tracks (points.go) and adjusts
// all of it (refine.go): by a sample of tracks (sample.go), by all only at the end. Then lenses get their models
// (lens.go), and rigs one pose for each moment (rig.go). missing.go says why photos are not in the model.
//
// Pixels have their centres at +0.5, poses are x_cam = R x + t, all numbers are float64. Results depend on the input
// and the seed alone: parallel work writes to places of its own, sums have a fixed order, and random numbers are
// Philox's.
package mapping
