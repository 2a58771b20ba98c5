// Package features finds the keypoints of a photo on a device, and describes them: SIFT (Lowe 2004) with the choices of
// VLFeat that COLMAP uses, from the doubled photo on, with the roots of L1-normalised descriptors.
//
// The largest keypoints are kept. So the octaves of the photo as it is come first, and the doubled photo only where
// they leave room (features.go). Each goes over the device twice: once to detect (detect.go), and once, when the host
// has chosen among all that is there, to describe. Between them nothing is kept, and octaves that are large pass
// through a fixed budget in bands of rows (plan.go), whose size changes no byte. Programs and memory stay for the next
// photo of the size (lane.go).
package features
