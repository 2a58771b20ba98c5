package train

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// rehearsal times steps of two throw-away models, which do not change: one with the run's first splats, and one with as
// many as a run that fits ends with, on photos of each size. Programs that are compiled and photos that are decoded
// meanwhile serve the run, too.
type rehearsal struct {
	r       *limiter
	cams    []scene.Camera
	init    *scene.Splats
	options pipeline.TrainerOptions

	growth  growth
	times   stepTimes
	views   []int   // that models are trained on
	end     float64 // seconds of the clock after which no more steps are timed
	photo   float64 // seconds to decode a photo
	made    float64 // seconds to make the trainer
	besides besides
}

// Numbers of a rehearsal.
const (
	fewestTimed = 4   // steps, of which three are in flight at once
	mostSteps   = 36  // that are timed on photos of one size
	somePhotos  = 12  // that models are trained on: enough to differ, few enough to be on the device soon
	mostGrown   = 3e5 // splats: models of more are slow to upload, and their times are extrapolated
)

// cpuType is the type of devices whose steps run on the cores that decode photos.
const cpuType = "cpu"

// Times of a rehearsal as shares of the limit.
const (
	decodeShare = 0.1  // for photos ahead of the steps, which the run needs anyway
	aimedShare  = 0.05 // for the steps that are timed
	mostShare   = 0.15 // after which no more are
)

// leastAimed is the least time in seconds for the steps that are timed.
const leastAimed = 0.25

// share returns the seconds of a share of the limit.
func (h *rehearsal) share(s float64) float64 { return s * time.Duration(h.r.TimeLimit).Seconds() }

// passed returns the seconds of the limit that are over.
func (h *rehearsal) passed() float64 { return h.r.clock.passed().Seconds() }

// left returns the seconds that are left for the steps of a recipe, less those that they wait for photos.
func (h *rehearsal) left(cfg *recipe.Config) float64 {
	waits := max(0, len(h.cams)-h.r.photos.Stats().Decoded)
	b := h.besides.of(h.growth.last(cfg))
	return h.share(1) - h.passed() - (b.onTheWay() + b.end()).Seconds() - h.made - h.photo*float64(waits)
}

// fit returns how many steps of a recipe fit.
func (h *rehearsal) fit(cfg recipe.Config) int {
	return h.times.fit(cfg, h.growth, func(short *recipe.Config) float64 { return h.left(short) * (1 - limitMargin) })
}

// smallest is the shorter side of the smallest photo.
func (h *rehearsal) smallest() int {
	least := math.MaxInt
	for i := range h.cams {
		least = min(least, h.cams[i].Width, h.cams[i].Height)
	}
	return least
}

// measure times the steps of a recipe, where few of them fit on photos that are halved up to halved times.
func (h *rehearsal) measure(ctx context.Context, cfg recipe.Config, halved int) error {
	defer h.r.photos.Forget()
	h.growth = growthOf(&cfg, h.cams, h.r.nPoints, h.init.N, h.r.plan.Ceiling)
	h.growth.fewer = h.r.splatsFollow()
	if err := h.decode(ctx); err != nil {
		return err
	}
	h.end = h.passed() + h.share(mostShare)
	few, err := h.train(ctx, cfg, h.growth.first, halved)
	if err != nil {
		return err
	}
	h.times.few, h.times.many = few, few.slower(h.growth.last(&cfg))
	short := h.growth.ofSteps(cfg, max(1, h.fit(cfg)))
	many := min(h.growth.last(&short), max(few.splats, mostGrown))
	slower := few.slower(many)
	if many > few.splats && h.passed()+fewestTimed*slower.at(0) < h.end {
		h.times.many, err = h.train(ctx, cfg, many, len(few.seconds)-1)
	}
	return err
}

// train times the steps of a throw-away model on photos of each size, the largest first, and refinements.
func (h *rehearsal) train(ctx context.Context, cfg recipe.Config, splats, halved int) (m modelTimes, err error) {
	defer h.r.keepBudgets()() // the run finds out for itself that memory is short, and says so
	began, first := h.passed(), splats == h.growth.first
	t, err := h.trainer(cfg, splats, halved)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if first {
		h.made = h.passed() - began
	}
	m.splats = splats
	each := max(leastAimed, h.share(aimedShare)) / float64(2*(halved+2))
	for level := 0; level <= halved && (level == 0 || h.passed() < h.end); level++ {
		if level == cfg.NumDownscales+1 && // the recipe's own sizes do
			m.at(0)*growsSlower*float64(min(fewestSteps, cfg.Iterations)) < h.left(&cfg) {
			break
		}
		seconds, err := h.step(ctx, t, level, false, each)
		if err != nil {
			return m, err
		}
		m.seconds = append(m.seconds, seconds)
	}
	if cfg.RefineEvery > 0 && h.passed() < h.end {
		refined, err := h.step(ctx, t, 0, true, each)
		if err != nil {
			return m, err
		}
		h.times.refine = max(0, refined-m.at(0))
	}
	if first {
		h.besides, err = h.r.estimateBesides(t)
	}
	return m, err
}

