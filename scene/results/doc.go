// Package results reads and writes scores: results.json and per_view.json in the layout of INRIA's trainer, which
// tables and papers are made from.
package results
