package train

import (
	"context"
	"errors"
	"slices"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// rehearsal times steps of throw-away models: one with the run's first splats, and one with as many as it will end
// with, on photos of each size; and refinements of the latter. These models do not grow, which would take as long as it
// does in the run: what a schedule takes follows from the times, see stepTimes. What is compiled and decoded meanwhile
// is the run's, too.
type rehearsal struct {
	r       *limiter
	cams    []scene.Camera
	init    *scene.Splats
	options pipeline.TrainerOptions

	growth  growth
	times   stepTimes
	views   []int   // that models are trained on
	photo   float64 // seconds that decoding a photo takes
	made    float64 // seconds that making the trainer takes
	once    float64 // seconds that steps of the last model took beyond what they are timed at
	besides besides
}

// The sizes of rehearsals.
const (
	stretches  = 4   // of steps on photos of a size: one to have programs made, and three to be timed
	mostSteps  = 12  // of a stretch
	somePhotos = 12  // that models are trained on: enough to differ, few enough to be on the device soon
	mostGrown  = 3e5 // splats: more take long to be brought to the device, their times are extrapolated
)

// cpuType is the type of devices whose steps run on the cores that decode photos.
const cpuType = "cpu"

// The times of rehearsals, as shares of the limit.
const (
	decodeShare = 0.1  // for photos ahead of the steps, which the run needs anyway
	pilotShare  = 0.2  // after which the pilot ends, whatever it has seen
	aimedShare  = 0.05 // for the steps that are timed
	mostShare   = 0.15 // after which they end; if the fewest take longer, none is timed beside the pilot's
)

// leastAimed are seconds for the steps that are timed where the share of the limit is less.
const leastAimed = 0.25

// share returns the seconds of a share of the limit.
func (h *rehearsal) share(s float64) float64 { return s * time.Duration(h.r.TimeLimit).Seconds() }

// left returns the seconds that are left of the limit for steps of a recipe until the clock would end them, less what
// steps wait for photos that are not decoded.
func (h *rehearsal) left(cfg *recipe.Config) float64 {
	waits := max(0, len(h.cams)-h.r.photos.Stats().Decoded)
	b := h.besides.of(h.growth.last(cfg))
	taken := b.onTheWay() + b.cut() + h.r.clock.passed()
	return h.share(1) - taken.Seconds() - h.made - h.once - h.photo*float64(waits)
}

// fit returns how many steps of a recipe fit. With fewer steps a model has fewer splats, which are written sooner and
// leave time for more steps: the third of such guesses is the second that is no more than fit.
func (h *rehearsal) fit(cfg recipe.Config) (n int) {
	short := cfg
	for range 3 {
		n = h.times.fit(cfg, h.growth, h.left(&short)*(1-limitMargin))
		short = h.growth.ofSteps(cfg, max(1, n))
	}
	return n
}

// measure times the steps of a recipe, and on photos that are halved up to so many times where few of its steps fit.
func (h *rehearsal) measure(ctx context.Context, cfg recipe.Config, halved int) error {
	defer h.r.photos.Forget()
	h.growth = growthOf(&cfg, h.cams, h.r.nPoints, h.init.N, h.r.plan.Ceiling)
	h.growth.fewer = h.r.splatsFollow()
	if err := h.decode(ctx); err != nil {
		return err
	}
	few := h.growth.first
	many := min(h.growth.last(&cfg), max(few, mostGrown))
	pilot, err := h.train(ctx, cfg, trial{splats: few, sizes: 1, steps: 1, share: pilotShare})
	if err != nil {
		return err
	}
	later := pilot.slower(many)
	h.times.few, h.times.many = pilot, later
	if later.at(0)*float64(min(fewestSteps, cfg.Iterations)) < h.left(&cfg) {
		halved = cfg.NumDownscales
	}
	all := stretches * (2 - 1/float64(int(1)<<halved)) // stretches: those on photos of half the size are half as long
	steps := max(leastAimed, h.share(aimedShare)) / max(all*(pilot.at(0)+later.at(0)), 1e-9)
	try := trial{splats: few, sizes: halved + 1, steps: int(min(mostSteps, max(1, steps))), share: mostShare}
	fits := func(m *modelTimes) bool { return m.at(0)*all < h.share(mostShare) }
	if many != few && fits(&pilot) {
		try.or = pilot
		if h.times.few, err = h.train(ctx, cfg, try); err != nil {
			return err
		}
	}
	try.or, try.last = h.times.few.slower(many), true
	if !fits(&later) { // only what follows the last step is measured
		h.times.many = try.or
		try.steps = 0
		_, err = h.train(ctx, cfg, try)
		return err
	}
	try.splats = many
	h.times.many, err = h.train(ctx, cfg, try)
	if many == few {
		h.times.few = h.times.many
	}
	return err
}

// trial says how a throw-away model is trained.
type trial struct {
	splats int
	sizes  int        // of photos, the smallest first
	steps  int        // of a stretch
	share  float64    // of the limit, after which it ends
	or     modelTimes // what is taken for steps that it does not come to
	last   bool       // refinements are timed, and what the run takes beside its steps
}

// all returns how many stretches there are: the last two with a refinement after each step.
func (t *trial) all() int {
	if t.last {
		return t.sizes*stretches + 2
	}
	return t.sizes * stretches
}

// train times the steps of a throw-away model.
func (h *rehearsal) train(ctx context.Context, cfg recipe.Config, try trial) (m modelTimes, err error) {
	r, clock := h.r, h.r.clock
	defer r.keepBudgets()() // the run finds out for itself that memory is short, and says so
	began := clock.passed()
	t, err := h.trainer(cfg, try)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if try.splats == h.growth.first { // as the run's
		h.made = (clock.passed() - began).Seconds()
	}
	h.once = 0
	laps, err := h.laps(ctx, t, try)
	if err != nil {
		return m, err
	}
	m = modelTimes{try.splats, make([]float64, try.sizes)}
	for level := try.sizes - 1; level >= 0; level-- {
		list, seconds := laps[level], try.or.at(level)
		switch {
		case len(list) > 0:
			seconds = scene.Median(slices.Clone(list[min(1, len(list)-1):])) // programs were made in the first
		case level < try.sizes-1:
			seconds += m.seconds[level+1] - try.or.at(level+1)
		}
		m.seconds[level] = seconds
		for _, lap := range list[min(1, len(list)):] { // as much came with the first, beside its programs
			h.once += 2 * max(0, lap-seconds) * float64(try.steps)
		}
	}
	if views := h.viewsOf(try); len(views) > 0 && r.plan.Device.PhotoAll { // the run brings each photo there once
		h.once *= float64(len(h.cams)) / float64(len(views))
	}
	if refined := laps[try.sizes]; len(refined) > 0 { // a small difference: by the least disturbed
		h.times.refine = max(0, slices.Min(refined)-slices.Min(laps[0]))
	}
	if try.last {
		h.besides, err = r.estimateBesides(t)
	}
	return m, err
}

// viewsOf returns the views that a model is trained on: few enough that each is brought to the device in the first two
// stretches, which are not what a size of photos is timed by.
func (h *rehearsal) viewsOf(try trial) []int { return h.views[:min(len(h.views), max(1, 2*try.steps))] }

// trainer makes a throw-away trainer.
func (h *rehearsal) trainer(cfg recipe.Config, try trial) (*pipeline.Trainer, error) {
	r, o := h.r, h.options
	o.Interludes, o.OnPressure, o.Warn, o.Anchors = nil, nil, nil, nil
	cams, source := h.cams, photos.Source(r.photos)
	if views := h.viewsOf(try); views != nil {
		cams, source = captured.Pick(cams, views), someOf{r.photos, views}
		o.Depths, o.Known = captured.Pick(o.Depths, views), captured.Pick(o.Known, views)
		o.Normals, o.Photos = captured.Pick(o.Normals, views), captured.Pick(o.Photos, views)
		if !r.plan.Device.PhotoAll { // most steps of the run bring their photo to the device
			o.PhotoBytes = -1
		}
	}
	init := h.init
	if try.splats != h.growth.first { // else the trainer itself leaves out what is too many
		init = modelLike(init, try.splats)
	}
	return pipeline.NewTrainer(r.device, cams, source, init, r.Capture.SceneScale, rehearsed(cfg, try), o)
}

// rehearsed returns the recipe of a throw-away model: its splats show all that they can from the first steps on, and
// they stay as many.
func rehearsed(cfg recipe.Config, try trial) recipe.Config {
	c, n := cfg, try.sizes*stretches*try.steps
	c.Iterations = try.all()*try.steps + 1 // after the last step, which is not done, a model may be refined
	c.NumDownscales, c.ResolutionSchedule, c.SHInterval = try.sizes-1, max(1, stretches*try.steps), 1
	c.RefineEvery, c.RefineStart, c.RefineStop, c.ResetEvery = min(1, cfg.RefineEvery), max(0, n-1), c.Iterations, 0
	c.MaxSplats, c.RefineCameras = try.splats, false // what poses take is not foreseen
	if c.Splats > 0 {
		c.Splats = try.splats
	}
	return c
}

// laps trains in equal stretches, a number of them for each size of photos, and returns what a step of each took in
// seconds, by how many times photos are halved, and behind that those with refinements. Nothing is in flight between
// stretches: when the host hears of a single step says little of how long it took.
func (h *rehearsal) laps(ctx context.Context, t *pipeline.Trainer, try trial) (laps [][]float64, err error) {
	part, stop := context.WithCancel(ctx)
	defer stop()
	clock := h.r.clock
	end := clock.passed().Seconds() + h.share(try.share)
	laps = make([][]float64, try.sizes+1)
	for i := range try.all() {
		began, done, level := clock.passed(), t.Step(), try.sizes-1-i/stretches
		if level < 0 {
			level = try.sizes
		}
		err = t.RunTo(part, (i+1)*try.steps, func(p pipeline.Progress) {
			if !p.More {
				clock.rehearsed(p.Level, p.Splats)
			}
			if clock.passed().Seconds() > end {
				stop()
			}
		})
		if steps := t.Step() - done; steps > 0 {
			laps[level] = append(laps[level], (clock.passed()-began).Seconds()/float64(steps))
		}
		if part.Err() != nil {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return laps, ctx.Err()
}

// keepBudgets notes the devices' budgets, which a trainer lowers if memory is short, and returns what restores them.
func (m *machine) keepBudgets() (restore func()) {
	devices := append([]*pipeline.Device{m.device}, m.others...)
	budgets := make([]int64, len(devices))
	for i, d := range devices {
		budgets[i] = d.Budget()
	}
	return func() {
		for i, d := range devices {
			d.SetBudget(budgets[i])
		}
	}
}

// someOf are some photos of a cache, without read-ahead: it has them.
type someOf struct {
	all   *photos.Cache
	views []int
}

func (s someOf) Photo(ctx context.Context, view int) (scene.Image, error) {
	return s.all.Photo(ctx, s.views[view])
}

func (s someOf) Release(view int) { s.all.Release(s.views[view]) }

// decode has the cache read photos ahead of the steps: those for throw-away models, and the others meanwhile, since the
// run visits each sooner or later. Where steps would take their turns with that on the same cores, they wait until all
// photos are there, for a share of the limit. Where the cache does not hold all, steps wait for photos as the run's do.
func (h *rehearsal) decode(ctx context.Context) error {
	r, n, clock := h.r, len(h.cams), h.r.clock
	if !r.plan.Host.CacheAll {
		return nil
	}
	order := spread(n, somePhotos)
	r.photos.Expect(order)
	sharing := r.device.Summary().Type == cpuType
	began, most := clock.passed().Seconds(), h.share(decodeShare)
	for _, view := range order {
		enough := len(h.views) >= somePhotos && !sharing
		if len(h.views) > 0 && (enough || clock.passed().Seconds()-began > most) {
			break
		}
		switch _, err := r.photos.Photo(ctx, view); {
		case err == nil:
			r.photos.Release(view)
			if len(h.views) < somePhotos {
				h.views = append(h.views, view)
			}
		case !errors.Is(err, fault.ErrData) || r.Load.Strict: // else training continues without it
			return err
		}
	}
	if sharing {
		r.photos.Forget()
	}
	h.photo = (clock.passed().Seconds() - began) / float64(max(1, r.photos.Stats().Decoded))
	return nil
}

// spread returns the numbers below n in an order that begins with so many at even distances.
func spread(n, first int) (order []int) {
	taken := make([]bool, n)
	for i := range min(n, first) {
		at := i * n / min(n, first)
		order, taken[at] = append(order, at), true
	}
	for i := range n {
		if !taken[i] {
			order = append(order, i)
		}
	}
	return order
}