// step returns the mean seconds of a step on photos of a size, with or without refinements. It trains in stretches of
// about most seconds: the first step compiles programs, then photos are uploaded, and the last stretch is timed. If
// steps are slow, uploads hardly count, and the second stretch is the last.
func (h *rehearsal) step(ctx context.Context, t *pipeline.Trainer, level int, refines bool,
	most float64) (seconds float64, err error) {
	t.HoldAt(level, refines)
	seconds = most
	for i, n := range []int{1, somePhotos, mostSteps} {
		late := h.passed() >= h.end
		if late {
			n = 1
		}
		n = max(1, int(min(float64(n), most/max(seconds, 1e-9))))
		began := h.passed()
		err := t.RunTo(ctx, t.Step()+n, func(p pipeline.Progress) {
			if !p.More {
				h.r.clock.rehearsed(p.Level, p.Splats)
			}
		})
		if err != nil {
			return 0, err
		}
		took := h.passed() - began
		if seconds = took / float64(n); i > 0 && (late || took > most/2) {
			break
		}
	}
	return seconds, nil
}

// trainer makes a throw-away trainer.
func (h *rehearsal) trainer(cfg recipe.Config, splats, halved int) (*pipeline.Trainer, error) {
	r, o := h.r, h.options
	o.Interludes, o.OnPressure, o.Warn, o.Anchors = nil, nil, nil, nil
	cams, source := h.cams, photos.Source(r.photos)
	if h.views != nil {
		cams, source = pick(cams, h.views), someOf{r.photos, h.views}
		o.Depths, o.Known = pick(o.Depths, h.views), pick(o.Known, h.views)
		o.Normals, o.Photos = pick(o.Normals, h.views), pick(o.Photos, h.views)
		if !r.plan.Device.PhotoAll { // most steps of the run bring their photo to the device
			o.PhotoBytes = -1
		}
	}
	init := h.init
	if splats != h.growth.first { // else the trainer itself leaves out what is too many
		init = modelLike(init, splats)
	}
	return pipeline.NewTrainer(r.device, cams, source, init, r.Capture.SceneScale, rehearsed(cfg, splats, halved), o)
}

// rehearsed returns the recipe of a throw-away model that keeps its number of splats.
func rehearsed(cfg recipe.Config, splats, halved int) recipe.Config {
	cfg.Iterations = (halved + 3) * (1 + somePhotos + mostSteps)
	cfg.NumDownscales, cfg.ResolutionSchedule = halved, max(1, cfg.ResolutionSchedule)
	cfg.MaxSplats, cfg.RefinePoses = splats, false // poses are not foreseen
	if cfg.Splats > 0 {
		cfg.Splats = splats
	}
	return cfg
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

// someOf are some photos of a cache, which holds them already: it need not know in which order they come.
type someOf struct {
	all   *photos.Cache
	views []int
}

func (s someOf) Photo(ctx context.Context, view int) (scene.Image, error) {
	return s.all.Photo(ctx, s.views[view])
}

func (s someOf) Release(view int) { s.all.Release(s.views[view]) }

// pick returns some of a list, which may be empty.
func pick[L ~[]T, T any](list L, which []int) (some L) {
	if len(list) == 0 {
		return nil
	}
	for _, i := range which {
		some = append(some, list[i])
	}
	return some
}

// decode has the cache read photos ahead of the steps: first those for throw-away models, which are picked at random,
// then the others, since the run visits each sooner or later. If decoding and steps share the cores, steps wait for all
// photos, up to a share of the limit. A cache that does not hold all is left alone: steps wait for photos as the run's
// do.
func (h *rehearsal) decode(ctx context.Context) error {
	r := h.r
	if !r.plan.Host.CacheAll {
		return nil
	}
	order := rand.New(rand.NewPCG(0, 0)).Perm(len(h.cams))
	r.photos.Expect(order)
	sharing := r.device.Summary().Type == cpuType
	began := h.passed()
	for _, view := range order {
		enough := len(h.views) >= somePhotos && !sharing || h.passed()-began > h.share(decodeShare)
		if len(h.views) > 0 && enough {
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
	h.photo = (h.passed() - began) / float64(max(1, r.photos.Stats().Decoded))
	return nil
}
