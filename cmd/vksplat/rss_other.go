//go:build !unix

package main

// peakRSS returns 0: this system has no getrusage.
func peakRSS() int64 { return 0 }
