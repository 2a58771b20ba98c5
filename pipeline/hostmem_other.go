//go:build !linux

package pipeline

// ReadHostMemory asks the system for its memory; here it is not asked.
func ReadHostMemory() HostMemory { return HostMemory{} }

// residentBytes would return what the process has resident; here the system is not asked.
func residentBytes() int64 { return 0 }
