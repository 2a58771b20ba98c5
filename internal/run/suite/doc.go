// Package suite trains and measures many captures by many recipes with many seeds, each run in a process of its own,
// and makes the tables of a paper. Read reads a suite's file; Run goes on where an earlier call stopped.
package suite
