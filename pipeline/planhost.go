package pipeline

import (
	"errors"
	"fmt"
	"runtime"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/vk"
)

// host fills Host of a plan.
func (p *planner) host(plan *Plan, budget int64) error {
	h := &plan.Host
	h.Budget, h.Workers = budget, runtime.GOMAXPROCS(0)
	n := p.hostNeeds(plan)
	if budget < n.least {
		text, shared := vk.BytesText, ""
		if p.unified {
			shared = " in addition to the device's " + text(p.budget)
		}
		return p.shortOfRAM(n.least, plan.Device.Total,
			fmt.Errorf("%w: %s of RAM%s; program, driver and points take %s, transfers %s, decoding the largest "+
				"photo %s, two decoded ones %s, comparing a picture %s, a margin %s",
				ErrLittleRAM, text(budget), shared, text(h.Process), text(h.Staging+h.Readback), text(n.cost),
				text(min(n.total, 2*n.largest)), text(n.measuring), text(marginOf(n.least))))
	}
	h.Margin = marginOf(budget)
	free := budget - h.Margin - n.fixed
	// Each photo that is being decoded takes what decoding takes and a place in the cache. All cores decode, if there
	// is room for that.
	share := free
	if n.total > 0 {
		// the product of two may be beyond 63 bits
		share = max(int64(float64(free)*float64(n.cost)/float64(n.cost+n.largest)), free-n.total)
	}
	h.Decode = min(max(n.cost, min(share, int64(h.Workers)*n.cost)), free-min(n.total, 2*n.largest))
	h.Cache = min(n.total, free-h.Decode)
	h.CacheAll = h.Cache == n.total
	return nil
}

// hostNeeds are the least bytes of RAM that training needs.
type hostNeeds struct {
	total, largest int64 // of all decoded photos, of the largest
	cost           int64 // of decoding the largest, besides it
	measuring      int64 // of a picture that is compared with its photo
	fixed          int64 // of everything but photos and pictures
	least          int64 // in all
}

// hostNeeds fills the fields of Host that do not depend on its budget.
func (p *planner) hostNeeds(plan *Plan) (n hostNeeds) {
	h := &plan.Host
	h.Process = processBytes + p.driver + p.o.HeldBytes
	h.outside = processBytes/2 + p.driver
	if !p.unified {
		h.Staging = plan.Device.Staging
	}
	if n := int64(p.shape.world.size); n > 1 { // about as much for each device, and packets between all
		h.Staging = n*h.Staging + n*(n-1)*team.RoomBytes(plan.Ceiling, p.shape.besideWords()) +
			p.shape.learntBytes()
	}
	h.Picture = p.comparing()
	h.Readback = readbackBytes(p.cfg.SHDegree, plan.Ceiling)
	if len(p.o.Pictures) > 0 {
		n.measuring = h.Picture
	}
	cams := p.o.Decode
	if cams == nil {
		cams = p.cams
	}
	n.total, n.largest = photos.Totals(cams)
	for _, cost := range photo.DecodeCosts(cams) {
		n.cost = max(n.cost, cost)
	}
	n.fixed = h.Process + h.Staging + h.Readback
	n.least = withMargin(max(n.fixed+n.cost+min(n.total, 2*n.largest)+n.measuring,
		h.Process-p.o.HeldBytes+p.o.LoadBytes))
	return n
}

// marginOf returns the part of a budget that is not planned: the collector may come late when many cores decode, and
// drivers allocate more while they work. Both grow with the budget.
func marginOf(budget int64) int64 { return budget / 20 }

// withMargin returns about the smallest budget that leaves bytes besides its margin.
func withMargin(bytes int64) int64 { return bytes + bytes/19 + 1 }

