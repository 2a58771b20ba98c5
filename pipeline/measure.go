package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"vksplat/scene"
	"vksplat/vk"
)

// MeasureOptions say how Trainer.Measure measures.
type MeasureOptions struct {
	Warm   int // steps before the first that counts
	Steps  int // that count, in each round
	Rounds int
}

// Total returns the steps of all rounds together, with those before, and those that count pairs.
func (o MeasureOptions) Total() int { return o.Warm + o.Steps*o.Rounds + countedViews }

// countedViews is how many views are looked at pair by pair.
const countedViews = 8

// Measurement is what Measure finds.
type Measurement struct {
	Rounds []Round
	Counts Counts
}

// Round is what some steps took, one after the other. Medians are over its steps.
type Round struct {
	WallSeconds float64      // from before the first is submitted to nothing that is in flight, as the host saw it
	HostSeconds float64      // of these, when the host did not wait for the device
	Passes      []PassSample // in the order of a step
	Visible     int          // median of the splats that a view shows
	Isects      int          // median of its (tile, splat) pairs
}

// PassSample is what one pass of a step took.
type PassSample struct {
	Name       string
	MS         float64 // median
	MeanMS     float64
	Dispatches int // of a step
}

// MeanMS returns the mean of the sum of a step's passes.
func (r *Round) MeanMS() (sum float64) {
	for _, p := range r.Passes {
		sum += p.MeanMS
	}
	return sum
}

// Pass returns the pass of a name, all zero where there is none.
func (r *Round) Pass(name string) PassSample {
	for _, p := range r.Passes {
		if p.Name == name {
			return p
		}
	}
	return PassSample{}
}

// Hold keeps the model as it is from here on: steps do all their work, at the full degree of spherical harmonics and the full size of the photos, but learning rates are zero and nothing
// is refined. So every round of measured steps works on the same model, and kernels that round differently are timed on the same model, too.
func (t *Trainer) Hold() {
	c := &t.cfg
	for _, rate := range []*float64{&c.LRMeans, &c.LRQuats, &c.LRLogScales, &c.LRLogitOpacity, &c.LRSH0, &c.LRSHN, &c.LRExposure} {
		*rate = 0
	}
	c.RefineEvery, c.SHInterval, c.NumDownscales = 0, 1, 0
}

// Measure holds the model and times steps. The configured number of steps must leave room for MeasureOptions.Total of them. tell, which may be nil, is
// called after every step.
func (t *Trainer) Measure(ctx context.Context, o MeasureOptions, tell func(Progress)) (Measurement, error) {
	t.Hold()
	var m Measurement
	err := t.RunTo(ctx, t.progress.Step+o.Warm, tell)
	for range o.Rounds {
		if err != nil {
			return m, err
		}
		var r Round
		r, err = t.round(ctx, o.Steps, tell)
		m.Rounds = append(m.Rounds, r)
	}
	if err != nil {
		return m, err
	}
	m.Counts, err = t.count(ctx, m.Rounds, tell)
	return m, err
}

// round times some steps. Nothing is in flight before them and after them. Some have timestamps, the first one in any case.
func (t *Trainer) round(ctx context.Context, steps int, tell func(Progress)) (Round, error) {
	t.queued = 0 // the first frame is the next: it has the program with timestamps
	t.pace.since = measuredOneOf
	t.meter = &meter{steps: steps, began: time.Now()}
	defer func() { t.meter = nil }()
	if err := t.RunTo(ctx, t.progress.Step+steps, tell); err != nil {
		return Round{}, err
	}
	return t.meter.round(), nil
}

// count takes the counts of the rounds, and those of pairs from a few more steps that look for them.
func (t *Trainer) count(ctx context.Context, rounds []Round, tell func(Progress)) (Counts, error) {
	c := Counts{
		Splats: t.progress.Splats, SHDegree: t.cfg.SHDegree, Mixed: t.e.model.mixed, AbsGrad: t.e.strategy.absgrad, Bands: t.e.bands,
		SortBits: t.e.sort.bits, DepthBits: depthBits, TileBits: t.e.tileBits(),
	}
	var pixels, nTiles, visible, isects []int
	for i := range t.cams {
		pixels = append(pixels, t.cams[i].Width*t.cams[i].Height)
		nTiles = append(nTiles, tiles(t.cams[i].Width)*tiles(t.cams[i].Height))
	}
	for _, r := range rounds {
		visible, isects = append(visible, r.Visible), append(isects, r.Isects)
	}
	c.Pixels, c.Tiles, c.Visible, c.Isects = scene.Median(pixels), scene.Median(nTiles), scene.Median(visible), scene.Median(isects)
	sums, err := t.countPairs(ctx, tell)
	if reported := sums[4]; reported > 0 { // as many for each isect that was reported as in the views that were looked at; of bands, the largest is reported
		each := float64(c.Isects) / reported
		c.SeenPairs, c.BlendedPairs, c.SeenIsects, c.Isects = int(sums[0]*each), int(sums[1]*each), int(sums[2]*each), int(sums[3]*each)
	}
	return c, err
}

