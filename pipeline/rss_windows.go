package pipeline

import "vksplat/vk"

// PeakResident returns the bytes of memory that the process had resident at most, 0 if the system does not tell.
func PeakResident() int64 { return vk.PeakResident() }
