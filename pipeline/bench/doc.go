// Package bench says where the time of a training step goes: Measure times the passes of a Subject, Counts.Cost is what
// a pass has to move and compute at least, and Rates are what a device does at most. PassTimes watches a run that
// nobody measures.
package bench
