// Package models opens models to draw them and says what is wrong with them before a device is asked: numbers that are
// none, splats that hide all others, a near plane beyond everything.
package models
