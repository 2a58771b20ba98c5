package pipeline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// bytesPerIsect returns about what one isect costs: tile id and slot, both double-buffered for the sort, its splat and,
// where there is a backward pass, its gradient and its share of the saved states. What sorts publish, a byte or so, is
// left out.
func (e *engine) bytesPerIsect() int64 {
	bytes := int64(4*4 + 4)
	if e.has(recipe.Step) {
		bytes += 36 + e.stateBytes()
	}
	if e.depths != nil {
		bytes += 4 * e.raster.isectStates()
	}
	return bytes + 4*int64(e.besideWords())
}

// besideWords returns how many numbers a gradient has beside those of a projection: the absolute ones of the mean, and
// that by the inverse of the depth, which come together.
func (e *engine) besideWords() int {
	switch {
	case e.depths != nil:
		return team.AbsWords + 1
	case e.strategy.variants().absgrad:
		return team.AbsWords
	}
	return 0
}

// isectSpan returns how many isects one binding spans, of the buffer that has the most bytes of an isect.
func (e *engine) isectSpan() int64 {
	if !e.has(recipe.Step) {
		return maxBinding(e.dev) / 4
	}
	return maxBinding(e.dev) / max(36, e.stateBytes())
}

// frame is what a unit in flight needs of its own. Several are in flight, so that the device never waits for the host.
type frame struct {
	params     vk.Slice[layout.StepParams] // [1], mapped
	peers      peerParams
	report     vk.Slice[layout.Report] // [1], mapped
	hostParams *layout.StepParams
	hostReport *layout.Report
	submission *vk.Submission
	copier     *vk.Copier
	picture    vk.Slice[[4]float32] // scratch of the program of recipe.Render, which keeps it
	lens       frameLens
	partOfFrame
	verifier verifier
	programs [recipe.NKinds]*vk.Program
	// a step with timestamps between its passes, which cost some microseconds each; the first frame's alone, unless
	// timeAll
	timed   *vk.Program
	photo   photoCopies
	unit    recipe.Unit
	ran     *vk.Program // what the unit was submitted as
	skipped bool        // the unit was not submitted: its device has done it
	ticket  vk.Ticket   // 0: nothing in flight
	done    chan error  // of a team: what waiting for the unit came to
}

// engine is the device side that training and rendering share: the model, the buffers of a view, and the recorded
// programs.
type engine struct {
	dev    *vk.Device
	model  *model
	pool   *vk.ScratchPool
	sort   sortShape
	raster rasterShape

	viewSize          // the largest view of a step
	drawn    viewSize // the largest picture

	isectCapacity int // pairs that fit in one band
	isectPlan     int // pairs that were planned (Plan.Isects); 0: there is no plan
	isectMost     int // pairs that are known to be too many, less a part; 0: none are
	bands         int // bands that a view is processed in
	split         [recipe.NKinds][]int

	counters vk.Slice[uint32]    // [N_COUNTERS]
	args     vk.Slice[[3]uint32] // [N_ARGS]
	target   vk.Slice[uint32]    // holds the photo of the step, see target.glsl; the member's photos own it
	frames   []*frame
	kinds    []recipe.Kind
	compiled bool // the kernels of all of them
	timeAll  bool // any step may have timestamps, and the copy of its photo, too
	lenses        // that kernels go through
	compare  comparison
	parts    *parts // how pictures are drawn band by band; nil: whole, as training wants them

	pairs vk.Slice[layout.TilePairs] // [maxTiles] where steps count what blending takes; zero: they do not
	// [votersOf] cameras that are trained on, with the depths of their points; only with unitCarve
	voters      vk.Slice[layout.Voter]
	appearances *appearances // nil: photos are compared as rendered
	histories   *histories   // of errors; nil: all pixels count that masks leave
	depths      *depthTable  // nil: depths are not compared
	poses       *poseTable   // nil: cameras are where they were given
	strategy    strategy
	// VKSPLAT_VERIFY=1: every pass of a step is followed by checks of what it wrote
	verify   bool
	sabotage func(v *view, what string) // tests: may break a buffer before it is verified
	looks    bool                       // pictures show what params say
	yield    func()                     // called before memory is taken anew; nil: nobody else holds any

	membership
}

// viewSize is the size of the largest of several views, each number for itself.
type viewSize struct {
	maxPixels int
	maxTiles  int
	maxRows   int // rows of tiles
	maxWidth  int // px
}

