package vk

import (
	"syscall"
	"unsafe"
)

// processMemory is PROCESS_MEMORY_COUNTERS of psapi.h.
type processMemory struct {
	size, pageFaults       uint32
	peakWorkingSet         uintptr
	workingSet             uintptr
	peakPaged, paged       uintptr
	peakNonPaged, nonPaged uintptr
	pagefile, peakPagefile uintptr
}

var getProcessMemoryInfo = syscall.NewLazyDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// PeakResident returns the bytes of memory that the process had resident at most,
// 0 if the system does not tell. It stands here because only this package may pass
// pointers to the system.
func PeakResident() int64 {
	self, err := syscall.GetCurrentProcess()
	if err != nil || getProcessMemoryInfo.Find() != nil {
		return 0
	}
	m := processMemory{size: uint32(unsafe.Sizeof(processMemory{}))}
	if ok, _, _ := getProcessMemoryInfo.Call(uintptr(self), uintptr(unsafe.Pointer(&m)), uintptr(m.size)); ok == 0 {
		return 0
	}
	return int64(m.peakWorkingSet)
}
