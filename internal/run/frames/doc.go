// Package frames draws the pictures that a browser asks for, of a training or of a model that this machine streams: at
// what size, at which pace, in which quality, as colour, depth or error.
package frames