// with returns the size with a camera taken in.
func (s viewSize) with(c *scene.Camera) viewSize {
	return viewSize{max(s.maxPixels, c.Width*c.Height), max(s.maxTiles, layout.Tiles(c.Width)*layout.Tiles(c.Height)),
		max(s.maxRows, layout.Tiles(c.Height)), max(s.maxWidth, c.Width)}
}

// sizeOf returns the size of views; each side is 1 to 32768 pixels.
func sizeOf(cameras []scene.Camera) (s viewSize, err error) {
	for i := range cameras {
		c := &cameras[i]
		if c.Width < 1 || c.Height < 1 || c.Width > 1<<15 || c.Height > 1<<15 {
			return s, fmt.Errorf("create engine: view %s is %dx%d pixels, 1 to 32768 a side are possible", c.Name,
				c.Width, c.Height)
		}
		s = s.with(c)
	}
	return s, nil
}

// newShape makes an engine for views of the given cameras that runs units of the given kinds, without its buffers.
func newShape(dev *vk.Device, degree int, cameras []scene.Camera, kinds []recipe.Kind, targetFloats bool) (*engine,
	error) {
	e := &engine{dev: dev, bands: 1, kinds: kinds, sort: chooseSort(dev.Info()), raster: chooseRaster(dev.Info()),
		compare: comparison{floats: targetFloats}, strategy: strategy3DGS{}, verify: os.Getenv(verifyVariable) == "1"}
	var err error
	if e.viewSize, err = sizeOf(cameras); err != nil {
		return nil, err
	}
	e.drawn, e.lenses = e.viewSize, lensesOf(cameras)
	e.model, err = newModel(dev, degree)
	return e, err
}

