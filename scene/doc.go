// Package scene holds captures and models on the host: cameras, COLMAP models,
// photos, splat files, initialisation and image metrics. Nothing here knows a
// GPU.
//
// Conventions. Cameras look along +z with x right and y down (OpenCV); x_cam =
// R x + T. Pixel centres lie at +0.5, so the principal point of a centred
// camera is (width/2, height/2), as in COLMAP. Two frames exist: the capture
// frame, which is that of the files, and the training frame, which
// Capture.Normalise moves to. Everything is float64 until it becomes a splat.
//
// Cameras are trained on as pinholes or equidistant fisheyes without distortion.
// What a physical camera does beside that is in its Calibration: Views makes the
// cameras of a photo, and Decode resamples the photo's pixels to theirs, in one
// step with reduction. Image.Mask says which pixels count.
package scene