// countPairs goes some steps that count pairs, one at a time, and returns the sums over them of pairs seen, of pairs blended, of isects seen, of isects, and
// of isects as steps report them.
func (t *Trainer) countPairs(ctx context.Context, tell func(Progress)) (sums [5]float64, err error) {
	e := t.e
	if e.pairs, err = vk.Make[[4]uint32](e.dev, vk.Readback, e.maxTiles, "tile_pairs"); err != nil {
		return sums, err
	}
	defer func() {
		pairs := e.pairs
		e.pairs = vk.Slice[[4]uint32]{}
		err = errors.Join(err, e.buildToFit(), e.dev.Free(pairs.View))
	}()
	if err := e.buildToFit(); err != nil {
		return sums, err
	}
	for range countedViews {
		clear(vk.Host(e.pairs)) // views differ in size
		if err := t.RunTo(ctx, t.progress.Step+1, tell); err != nil {
			return sums, err
		}
		for _, tile := range vk.Host(e.pairs) {
			for k, n := range tile {
				sums[k] += float64(n)
			}
		}
		sums[4] += float64(t.progress.Isects)
	}
	return sums, nil
}

// meter takes the times of the steps of a round.
type meter struct {
	steps   int
	began   time.Time
	waited  time.Duration // for the device, and with taking times
	passes  []passSeries
	timed   int // steps whose passes were timed
	visible []int
	isects  []int
	times   []vk.PassTime
}

// passSeries is one pass in the steps of a round.
type passSeries struct {
	name       string
	dispatches int
	ms         []float64
}

// wait notes that the host waited for the device.
func (m *meter) wait(d time.Duration) {
	if m != nil {
		m.waited += d
	}
}

// observe takes in a finished step.
func (m *meter) observe(prog *vk.Program, p Progress) {
	if m == nil {
		return
	}
	started := time.Now()
	m.take(prog, p)
	m.wait(time.Since(started))
}

// take adds a step to the round.
func (m *meter) take(prog *vk.Program, p Progress) {
	m.visible, m.isects = append(m.visible, p.Visible), append(m.isects, p.Isects)
	m.times = prog.Timings(m.times[:0])
	if len(m.times) == 0 {
		return
	}
	for i, label := range passLabels(m.times) {
		ms := float64(m.times[i].Nanoseconds) / 1e6
		at := slices.IndexFunc(m.passes, func(s passSeries) bool { return s.name == label })
		if at < 0 {
			at = len(m.passes)
			m.passes = append(m.passes, passSeries{name: label, ms: make([]float64, 0, m.steps)})
		}
		s := &m.passes[at]
		for len(s.ms) <= m.timed { // zero in steps that did without it
			s.ms, s.dispatches = append(s.ms, 0), 0
		}
		s.ms[m.timed] += ms
		s.dispatches++
	}
	m.timed++
}

// round sums the steps up.
func (m *meter) round() Round {
	wall := time.Since(m.began)
	r := Round{WallSeconds: wall.Seconds(), HostSeconds: max(wall-m.waited, 0).Seconds(), Visible: scene.Median(m.visible), Isects: scene.Median(m.isects)}
	for _, s := range m.passes {
		mean := 0.0
		for _, ms := range s.ms {
			mean += ms / float64(m.timed)
		}
		r.Passes = append(r.Passes, PassSample{Name: s.name, MS: scene.Median(s.ms), MeanMS: mean, Dispatches: s.dispatches})
	}
	return r
}

// passLabels returns names that tell the two sorts of a step apart: kernels of one name before the first pass on isects sort by depth, those after it by tile.
func passLabels(times []vk.PassTime) []string {
	labels := make([]string, len(times))
	sorts := sortsDepth
	for i, t := range times {
		if t.Name == "count_tiles" || t.Name == "scan_tiles" {
			sorts = sortsTiles
		}
		labels[i] = t.Name
		if strings.HasPrefix(t.Name, "sort_") {
			labels[i] += sorts
		}
	}
	return labels
}

// What follows the names of the kernels that sort.
const (
	sortsDepth = " (depth)"
	sortsTiles = " (tiles)"
)