// newEngine makes an engine for views of the given cameras that runs units of the given kinds, inFlight at a time.
func newEngine(dev *vk.Device, degree int, cameras []scene.Camera, kinds []recipe.Kind, inFlight int,
	targetFloats bool) (*engine, error) {
	e, err := newShape(dev, degree, cameras, kinds, targetFloats)
	if err != nil {
		return nil, err
	}
	e.pool = dev.NewScratchPool()
	if err = e.allocate(inFlight); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// allocate makes the buffers that live as long as the engine. What an error leaves is close's to free.
func (e *engine) allocate(inFlight int) (err error) {
	make32 := func(n int, name string) (s vk.Slice[uint32]) {
		if err == nil {
			s, err = vk.Make[uint32](e.dev, vk.DeviceLocal, n, name)
		}
		return s
	}
	e.counters = make32(layout.NCounters, "counters")
	e.args = vk.Cast[[3]uint32](make32(3*layout.NArgs, "dispatch_args").View)
	for i := 0; i < inFlight && err == nil; i++ {
		f := &frame{submission: e.dev.NewSubmission(), done: make(chan error, 1)}
		e.frames = append(e.frames, f)
		if err = f.allocate(e.dev); err == nil {
			err = f.verifier.allocate(e)
		}
		if err == nil {
			err = errors.Join(f.peers.allocate(e, f.params), f.lens.allocate(e))
		}
	}
	return err
}

// targetWords is how many words the largest photo takes, with the one after it.
func (e *engine) targetWords() int {
	words := e.maxPixels
	if e.compare.floats {
		words *= 3
	}
	return words + photos.MaskWords(e.maxPixels) + 1 // see target.glsl
}

// mostBands is how many bands a view can be cut into.
func (e *engine) mostBands() int { return max(e.maxRows, e.drawn.maxRows) }

// allocate makes the frame's buffers.
func (f *frame) allocate(dev *vk.Device) (err error) {
	if f.params, err = vk.Make[layout.StepParams](dev, vk.Upload, 1, "params"); err != nil {
		return err
	}
	if f.report, err = vk.Make[layout.Report](dev, vk.Readback, 1, "report"); err != nil {
		return err
	}
	f.hostParams, f.hostReport = &vk.Host(f.params)[0], &vk.Host(f.report)[0]
	*f.hostParams, *f.hostReport = layout.StepParams{}, layout.Report{}
	f.copier, err = dev.NewCopier()
	return err
}

func (e *engine) has(k recipe.Kind) bool { return slices.Contains(e.kinds, k) }

// load makes s the model and chooses the first capacities.
func (e *engine) load(s *scene.Splats, startCapacities, bands int) error {
	return e.loadWith(s.N, func() error { return e.model.upload(s) }, startCapacities, bands)
}

// loadWith is load of n splats that fill puts into the model.
func (e *engine) loadWith(n int, fill func() error, startCapacities, bands int) error {
	if err := fill(); err != nil {
		return err
	}
	return e.ready(n, startCapacities, bands)
}

// ready chooses the first capacities for a model of n splats, which is there.
func (e *engine) ready(n, startCapacities, bands int) error {
	e.bands = e.startBands(bands)
	e.isectCapacity = e.fewerIsects(e.firstIsects(n) * max(startCapacities, 1))
	if e.isectCapacity == 0 {
		return fmt.Errorf("load model: %w: %s", ErrTooSmall, vk.BytesText(e.dev.Budget()))
	}
	return e.setCounters(uint32(n))
}

// startBands returns how many bands to start with where so many are asked for.
func (e *engine) startBands(bands int) int {
	if b, err := strconv.Atoi(os.Getenv("VKSPLAT_BANDS")); err == nil {
		bands = b
	}
	return min(max(bands, 1), e.mostBands())
}

// minIsects is the smallest number of (tile, splat) pairs that a band is made for.
const minIsects = 1 << 14

// moreIsects is how many pairs more there is room for once there was too little, 8 MB about, unless these are a great
// many beside those there are, or few. Growth stops the queue.
const moreIsects = 1 << 17

// firstIsects is the number of pairs to start with for n splats: no more than were planned, and not what few views
// need, since what is taken here is not given back. Few splats are large ones.
func (e *engine) firstIsects(n int) int {
	first := max(minIsects, 4*e.maxTiles, min(8*n, n+moreIsects))
	if e.isectPlan > 0 {
		first = min(first, e.isectPlan)
	}
	return first
}

// bytesPerSplat returns about what a splat costs beside its chunk: shapes, paints, keys, the sort's copies, offsets,
// v_projected.
func (e *engine) bytesPerSplat() int64 {
	return 32 + 16 + 4 + 4*4 + 4 + 36 + 12 + 4*int64(e.besideWords())
}

// isectLimit returns how many pairs the device can hold: by what one binding spans, by what the budget leaves once the
// pool is emptied, and by what was found not to fit.
func (e *engine) isectLimit() int { return e.isectLimitIn(e.bands) }

// isectLimitIn is isectLimit for views in so many bands. A step in bands keeps gradients from band to band, so that
// fewer pairs fit than without.
func (e *engine) isectLimitIn(bands int) int {
	lo, hi := 0, e.isectBound()/layout.MostBucket
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if e.isectsFit(mid*layout.MostBucket, bands) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo * layout.MostBucket
}

// isectBound returns how many pairs there is room for at the very most.
func (e *engine) isectBound() int {
	most := int(min(e.isectSpan(), 1<<31-1, e.dev.Budget()/40))
	if e.isectMost > 0 {
		most = min(most, e.isectMost)
	}
	return most
}

// isectsFit reports whether the budget has room for n pairs, at most isectBound, once the pool is emptied.
func (e *engine) isectsFit(n, bands int) bool {
	regions, err := e.scratchRegions(e.model.units(e.model.capacity()), n, bands)
	return err == nil && e.pool.Fits(regions)
}

// fewerIsects returns n or, where these do not fit, as many whole buckets as do.
func (e *engine) fewerIsects(n int) int {
	if n <= e.isectBound() && e.isectsFit(n, e.bands) {
		return n &^ (layout.MostBucket - 1)
	}
	return min(n, e.isectLimit()) &^ (layout.MostBucket - 1)
}

// setCounters sets the number of splats and clears everything else, failures included.
func (e *engine) setCounters(n uint32) error {
	r := vk.NewRecorder(e.dev)
	r.Fill(e.counters.View, 0)
	r.Fill(e.counters.At(layout.NSplats, 1).View, n)
	return runOnce(e.dev, r, "set counters")
}

// growIsects makes room for n pairs in a band, and for some more, by larger buffers or, where those do not fit, by as
// many bands as it takes.
func (e *engine) growIsects(n uint32, more int) error {
	want := min(int(n)+more+layout.MostBucket-1, 1<<31-1) &^ (layout.MostBucket - 1)
	limit := e.fewerIsects(want)
	if limit >= int(n) {
		e.isectCapacity = max(limit, e.isectCapacity)
		return e.startAfresh()
	}
	if e.bands >= e.mostBands() {
		return fmt.Errorf("grow isects: %w: one row of tiles needs %d (tile, splat) pairs, %d fit", ErrTooSmall, n,
			limit)
	}
	e.bands = min(max(e.bands+1, moreBands(e.bands, int(n), limit)), e.mostBands())
	e.isectCapacity = e.fewerIsects(limit)
	if e.isectCapacity == 0 {
		return fmt.Errorf("grow isects: %w: nothing is left for views", ErrTooSmall)
	}
	return e.startAfresh()
}

// roomForBands reports whether any view can be worked on, in bands if need be.
func (e *engine) roomForBands() bool { return e.isectLimitIn(2) >= minIsects }

// moreBands returns how many bands bring a band's pairs from n to the limit, with something to spare: pairs are not
// spread evenly.
func moreBands(bands, n, limit int) int {
	if limit <= 0 {
		return math.MaxInt
	}
	return int(math.Ceil(float64(bands) * float64(n) * 1.125 / float64(limit)))
}

// divide makes twice as many bands, with as many pairs at once as fit then; divided is false where that is too few.
// Nothing may be in flight.
func (e *engine) divide() (divided bool, err error) {
	if e.yield != nil {
		e.yield()
	}
	more := min(2*e.bands, e.mostBands())
	limit := e.isectLimitIn(more)
	if limit < minIsects {
		return false, nil
	}
	e.bands, e.isectCapacity = more, min(e.isectCapacity, limit)
	return true, e.startAfresh()
}

// startAfresh gives back the scratch memory, so that what takes its place finds all of it free.
func (e *engine) startAfresh() error {
	return errors.Join(e.closePrograms(), e.pool.Empty())
}

// growModel makes room for n splats, and for more as long as that fits: every growth stops the queue. Scratch memory,
// which can be made anew, is given back first.
func (e *engine) growModel(n, ceiling int) error {
	if err := e.startAfresh(); err != nil {
		return err
	}
	err := e.model.extend(min(ceiling, e.model.ample(n, e.model.growBy(e.strategy.knowsFinalSize()))), false)
	if errors.Is(err, vk.ErrOutOfMemory) {
		err = e.model.reserve(n)
	}
	if err != nil {
		return err
	}
	e.isectCapacity = e.fewerIsects(e.isectCapacity)
	if e.isectCapacity == 0 {
		return fmt.Errorf("grow model: %w: %d splats leave nothing for their views", ErrTooSmall, n)
	}
	return nil
}

// recover grows what a failed unit needed, at most to ceiling splats, and clears the failure. Nothing may be in flight.
func (e *engine) recover(r *layout.Report, ceiling int) error {
	if e.yield != nil {
		e.yield()
	}
	if r.Failed&layout.FailedSplats != 0 {
		if err := e.growModel(int(r.Needed), ceiling); err != nil {
			return err
		}
	}
	if r.Failed&layout.FailedView != 0 {
		if err := e.growView(int(r.Needed)); err != nil {
			return err
		}
	}
	if r.Failed&layout.FailedIsects != 0 {
		n := int(r.Needed)
		more := max(n/16, min(n/4, moreIsects))
		if int(r.NSplats) >= ceiling {
			more /= 2 // the model grows no more, and views stay about as they are
		}
		if err := e.growIsects(r.Needed, more); err != nil {
			return err
		}
	}
	e.split = [recipe.NKinds][]int{}
	if err := e.buildToFit(); err != nil {
		return err
	}
	return e.setCounters(r.NSplats)
}

// buildToFit is build with as few isects at once as it takes: the device may have less than the budget says. Views that
// then have more than fit ask for bands themselves.
func (e *engine) buildToFit() error {
	err := e.build()
	for errors.Is(err, vk.ErrOutOfMemory) && e.isectCapacity > layout.MostBucket {
		e.isectCapacity = max(layout.MostBucket, e.isectCapacity/4*3&^(layout.MostBucket-1))
		e.isectMost = e.isectCapacity
		if err := e.startAfresh(); err != nil {
			return err
		}
		err = e.build()
	}
	return err
}

// close frees the engine, also one that an error left unfinished. Device.Close frees what an error leaves of that.
func (e *engine) close() error {
	if err := e.dev.WaitIdle(); err != nil {
		return err
	}
	if err := e.closePrograms(); err != nil {
		return err
	}
	for _, f := range e.frames {
		if f.copier != nil {
			f.copier.Close()
		}
		e.dev.Free(f.params.View)
		e.dev.Free(f.report.View)
		f.peers.free(e)
		f.lens.free(e)
		f.verifier.free(e)
		f.freePart(e.dev)
	}
	for _, v := range []vk.View{e.counters.View, e.args.View, e.voters.View} {
		if !v.IsZero() {
			e.dev.Free(v)
		}
	}
	if e.appearances != nil {
		e.appearances.close()
	}
	if e.histories != nil {
		e.histories.close()
	}
	if e.depths != nil {
		e.depths.close()
	}
	if e.poses != nil {
		e.poses.close()
	}
	e.model.close()
	return e.pool.Close()
}
