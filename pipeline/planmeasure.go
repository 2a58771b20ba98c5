package pipeline

import (
	"fmt"
	"runtime"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/vk"
)

// PlanMeasuring plans the RAM to compare pictures of a finished model of n splats with the photos of cameras, without a
// training whose plan has it: see HostPlan.Measuring. A picture needs perPixel bytes besides its photo.
func (d *Device) PlanMeasuring(n, degree int, cams []scene.Camera, perPixel int64) (*HostPlan, error) {
	w, err := (&renderPlan{d: d, degree: degree, cameras: cams}).needs(n)
	if err != nil {
		return nil, err
	}
	h := &HostPlan{Budget: d.host, Process: w.fixed, Staging: w.staging + renderedBytes(cams)}
	least, err := h.forMeasuring(cams, perPixel)
	if err == nil {
		return h, nil
	}
	return nil, fault.WithHint(err, fmt.Sprintf("raise %s or more, or use smaller photos (%s).", w.raiseRAM(d, least),
		fault.Setting("downscale")))
}

// renderedBytes returns the RAM that RenderInto keeps: four floats a pixel of the largest picture.
func renderedBytes(cams []scene.Camera) (most int64) {
	for _, c := range cams {
		most = max(most, 16*int64(c.Width)*int64(c.Height))
	}
	return most
}

// PlanMeasuringFiles is PlanMeasuring for pictures that are read from files, of the cameras renders: no device is
// opened.
func PlanMeasuringFiles(o DeviceOptions, renders, cams []scene.Camera, perPixel int64) (*HostPlan, error) {
	budget, err := hostBudget(o.MaxRAM, systemMemory())
	if err != nil {
		return nil, err
	}
	h := &HostPlan{Budget: budget, Process: processBytes}
	for _, cost := range photo.DecodeCosts(renders) { // one of them is decoded at a time
		h.Staging = max(h.Staging, cost)
	}
	least, err := h.forMeasuring(cams, perPixel)
	if err != nil {
		return nil, fault.WithHint(err, fmt.Sprintf("raise %s to %s or more.",
			fault.Setting("max-ram"), mib(roundMiB(least))))
	}
	return h, nil
}

// forMeasuring fills the rest of a plan whose Budget, Process and Staging are set, and returns the least budget that
// has one.
func (h *HostPlan) forMeasuring(cams []scene.Camera, perPixel int64) (least int64, err error) {
	var pixels, cost int64
	for _, c := range cams {
		pixels = max(pixels, int64(c.Width)*int64(c.Height))
	}
	for _, c := range photo.DecodeCosts(cams) {
		cost = max(cost, c)
	}
	total, largest := photos.Totals(cams)
	h.Workers, h.Margin, h.Picture = runtime.GOMAXPROCS(0), marginOf(h.Budget), perPixel*pixels+metric.CompareBytes()
	h.Cache = h.Budget - h.Margin - h.Process - h.Staging
	photos := min(total, 2*largest)
	least = withMargin(h.Process + h.Staging + cost + photos + h.Picture)
	if h.Budget < least {
		return least, fmt.Errorf("plan measuring: %w: %s of RAM; program and driver take %s, transfers "+
			"%s, decoding the largest photo %s, two decoded ones %s, comparing a picture %s",
			ErrLittleRAM, vk.BytesText(h.Budget), vk.BytesText(h.Process), vk.BytesText(h.Staging), vk.BytesText(cost),
			vk.BytesText(photos), vk.BytesText(h.Picture))
	}
	return least, nil
}
