package scene

// KnownDepth is the depth of a pixel of a camera's picture by something else than its photo.
type KnownDepth struct {
	X, Y  uint16  // column and row
	Depth float32 // camera z, in the unit of the frame that the camera is in
}
