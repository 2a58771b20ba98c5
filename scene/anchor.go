package scene

// Anchor is a point of a reconstruction that a photo was found to show.
type Anchor struct {
	Point [3]float64 // in the frame that the camera is in
	X, Y  float64    // where, in pixels of the camera's picture
}
