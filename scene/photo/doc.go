// Package photo turns the file of a photo into the pixels that a camera trains on.
//
// Decode is the entry: it recognises JPEG, PNG or WebP by the first bytes, decodes, resamples through the camera's lens
// and to its size in one step (resample.go), and applies the mask (mask.go). Index finds the photos of a folder by the
// names that a capture gives them, Locator those that were named on another machine.
package photo
