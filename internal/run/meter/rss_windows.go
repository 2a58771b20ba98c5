package meter

import "vksplat/pipeline"

// PeakRSS returns the bytes of memory that the process had resident at most, 0
// if the system does not tell.
func PeakRSS() int64 { return pipeline.PeakResident() }
