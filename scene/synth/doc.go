// Package synth renders made-up captures by ray tracing: a room of solids, or a city, with exact poses and points. The
// demo, tests and benchmarks train on them.
package synth
