// Package scene holds the nouns of a capture: Camera, its Calibration (the lens), Image, Point, Frame, Capture, and
// Splats, the model on the host. What is done with them stands in packages of their own: load reads a capture, photo
// decodes its pictures, initial makes the first splats, splatfile reads and writes models. Nothing here or below knows
// a GPU.
//
// Conventions. Cameras look along +z with x right and y down (OpenCV); x_cam = R x + T. Pixel centres lie at +0.5, so
// the principal point of a centred camera is (width/2, height/2), as in COLMAP. Two frames exist: the capture frame,
// which is that of the files, and the training frame, which Capture.Normalise moves to. Everything is float64 until it
// becomes a splat.
//
// Cameras are trained on as pinholes or equidistant fisheyes without distortion. What a physical camera does beside
// that is in its Calibration: Views makes the cameras of a photo, and photo.Decode resamples the photo's pixels to
// theirs, in one step with reduction. Image.Mask says which pixels count.
package scene
