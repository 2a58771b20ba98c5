package main

import "vksplat/pipeline"

// peakRSS returns the bytes of memory that the process had resident at most, 0
// if the system does not tell.
func peakRSS() int64 { return pipeline.PeakResident() }
