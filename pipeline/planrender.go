package pipeline

import (
	"fmt"
	"runtime"

	"vksplat/internal/fault"
	"vksplat/pipeline/failure"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/vk"
)

// renderNeeds says what making pictures of a model takes at least, in bytes.
type renderNeeds struct {
	device  int64 // about: views whose pairs are too many are cut into bands, but for a row of tiles
	fixed   int64 // of RAM, for the program and the driver
	loading int64 // of RAM beside that, for the splats on their way to the device
	// of RAM beside that, while they are taken there, or while pictures are read; on unified memory the device's
	staging int64
	picture int64 // of RAM beside that, for one that is encoded
	kept    int64 // of RAM beside a picture, by the caller: RenderConfig.Kept
}

// encodeBytes is about what encoding a pixel takes, of bytes and of floats.
func (p *parts) encodeBytes() int64 {
	if p.packed {
		return 4 + p.beside
	}
	return 12 + p.beside
}

// renderNeeds fills the needs of n splats and the views of cameras, drawn in as many bands as can be.
func (d *Device) renderNeeds(n, degree int, cameras []scene.Camera, p *parts) (w renderNeeds, err error) {
	e, err := newSetup(d.dev, degree, cameras, renderKinds)
	if err != nil {
		return w, err
	}
	e.model.setUnit(n)
	e.parts, e.bands = p, e.mostBands()
	units := e.model.units(n)
	w, err = d.needsOf(e, units, int64(units)*e.model.unitBytes(), e.model.stagingBytes())
	w.loading = loadingBytes(n, degree)
	return w, err
}

// needsOf fills the needs of an engine that is not there, but for loading: a model of so many units and bytes, and of
// RAM what is mapped beside the pictures.
func (d *Device) needsOf(e *setup, units int, model, mapped int64) (w renderNeeds, err error) {
	scratch, err := e.scratchBytes(units, minIsects, e.bands)
	if err != nil {
		return w, err
	}
	p := e.parts
	w.staging = mapped + rendersInFlight*p.bytes()*int64(e.drawn.partPixels(e.bands))
	bare := model + scratch + fixedBytes
	if unified(d) {
		bare += w.staging
	}
	for need := roundMiB(bare); need > w.device; need = roundMiB(bare + planSlack(w.device)) {
		w.device = need // more slack for more memory: by an eighth at most each time
	}
	if unified(d) {
		w.staging = 0
	}
	w.fixed = processBytes + d.driver
	w.picture = (p.bytes()+p.encodeBytes())*int64(e.drawn.maxPixels) + metric.CompareBytes()
	return w, nil
}

// loadingBytes is what splats take in RAM as they are in the file and as they are drawn.
func loadingBytes(n, degree int) int64 {
	return 2 * 4 * int64(n) * int64(11+3*scene.SHCoefficients(degree))
}

// host is what all that takes of RAM.
func (w renderNeeds) host() int64 {
	return withMargin(w.fixed + w.staging + max(w.loading, w.kept+w.picture))
}

// atOnce is how many pictures may be in RAM of budget bytes at once: one or more.
func (w renderNeeds) atOnce(budget int64) int {
	return int(max(1, min((w.roomIn(budget)-w.kept)/w.picture, int64(runtime.GOMAXPROCS(0)+rendersInFlight),
		mostPictures)))
}

// roomIn is what of a budget is left for pictures and the caller.
func (w renderNeeds) roomIn(budget int64) int64 {
	return budget - marginOf(budget) - w.fixed - w.staging
}

// shortOfRender adds to an error of a device's budget that cannot hold n splats and their views the flag that sets it,
// and how much is enough; others are further ways out, "" for none. Other errors stay as they are.
func (d *Device) shortOfRender(n int, w renderNeeds, err error, others ...string) error {
	if !IsShortage(err) || vk.RefusedByDriver(err) {
		return err
	}
	return fmt.Errorf("%w: %v", d.tooLittleToRender(n, w, others...), err)
}

// tooLittleToRender makes that error without a cause.
func (d *Device) tooLittleToRender(n int, w renderNeeds, others ...string) error {
	need := max(w.device, roundMiB(d.dev.Budget()+1)) // what there is was too little
	raise := fault.Setting("max-vram") + " to " + mib(need)
	if info := d.dev.Info(); info.Unified() && !d.vram {
		if raise = fault.Setting("max-ram") + " to " + mib(smallestPool(need, w.host(), 0, false)); need >
			info.DefaultBudget() { // above that only --max-vram leads
			raise = fmt.Sprintf("%s to %s and %s to %s", fault.Setting("max-vram"), mib(need), fault.Setting("max-ram"),
				mib(need+roundMiB(w.host())))
		}
	}
	return fault.WithHint(fmt.Errorf("create renderer: %w: %d splats and their pictures take about %s of the device, "+
		"there are %s", ErrTooSmall, n, vk.BytesText(w.device), vk.BytesText(d.dev.Budget())),
		failure.AnyOf(append([]string{"raise " + raise + " or more"}, others...)...))
}

// ramForRender returns an error where RAM is too small for n splats and their pictures; smaller is RenderConfig's.
func (d *Device) ramForRender(n int, w renderNeeds, smaller string) error {
	least := w.host()
	if d.host >= least {
		return nil
	}
	enough := roundMiB(least)
	switch {
	case unified(d) && d.vram:
		enough += roundMiB(d.dev.Budget())
	case unified(d):
		enough = smallestPool(w.device, least, 0, false)
	}
	return fault.WithHint(fmt.Errorf("create renderer: %w: %d splats and a picture take %s with program "+
		"and driver, there are %s", ErrLittleRAM, n,
		vk.BytesText(least), vk.BytesText(d.host)), failure.AnyOf("raise "+fault.Setting("max-ram")+" to "+mib(enough)+
		" or more",
		smaller))
}
