// Package twoview finds the geometry of two photos from matches, of one photo from points, and points from photos.
//
// The path of Relate (relate.go): matches become sights (sight.go), rays with the meaning of a pixel. search.go draws
// samples and keeps the best model (LO-RANSAC: Chum, Matas, Kittler 2003), which essential.go computes from 5 matches,
// fundamental.go from 7, or from 4 for a plane. minimise.go refines it, by the parameters of epipolar.go. decompose.go
// gives the pose. locate.go places a photo by points, triangulate.go points by photos, pose.go has what both share.
//
// All is float64. Results are a function of the arguments: random numbers are Philox's of Options.Key, and nothing runs
// side by side, so that callers may work on pairs in parallel.
//
// Rotations are row-major; cameras look along +z with x to the right and y down; pixel centres are at +0.5. Errors are
// in pixels of the photos, whatever their lenses (Terekhov, Larsson: Tangent Sampson Error, ICCV 2023).
package twoview
