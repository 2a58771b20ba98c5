// Package render draws models: from the views of a capture, on a trajectory or as panoramas, to pictures or a video.
// Run starts; renderframes.go is the loop, and renderrecord.go keeps what an interrupted call has drawn.
package render
