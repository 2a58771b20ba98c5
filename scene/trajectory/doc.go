// Package trajectory makes camera paths: splines, ellipses, spirals and orbits derived from the cameras of a capture
// (Make), or the keyframes of a file (Read).
package trajectory
