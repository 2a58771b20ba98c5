// Package initial makes the splats that training starts with: from the capture's points, from random ones, or from a
// file. Splats is where to start; Options says which. Each splat's scale comes from its three nearest neighbours.
package initial
