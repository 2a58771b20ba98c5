//go:build !linux

package pipeline

// systemMemory asks the system for its memory; here it is not asked.
func systemMemory() hostMemory { return hostMemory{} }

// residentBytes would return what the process has resident; here the system is not asked.
func residentBytes() int64 { return 0 }
