package pipeline

import (
	"fmt"
	"slices"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// TrainerOptions say how a trainer uses memory and what it reports to. Of them only Ceiling may change the bytes of a
// model.
type TrainerOptions struct {
	Ceiling    int            // most splats, as a run before this one had it; 0: Config.MaxSplats or what memory allows
	PhotoBytes int64          // ceiling of the device cache of photos; 0: chosen; below 0: none
	Pictures   []scene.Camera // cameras of pictures, besides those that are trained on
	HeldBytes  int64          // host memory that the caller keeps: points, scene
	// most host memory that the caller uses before there is a trainer, HeldBytes included
	LoadBytes int64
	Strict    bool         // a photo that cannot be decoded ends the run
	Warn      func(string) // receives warnings for the user; may be nil
	// called when the device has less free memory than its budget, before photos or growth are given up; may be nil
	OnPressure func(step int)
	Decode     []scene.Camera // cameras whose photos are decoded lazily; nil: those trained on
	Interludes *Interludes    // runs functions between steps; may be nil
	// Depths [n_views] are the depths of the nearest points that each camera sees, in the training frame
	// (scene.Capture.Depths); nil: unknown.
	Depths []scene.Depths
	// Photos [n_views] are the initial appearances of the photos, and their cameras; nil: all begin alike, and are of
	// one camera.
	Photos []PhotoStart
	// Shell is the radius of the far shell that is among the first splats, around the origin; 0: there is none.
	Shell   float64
	Known   KnownDepths     // depths that steps compare theirs with
	Normals KnownNormals    // and of normals
	Anchors Anchors         // hold refined poses; nil: the given poses do
	OnTrial func(PoseTrial) // receives the result of the trial of refined poses; may be nil
	Others  []*Device       // devices that train the same scene together with the first one

	hooks testHooks
}

// Plan is the memory that training needs, computed before anything is allocated: never more than the budgets, and no
// more than the totals, with one exception. Where a view has more (tile, splat) pairs than Isects, they first use what
// the budget has left, and free it when the model grows; only what does not fit then is processed in bands, which are
// slower. Device and ceiling are a function of budget, cameras, configuration and device limits alone; Host depends on
// the measured memory of the driver, too.
type Plan struct {
	Splats      int `json:"splats"`       // to start with
	Ceiling     int `json:"ceiling"`      // most splats
	ChunkSplats int `json:"chunk_splats"` // the model grows by multiples of these splats
	growth      int // and by at least these
	SplatBytes  int `json:"splat_bytes"` // of the model for a splat: parameters, moments, statistics
	StepBytes   int `json:"step_bytes"`  // of scratch memory for a splat, about, besides its (tile, splat) pairs
	// ceilings of the shards, if they differ: one device has less memory than others
	Shares  []int `json:"shares,omitempty"`
	Devices int   `json:"devices"` // the world size; the figures of memory are those of rank 0
	// (tile, splat) pairs at once that fit even when the model is at its ceiling
	Isects int `json:"isects"`

	photos photos.Layout // in the device cache

	Unified bool       `json:"unified"` // device memory is RAM: Device and Host are parts of one pool
	Device  DevicePlan `json:"device"`
	Host    HostPlan   `json:"host"`
}

// DevicePlan is the device memory of a plan, in bytes.
type DevicePlan struct {
	Budget int64 `json:"budget"`
	// parameters, moments and statistics at the ceiling, and the appearances, known depths and normals of photos
	Model     int64 `json:"model"`
	Scratch   int64 `json:"scratch"`    // buffers between the passes of a step: by splat, pixel and isect
	Photos    int64 `json:"photos"`     // device cache of photos, and the photo of the step
	PhotoAll  bool  `json:"photo_all"`  // the cache holds every photo
	PhotoFits int   `json:"photo_fits"` // photos that it holds
	// mapped memory for photos, pictures and the model; on unified memory part of the budget
	Staging  int64 `json:"staging"`
	Slack    int64 `json:"slack"` // lost between blocks of memory
	Total    int64 `json:"total"`
	Start    int64 `json:"start"`    // of the total, at the start of training
	Snapshot bool  `json:"snapshot"` // a copy of the whole model fits beside it
}

// HostPlan is the host memory of a plan, in bytes.
type HostPlan struct {
	Budget   int64 `json:"budget"`
	Process  int64 `json:"process"` // program, driver and HeldBytes
	outside  int64 // of it outside the Go heap
	Margin   int64 `json:"margin"`    // for garbage that is not collected yet and for later allocations of drivers
	Staging  int64 `json:"staging"`   // mapped memory that is not the device's own
	Cache    int64 `json:"cache"`     // decoded photos
	Decode   int64 `json:"decode"`    // photos being decoded, besides the cache
	Picture  int64 `json:"picture"`   // a picture that is compared with its photo, in place of most photos
	Readback int64 `json:"readback"`  // a piece of the model, when it is written
	CacheAll bool  `json:"cache_all"` // the cache holds every photo
	Workers  int   `json:"workers"`   // that decode
}

type planner struct {
	shape   *setup // without buffers
	cams    []scene.Camera
	cfg     *recipe.Config
	o       *TrainerOptions
	photos  photos.Layout
	splats  int
	budget  int64
	unified bool

	driver int64 // host memory of the driver
	vram   bool  // the device's budget was given
}

// Plan plans a training; the arguments are those of NewTrainer, of init only its number of splats. Of several devices
// it is the plan of the first, with the splats of all.
func (d *Device) Plan(cams []scene.Camera, splats int, cfg recipe.Config, o TrainerOptions) (*Plan, error) {
	plans, _, err := planShards(append([]*Device{d}, o.Others...), cams, splats, knownSizes{}, cfg, o)
	if err != nil {
		return nil, err
	}
	whole := *plans[0]
	whole.Splats, whole.Ceiling, whole.Devices = splats, ceilingOf(plans), len(plans)
	for _, p := range plans {
		whole.Shares = append(whole.Shares, p.Ceiling)
	}
	if slices.Max(whole.Shares)-slices.Min(whole.Shares) <= 1 {
		whole.Shares = nil
	}
	return &whole, nil
}

func (d *Device) planShard(at world, cams []scene.Camera, part shardSizes, cfg recipe.Config,
	o TrainerOptions) (*Plan, error) {
	splats := part.splats
	cfg.Splats, cfg.MaxSplats, o.Ceiling = part.ends, part.most, part.ceiling
	shape, err := plannedSetup(d.dev, at, cams, &cfg, &o)
	if err != nil {
		return nil, err
	}
	p := &planner{shape: shape, cams: cams, photos: photos.LayoutOf(cams), cfg: &cfg, o: &o, splats: splats,
		budget: d.dev.Budget(), unified: unified(d), driver: d.driver, vram: d.vram}
	plan, err := p.device()
	if err != nil {
		return nil, p.shortOfDevice(p.shortOfPool(d.host, err))
	}
	if most := cfg.Splats; o.Ceiling == 0 && most > plan.Ceiling {
		return nil, p.shortOfDevice(fmt.Errorf("plan training: %w: %d splats to end with, %d fit in %s",
			ErrTooSmall, most, plan.Ceiling, vk.BytesText(p.budget)))
	}
	return plan, p.host(plan, d.host)
}

// plannedSetup returns the setup of a training, with phantoms for the tables of photos and cameras.
func plannedSetup(dev *vk.Device, at world, cams []scene.Camera, cfg *recipe.Config, o *TrainerOptions) (*setup,
	error) {
	shape, err := trainingSetup(dev, at, cams, nil, cfg, o)
	if err != nil {
		return nil, err
	}
	if shape.has(recipe.Carve) {
		shape.voters = phantom[layout.Voter](dev, len(votersOf(len(cams))), voterBytes)
	}
	if cfg.Appearance() {
		shape.appearances = &appearances{dev: dev, table: phantom[layout.Appearance](dev, len(cams), appearanceBytes)}
	}
	if cfg.Robust {
		shape.histories = &histories{dev: dev, words: phantom[uint32](dev, layout.HistoryWords, 4)}
	}
	if o.comparesDepths() {
		shape.depths = planDepths(dev, cams, cfg, o)
	}
	if cfg.RefineCameras {
		shape.poses = planPoses(dev, cams, cfg, o)
	}
	return shape, nil
}

func trainKinds(cfg *recipe.Config, o *TrainerOptions) []recipe.Kind {
	kinds := []recipe.Kind{recipe.Step, recipe.Reorder, recipe.Render}
	if cfg.RefineCameras {
		kinds = append(kinds, recipe.Align)
	}
	if cfg.RefineEvery > 0 {
		kinds = append(kinds, recipe.Refine, recipe.Reset)
		if cfg.Carve > 0 && len(o.Depths) > 0 {
			kinds = append(kinds, recipe.Carve)
		}
	}
	return kinds
}

// device makes a plan without Host.
func (p *planner) device() (*Plan, error) {
	asked := p.o.Ceiling
	if asked == 0 {
		asked = p.cfg.MaxSplats
	}
	var best *Plan
	for _, photos := range p.photoChoices() {
		for _, perSplat := range [...]int{4, 1} {
			plan := p.fill(photos, perSplat, asked)
			if best == nil || plan.Ceiling > best.Ceiling {
				best = plan
			}
			if asked == 0 && plan.Ceiling >= p.splats || asked > 0 && plan.Ceiling == asked {
				return p.complete(plan), nil
			}
		}
	}
	if _, err := p.shape.scratchBytes(1, minIsects, 2); err != nil {
		return nil, fmt.Errorf("plan training: %w: views of %d pixels: %w", ErrTooSmall, p.shape.views.maxPixels,
			err)
	}
	if best.Ceiling < p.splats {
		return nil, fmt.Errorf("plan training: %w: %d splats to start with, %d fit together with views of %d "+
			"pixels in %s",
			ErrTooSmall, p.splats, best.Ceiling, p.shape.views.maxPixels, vk.BytesText(p.budget))
	}
	return p.complete(best), nil
}

// photoChoices lists sizes of the device cache, in the order in which they are tried. Splats come first: a photo that
// is not cached costs a copy for each of its steps, a splat that does not fit is lost.
func (p *planner) photoChoices() []int64 {
	total, _ := p.photos.Totals(p.cams)
	switch {
	case p.o.PhotoBytes < 0:
		return []int64{0}
	case p.o.PhotoBytes > 0:
		return []int64{min(total, p.o.PhotoBytes), 0}
	case total <= p.budget/4:
		return []int64{total, min(total, p.budget/16), 0}
	}
	return []int64{p.budget / 16, 0}
}

// isectsFor returns how many pairs a model of n splats is granted.
func (p *planner) isectsFor(n, perSplat int) int {
	return min(max(minIsects, perSplat*n)+layout.MostBucket-1,
		int(p.shape.isectSpan())) &^ (layout.MostBucket - 1)
}

// fill makes the plan with a device cache of kept bytes and with the largest ceiling up to asked (0: any). A ceiling of
// 0 says that nothing fits.
func (p *planner) fill(kept int64, perSplat, asked int) *Plan {
	n, all := p.photos.Slots(p.cams, kept)
	if _, largest := p.photos.Totals(p.cams); !all {
		kept = int64(n) * largest
	}
	plan := &Plan{Splats: p.splats, Unified: p.unified, photos: p.photos, SplatBytes: int(p.shape.model.SplatBytes()),
		StepBytes: int(p.shape.bytesPerSplat())}
	plan.Device = DevicePlan{Budget: p.budget, Photos: kept + 4*int64(p.shape.targetWords()), PhotoAll: all,
		PhotoFits: n, Slack: planSlack(p.budget)}
	each := p.shape.model.SplatBytes() + p.shape.bytesPerSplat() + int64(perSplat)*p.shape.bytesPerIsect()
	rough := max(0, p.budget-kept) / each
	if asked > 0 {
		rough = min(rough, int64(asked))
	}
	m := p.shape.model
	m.setUnit(int(rough))
	// Buffers for all splats are bound whole: at that limit units must add up to what was asked with little over.
	span := int(maxBinding(p.shape.dev) / 36)
	for asked > 0 && m.unit > 2*smallestUnit && m.units(asked)*m.unit > span {
		m.unit -= 128
	}
	plan.ChunkSplats, plan.growth = m.unit, m.growth
	_, largest := photos.Totals(p.cams)
	plan.Device.Staging = p.staging(largest)
	size := plan.ChunkSplats
	most := min(1<<30, span) / size
	if asked > 0 {
		most = min(most, (asked+size-1)/size)
	}
	units := largestThat(most, func(n int) bool { return p.fits(plan, n, perSplat) })
	p.fits(plan, units, perSplat)
	plan.Ceiling = units * size
	if asked > 0 {
		plan.Ceiling = min(plan.Ceiling, asked)
	}
	return plan
}

// fits fills the plan for a model of units and reports whether the budget holds it.
func (p *planner) fits(plan *Plan, units, perSplat int) bool {
	d := &plan.Device
	plan.Isects = p.isectsFor(units*plan.ChunkSplats, perSplat)
	scratch, err := p.shape.scratchBytes(units, plan.Isects, 2)
	if err != nil {
		return false
	}
	d.Model, d.Scratch = int64(units)*p.shape.model.unitBytes()+p.photoTables(), scratch
	d.Total = d.Model + d.Scratch + d.Photos + d.Slack + fixedBytes + p.votersBytes()
	if p.unified {
		d.Total += d.Staging
	}
	return d.Total <= d.Budget
}

// complete fills the fields that follow from the ceiling.
func (p *planner) complete(plan *Plan) *Plan {
	d := &plan.Device
	p.shape.model.unit, p.shape.model.growth = plan.ChunkSplats, plan.growth
	units := p.shape.model.units(p.splats)
	scratch, err := p.shape.scratchBytes(units, min(plan.Isects, p.shape.firstIsects(p.splats)), 1)
	if err != nil {
		scratch = d.Scratch
	}
	d.Start = d.Total - d.Model - d.Scratch - d.Slack + int64(units)*p.shape.model.unitBytes() +
		p.photoTables() + scratch
	d.Snapshot = d.Total+d.Model <= d.Budget
	return plan
}

// photoTables returns the size of what is learnt and known of photos besides their pixels.
func (p *planner) photoTables() int64 {
	n := p.shape.learntBytes()
	if x := p.shape.depths; x != nil {
		n += x.words.Size()
	}
	return n
}

// staging returns the mapped memory: the ring of photos, and the largest staging of the model, of appearances or of a
// picture.
func (p *planner) staging(photo int64) int64 {
	s := p.shape
	ring := inFlight * photo
	if p.cfg.RefineCameras { // that of an aligned camera
		ring += photo
	}
	most := max(2*s.model.stagingBytes(), s.learntBytes(), min(pictureStaging, 16*int64(s.drawn.maxPixels)))
	if s.depths != nil {
		most = max(most, 4*int64(s.depths.staged))
	}
	return ring + most
}

// fixedBytes bounds small buffers: counters, dispatch arguments, parameters and reports of the units in flight.
const fixedBytes = 256 << 10

// votersBytes returns the size of the cameras that floaters are found with, and of their staging.
func (p *planner) votersBytes() int64 { return 2 * voterBytes * int64(p.shape.voters.N()) }

// planSlack returns the part of a budget that is lost because memory comes in blocks for each kind of use.
func planSlack(budget int64) int64 { return min(budget/7, 8<<20+budget/64) }

// phantom returns a buffer of n elements without memory.
func phantom[T any](dev *vk.Device, n int, bytes int64) vk.Slice[T] {
	return vk.Cast[T](dev.Phantom(int64(n)*bytes, "planned"))
}

// Record records each kind of unit of a training on n devices like dev, with phantoms for buffers: its passes and
// kernels are those that such a training runs.
func Record(dev *vk.Device, n int, cams []scene.Camera, cfg recipe.Config, o TrainerOptions) (
	map[recipe.Kind]*vk.Recorder, error) {
	s, err := plannedSetup(dev, world{0, n}, cams, &cfg, &o)
	if err != nil {
		return nil, err
	}
	s.model.setUnit(1000)
	units := map[recipe.Kind]*vk.Recorder{}
	for i, r := range s.recordPlanned(1, minIsects, 1) {
		if r.Err() != nil {
			return nil, r.Err()
		}
		units[s.kinds[i]] = r
	}
	return units, nil
}

// scratchBytes returns the sum of scratchRegions in whole pages.
func (s *setup) scratchBytes(units, isects, bands int) (sum int64, err error) {
	regions, err := s.scratchRegions(units, isects, bands)
	for _, size := range regions {
		sum += (size + 4095) &^ 4095
	}
	return sum, err
}

// scratchRegions returns the sizes in bytes of the scratch regions of all units, for a model of units and for isects
// pairs in a band. A binding that is too large for the device is an error.
func (s *setup) scratchRegions(units, isects, bands int) (regions []int64, err error) {
	for _, r := range s.recordPlanned(units, isects, bands) {
		if r.Err() != nil {
			return nil, r.Err()
		}
		for i, size := range r.ScratchRegions() {
			if i == len(regions) {
				regions = append(regions, 0)
			}
			regions[i] = max(regions[i], size)
		}
	}
	return regions, nil
}

// recordPlanned records a unit of each kind with phantoms for the buffers.
func (s *setup) recordPlanned(units, isects, bands int) (list []*vk.Recorder) {
	c := *s
	c.verify = false // checks are a tool of developers and not planned for
	c.bands, c.isectCapacity = bands, isects
	if c.parts == nil {
		c.bands = min(bands, 2) // more are alike
	}
	c.model = s.model.planned(units)
	f := &frame{params: phantom[layout.StepParams](s.dev, 1, 1<<10), report: phantom[layout.Report](s.dev, 1, 1<<10)}
	c.planLinks(f)
	if c.lens.bent || c.lens.refined {
		f.lens.lens = phantom[layout.Lens](s.dev, 1, 1<<8)
	}
	c.counters, c.args = phantom[uint32](s.dev, layout.NCounters, 4), phantom[[3]uint32](s.dev, layout.NArgs, 12)
	c.target = phantom[uint32](s.dev, s.targetWords(), 4)
	if c.parts != nil {
		f.part = c.phantomPart()
	}
	for _, k := range s.kinds {
		r := vk.NewRecorder(s.dev)
		u := c
		if k == recipe.Refine || k == recipe.Reorder {
			u.model = c.model.asOneChunk()
		}
		u.record(r, f, k)
		list = append(list, r)
	}
	return list
}

// unified reports whether d's memory is RAM.
func unified(d *Device) bool {
	info := d.dev.Info()
	return info.Unified()
}
