// Package scene holds captures and models on the host: cameras, COLMAP models,
// photos, splat files, initialisation and image metrics. Nothing here knows a
// GPU.
//
// Conventions. Cameras look along +z with x right and y down (OpenCV); x_cam =
// R x + T. Pixel centres lie at +0.5, so the principal point of a centred
// camera is (width/2, height/2), as in COLMAP. Two frames exist: the capture
// frame, which is that of the files, and the training frame, which
// Capture.Normalise moves to. Everything is float64 until it becomes a splat.
package scene
