//go:build !linux

package pipeline

// ReadHostMemory asks the system for its memory; here it is not asked.
func ReadHostMemory() HostMemory { return HostMemory{} }