// comparing returns the memory to compare a picture with its photo, besides the photo: the render in single precision,
// two copies in bytes, and the buffers of the cores that score and encode it. There is one more copy each with
// corrected colours if appearance is learnt, with vignetting if that is, and of the aligned camera if poses are
// refined.
func (p *planner) comparing() int64 {
	perPixel := int64(12 + 2*4)
	if p.cfg.Appearance() {
		perPixel += 12
	}
	if p.cfg.Vignetting {
		perPixel += 12
	}
	if p.cfg.RefineCameras {
		perPixel += 12
	}
	return perPixel*int64(p.shape.drawn.maxPixels) + metric.CompareBytes()
}

// shortOfRAM adds to an error of a budget below host bytes of RAM the setting to raise; device is the need of the
// device.
func (p *planner) shortOfRAM(host, device int64, err error) error {
	raise := "raise " + fault.Setting("max-ram") + " to " + mib(roundMiB(host))
	switch {
	case p.unified && p.capped(host):
		raise = fmt.Sprintf("The device shares RAM, and beyond %s for the rest all of %s goes to the device: "+
			"give %s", mib(mostShare), fault.Setting("max-ram"), p.both(device, host))
	case p.unified:
		raise = "raise " + fault.Setting("max-ram") + " to " + mib(p.enoughPool(0, host))
	}
	return fault.WithHint(fmt.Errorf("plan training: %w", err),
		raise+" or more, or use smaller photos ("+fault.Setting("downscale")+").")
}

// capped reports whether the host gets host bytes of a pool only when the device has all that it can have, unless
// --max-vram limits that.
func (p *planner) capped(host int64) bool { return !p.vram && host > mostShare }

// both names the two settings that give the device and the host their parts of a pool.
func (p *planner) both(device, host int64) string {
	given := p.budget
	defer func() { p.budget = given }()
	if p.budget = roundMiB(device); p.whole() == nil { // less slack may leave less room
		p.budget = roundMiB(given)
	}
	return fmt.Sprintf("%s %s and %s %s",
		fault.Setting("max-vram"), mib(p.budget), fault.Setting("max-ram"), mib(p.budget+roundMiB(host)))
}

// shortOfPool turns err, of a device's budget, into one of RAM if the common pool, host of it the host's, is smaller
// than program and driver.
func (p *planner) shortOfPool(host int64, err error) error {
	took := processBytes + p.driver
	pool := host + p.budget
	if p.budget <= 1 { // which stands for 0
		pool = host
	}
	if p.unified && !p.vram && pool < took {
		return fmt.Errorf("plan training: %w: %s for everything, and program and driver alone take %s",
			ErrLittleRAM, vk.BytesText(pool), vk.BytesText(took))
	}
	return err
}

// shortOfDevice adds to an error of a device's budget how much is enough.
func (p *planner) shortOfDevice(err error) error {
	if !errors.Is(err, ErrTooSmall) && !errors.Is(err, ErrLittleRAM) {
		return err
	}
	smaller := "use smaller photos (" + fault.Setting("downscale") + ")"
	remedies := smaller + fmt.Sprintf(", start with fewer points (%s) or allow fewer splats (%s).",
		fault.Setting("init-grid"), fault.Setting("max-splats"))
	if p.cfg.Splats > 0 && p.o.Ceiling == 0 {
		remedies = smaller + " or end with fewer splats (" + fault.Setting("splats") + ")."
	}
	plan := p.enoughDevice()
	if plan == nil {
		return fault.WithHint(err, "no budget helps on this device: "+remedies)
	}
	raise := fault.Setting("max-vram") + " to " + mib(p.budget)
	// above that only --max-vram helps
	if info := p.shape.dev.Info(); p.unified && !p.vram && p.budget <= info.DefaultBudget() {
		host := p.hostNeeds(plan).least
		if p.capped(host) {
			return fault.WithHint(err, fmt.Sprintf("give %s or more, %s", p.both(p.budget, host), remedies))
		}
		raise = fault.Setting("max-ram") + " to " + mib(p.enoughPool(p.budget, host))
	}
	return fault.WithHint(err, fmt.Sprintf("raise %s or more, %s", raise, remedies))
}

