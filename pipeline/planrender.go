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

// renderNeeds are the least bytes that pictures of a model need: of the device, and of RAM.
type renderNeeds struct {
	device  int64 // about: views with too many pairs are cut into bands, down to a row of tiles
	fixed   int64 // of RAM, for the program and the driver
	loading int64 // of RAM, for the splats while they are uploaded
	staging int64 // of RAM, to upload splats and read pictures; on unified memory the device's
	picture int64 // of RAM, for one that is encoded
	kept    int64 // of RAM, by the caller: RenderConfig.Kept
}

// encodeBytes returns about the size of a pixel that is encoded, of bytes or of floats.
func (p *parts) encodeBytes() int64 {
	if p.packed {
		return 4 + p.beside
	}
	return 12 + p.beside
}

type renderPlan struct {
	d       *Device
	degree  int // of spherical harmonics
	cameras []scene.Camera
	cfg     RenderConfig
}

// setup returns a setup for pictures in as many bands as possible, with buffers that do not exist.
func (p *renderPlan) setup() (*setup, error) {
	s, err := newSetup(p.d.dev, p.degree, p.cameras, renderKinds)
	if err == nil {
		s.parts, s.bands = p.cfg.inParts(), s.mostBands()
	}
	return s, err
}

// needs returns the needs of n splats.
func (p *renderPlan) needs(n int) (w renderNeeds, err error) {
	s, err := p.setup()
	if err != nil {
		return w, err
	}
	s.model.setUnit(n)
	units := s.model.units(n)
	w, err = p.needsOf(s, units, int64(units)*s.model.unitBytes(), s.model.stagingBytes())
	w.loading = loadingBytes(n, p.degree)
	return w, err
}

// needsOf returns the needs of a setup, but for loading: of a model of some units and bytes, and of mapped RAM besides
// the pictures.
func (p *renderPlan) needsOf(s *setup, units int, model, mapped int64) (w renderNeeds, err error) {
	scratch, err := s.scratchBytes(units, minIsects, s.bands)
	if err != nil {
		return w, err
	}
	w.staging = mapped + rendersInFlight*s.parts.bytes()*int64(s.drawn.partPixels(s.bands))
	bare := model + scratch + fixedBytes
	if unified(p.d) {
		bare += w.staging
		w.staging = 0
	}
	w.device = withSlack(bare)
	w.fixed = processBytes + p.d.driver
	w.picture = (s.parts.bytes()+s.parts.encodeBytes())*int64(s.drawn.maxPixels) + metric.CompareBytes()
	return w, nil
}

// withSlack returns the least budget, in whole MiB, that holds bytes and its own slack.
func withSlack(bytes int64) (need int64) {
	for next := roundMiB(bytes); next > need; next = roundMiB(bytes + planSlack(need)) {
		need = next // more slack for more memory: by an eighth at most each time
	}
	return need
}

// loadingBytes returns the RAM of splats as they are in the file and as they are drawn.
func loadingBytes(n, degree int) int64 {
	return 2 * 4 * int64(n) * int64(11+3*scene.SHCoefficients(degree))
}

// host returns the RAM for all of that.
func (w renderNeeds) host() int64 {
	return withMargin(w.fixed + w.staging + max(w.loading, w.kept+w.picture))
}

// atOnce returns how many pictures may be in RAM of budget bytes at once: one or more.
func (w renderNeeds) atOnce(budget int64) int {
	return int(max(1, min((w.roomIn(budget)-w.kept)/w.picture, int64(runtime.GOMAXPROCS(0)+rendersInFlight),
		mostPictures)))
}

// roomIn returns the part of a budget that is left for pictures and the caller.
func (w renderNeeds) roomIn(budget int64) int64 {
	return budget - marginOf(budget) - w.fixed - w.staging
}

// raise names the setting to raise, and to what, so that the device has need bytes.
func (w renderNeeds) raise(d *Device, need int64) string {
	info := d.dev.Info()
	switch {
	case !info.Unified() || d.vram:
		return fault.Setting("max-vram") + " to " + mib(need)
	case need > info.DefaultBudget(): // above that max-ram alone does not help
		return fmt.Sprintf("%s to %s and %s to %s", fault.Setting("max-vram"), mib(need), fault.Setting("max-ram"),
			mib(need+roundMiB(w.host())))
	}
	return fault.Setting("max-ram") + " to " + mib(smallestPool(need, w.host(), 0, false))
}

// raiseRAM names the setting to raise, and to what, so that there are least bytes of RAM besides the device's.
func (w renderNeeds) raiseRAM(d *Device, least int64) string {
	enough := roundMiB(least)
	switch {
	case unified(d) && d.vram:
		enough += roundMiB(d.dev.Budget())
	case unified(d):
		enough = smallestPool(w.device, least, 0, false)
	}
	return fault.Setting("max-ram") + " to " + mib(enough)
}

// tooSmall adds to an error of a device's budget that cannot hold n splats and their pictures how much is enough;
// others are further ways out, "" for none. Other errors are returned as they are.
func (p *renderPlan) tooSmall(n int, w renderNeeds, err error, others ...string) error {
	if !IsShortage(err) || vk.RefusedByDriver(err) {
		return err
	}
	return fmt.Errorf("%w: %v", p.tooFewBytes(n, w, others...), err)
}

// tooFewBytes makes that error without a cause.
func (p *renderPlan) tooFewBytes(n int, w renderNeeds, others ...string) error {
	need := max(w.device, roundMiB(p.d.Budget()+1)) // what there is was too little
	return fault.WithHint(fmt.Errorf("create renderer: %w: %d splats and their pictures take about %s of the device, "+
		"there are %s", ErrTooSmall, n, vk.BytesText(w.device), vk.BytesText(p.d.Budget())),
		failure.AnyOf(append(append([]string{"raise " + w.raise(p.d, need) + " or more"}, others...),
			p.cfg.Smaller)...))
}

// checkRAM refuses n splats and their pictures where RAM is too small for them.
func (p *renderPlan) checkRAM(n int, w renderNeeds) error {
	least := w.host()
	if p.d.host >= least {
		return nil
	}
	return fault.WithHint(fmt.Errorf("create renderer: %w: %d splats and a picture take %s with program and driver, "+
		"there are %s", ErrLittleRAM, n, vk.BytesText(least), vk.BytesText(p.d.host)),
		failure.AnyOf("raise "+w.raiseRAM(p.d, least)+" or more", p.cfg.Smaller))
}
