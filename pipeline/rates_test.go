package pipeline

import (
	"testing"

	must "vksplat/internal/musttest"
)

// TestMeasureRates wants rates that any machine of this century has and none of the next decade, and all memory back.
func TestMeasureRates(t *testing.T) {
	d := testDevice(t)
	before := d.dev.Stats().InUse
	r := must.Get(d.MeasureRates())(t)
	t.Logf("%.1f GB/s, %.1f G instructions/s, %.1f G shared words/s, %.1f G shuffles/s, launches of %.2f us",
		r.CopyBytes/1e9, r.Instructions/1e9, r.SharedWords/1e9, r.Shuffles/1e9, 1e6*r.LaunchSeconds)
	if !(r.CopyBytes > 1e8 && r.CopyBytes < 1e15) || !(r.Instructions > 1e8 && r.Instructions < 1e17) ||
		!(r.SharedWords > 1e7 && r.SharedWords < 1e16) || !(r.Shuffles > 1e7 && r.Shuffles < 1e16) ||
		!(r.LaunchSeconds > 1e-8 && r.LaunchSeconds < 1e-2) {
		t.Errorf("%+v", r)
	}
	if after := d.dev.Stats().InUse; after != before {
		t.Errorf("%d bytes in use, %d before", after, before)
	}
}
