// Package inria reads and writes the files that INRIA's trainer leaves beside a model and that viewers look for:
// cameras.json and cfg_args.
package inria
