// Package bench says where the time of a training step goes: Measure times the passes of a Subject, and whole steps
// without the timestamps that this takes. Counts.Cost is what a pass has to move and compute at least, Rates are what a
// device does at most, and Cost.Floor makes a time of both. PassTimes watches an ordinary run.
package bench
