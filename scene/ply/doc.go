// Package ply reads and writes PLY files: models in the layout of 3D Gaussian splatting, and point clouds of any
// layout.
//
// Read and Write handle a model as a whole, File piece by piece. Meta is what comments of the header say
// about a model: training step, frame, background. Errors name what is wrong in the file.
package ply
