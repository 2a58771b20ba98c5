package pipeline

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/scene"
)

// TestPlanMeasuring plans comparisons without training, from the least that is accepted to ample: what is in memory at
// once fits in the budget, and less than the least is refused with what would be enough.
func TestPlanMeasuring(t *testing.T) {
	old := runtime.GOMAXPROCS(8)
	defer runtime.GOMAXPROCS(old)
	const perPixel = 32
	cams := make([]scene.Camera, 20)
	for i := range cams {
		cams[i] = scene.Camera{Width: 1600, Height: 1200}
	}
	_, largest := photos.Totals(cams)
	least, err := (&HostPlan{Budget: 1, Process: 1 << 20, Staging: 1 << 19}).forMeasuring(cams, perPixel)
	if !errors.Is(err, ErrLittleRAM) {
		t.Fatalf("a byte of RAM: %v", err)
	}
	last := 0
	for _, more := range []int64{0, 1, 3, 8, 40, 200} {
		h := &HostPlan{Budget: least + more*largest, Process: 1 << 20, Staging: 1 << 19}
		if again, err := h.forMeasuring(cams, perPixel); err != nil || again != least {
			t.Fatalf("%d, %d: %v", again, least, err)
		}
		o, atOnce := h.Measuring(cams)
		took := h.Process + h.Staging + h.Margin + int64(atOnce)*h.Picture + o.Bytes + o.FlightBytes
		if took > h.Budget || atOnce < max(last, 1) || h.Picture < perPixel*1600*1200 {
			t.Errorf("%d photos more: %d pictures at once after %d, %d bytes of %d", more, atOnce, last, took, h.Budget)
		}
		last = atOnce
	}
	if last < 3 {
		t.Errorf("%d pictures at once in ample memory", last)
	}
	if _, err := PlanMeasuringFiles(DeviceOptions{MaxRAM: "64M"}, cams, cams, perPixel); !errors.Is(err,
		ErrLittleRAM) || !strings.Contains(fault.Hint(err), "max-ram") {
		t.Errorf("files in little RAM: %v", err)
	}
}