// enoughDevice returns the plan of about the smallest larger budget that has one, and makes that the planner's; nil if
// none has.
func (p *planner) enoughDevice() *Plan {
	const smallest, most = 1 << 20, int64(1) << 42
	lo := max(p.budget, smallest)
	enough := lo
	for p.budget = enough; p.whole() == nil; p.budget = enough {
		if lo, enough = enough, 2*enough; enough > most {
			return nil
		}
	}
	for enough-lo > max(enough/64, smallest) {
		p.budget = (lo + enough) / 2
		if p.whole() != nil {
			enough = p.budget
		} else {
			lo = p.budget
		}
	}
	p.budget = roundMiB(enough)
	return p.whole()
}

// whole returns a plan with room for the splats at the start and at the end, or nil.
func (p *planner) whole() *Plan {
	plan, err := p.device()
	start := p.splats
	if p.cfg.Strategy == recipe.StrategyMCMC && p.cfg.Splats > 0 {
		start = min(start, p.cfg.Splats) // see thinned
	}
	if err != nil || p.o.Ceiling == 0 && plan.Ceiling < max(start, p.cfg.Splats) {
		return nil
	}
	return plan
}

// enoughPool is smallestPool of parts that grow with the pool: with more for the device the model's ceiling is higher,
// and the host needs more to write it.
func (p *planner) enoughPool(device, host int64) int64 {
	given := p.budget
	defer func() { p.budget = given }()
	for {
		pool := smallestPool(device, host, given, p.vram)
		p.budget, _ = unifiedShares(pool, given, p.vram)
		plan, err := p.device()
		if err != nil {
			return pool // the device asks for more than the host
		}
		need := p.hostNeeds(plan).least
		if need <= host {
			return pool
		}
		host = need
	}
}

func roundMiB(bytes int64) int64 { return (bytes + 1<<20 - 1) &^ (1<<20 - 1) }

// mib formats a whole number of MiB for flags.
func mib(bytes int64) string { return fmt.Sprintf("%dMiB", bytes>>20) }

// HeapLimit returns the bytes of Go's memory by the plan. It is smaller once the driver has allocated what it needs.
func (p *Plan) HeapLimit() int64 { return p.Host.Budget - p.Host.Margin - p.notGo(notGo()) }

// notGo returns the RAM outside the Go heap: what is planned, or seen, as far as garbage of the plan can make room for
// the difference. seen counts all resident bytes, on unified memory the device's as well.
func (p *Plan) notGo(seen int64) int64 {
	planned := p.Host.Staging + p.Host.outside
	if p.Unified {
		return planned
	}
	return min(max(planned, seen), planned+processBytes/4)
}

// PhotoCache returns the options of a cache of decoded photos that keeps to the plan.
func (h *HostPlan) PhotoCache(cams []scene.Camera) photos.Options {
	return photos.Options{Cameras: cams, Bytes: h.Cache, FlightBytes: h.Decode, Workers: h.Workers}
}

const mostPictures = 16

// Measuring returns the options of a cache for photos that pictures are compared with, and how many pictures may be in
// memory at once. They use the memory of the other cache, which must be empty. Each comes with its photo and the memory
// to decode the photo of a later one.
func (h *HostPlan) Measuring(cams []scene.Camera) (o photos.Options, atOnce int) {
	total, largest := photos.Totals(cams)
	cost := int64(0)
	for _, c := range photo.DecodeCosts(cams) {
		cost = max(cost, c)
	}
	o = h.PhotoCache(cams)
	room := h.Cache + h.Decode
	atOnce = int(max(1, min((room-largest)/(h.Picture+largest+cost), int64(h.Workers), mostPictures, int64(len(cams)))))
	room -= int64(atOnce) * h.Picture
	o.Bytes = min(total, int64(atOnce+1)*largest)
	if spare := room - o.Bytes - int64(atOnce)*cost; spare > 0 { // further photos ahead
		o.Bytes = min(total, o.Bytes+min(spare/2, int64(atOnce)*largest))
	}
	o.FlightBytes = min(int64(h.Workers)*cost, room-o.Bytes)
	return o, atOnce
}
