package pipeline

import (
	"context"
	"errors"
	"fmt"

	"vksplat/pipeline/bench"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Hold freezes the model: steps do all their work, at the full degree of spherical harmonics and the full size of the
// photos, but learning rates are zero and nothing is refined. So all rounds of measured steps, and kernels that round
// differently, are timed on the same model.
func (t *Trainer) Hold() {
	c := &t.run.cfg
	for _, rate := range c.SplatRates() {
		*rate = 0
	}
	c.LRAppearance, c.RefineEvery, c.SHInterval, c.NumDownscales = 0, 0, 1, 0
}

// Measure holds the model and times steps. The configured number of steps must leave room for bench.Options.Total of
// them. report, which may be nil, is called after every step.
func (t *Trainer) Measure(ctx context.Context, o bench.Options, report func(Progress)) (m bench.Measurement,
	err error) {
	t.Hold()
	if err := t.shards.timeSteps(true); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, t.shards.timeSteps(false)) }()
	return bench.Measure(ctx, &measuring{t, report}, o)
}

// photoCopies are the copies of a unit's photo.
type photoCopies struct {
	copiers []*vk.Copier
	bytes   int
	times   []vk.PassTime
}

func (p *photoCopies) reset() { p.copiers, p.bytes = p.copiers[:0], 0 }

func (p *photoCopies) add(c *vk.Copier, bytes int64) {
	p.copiers, p.bytes = append(p.copiers, c), p.bytes+int(bytes)
}

// took returns what the copies took, as far as they were timed. It is valid until the next call.
func (p *photoCopies) took() []vk.PassTime {
	p.times = p.times[:0]
	for _, c := range p.copiers {
		if ns, ok := c.Took(); ok {
			p.times = append(p.times, vk.PassTime{Name: bench.PhotoCopy, Nanoseconds: ns})
		}
	}
	return p.times
}

// measuring is a Trainer whose steps package bench measures.
type measuring struct {
	t      *Trainer
	report func(Progress)
}

func (m *measuring) Train(ctx context.Context, steps int, meter *bench.Meter) (err error) {
	t := m.t
	if err := t.shards.timeCopies(meter.Timed()); err != nil {
		return err
	}
	t.report.meter = meter
	defer func() {
		t.report.meter = nil
		err = errors.Join(err, t.shards.timeCopies(false))
	}()
	meter.Start()
	defer meter.Stop()
	from := t.report.progress.Step
	if err := t.RunTo(ctx, from+steps, m.report); err != nil {
		return err
	}
	if ran := t.report.progress.Step - from; ran < steps {
		return fmt.Errorf("measure steps: %d of %d ran, of a run of %d steps", ran, steps, t.run.cfg.Iterations)
	}
	return nil
}

func (m *measuring) Counts() bench.Counts {
	t := m.t
	c := bench.Counts{
		Splats: t.report.progress.Splats, SHDegree: t.run.cfg.SHDegree, Mixed: t.shards.first.e.setup.model.Mixed,
		AbsGrad: t.shards.first.e.setup.strategy.variants().absgrad,
		Bands:   t.shards.first.e.setup.bands, SortBits: t.shards.first.e.setup.sort.bits, DepthBits: layout.DepthBits,
		TileBits: t.shards.first.e.setup.views.tileBits(),
		Lanes:    int(t.shards.first.e.setup.raster.forward) / layout.Patches,
		LanesBwd: int(t.shards.first.e.setup.raster.listLanes()), HandRound: t.shards.first.e.setup.raster.handRound,
		Bucket: int(t.shards.first.e.setup.raster.bucket), UnseenApart: t.shards.first.e.setup.unseenApart(),
	}
	var pixels, nTiles []int
	for i := range t.run.cams {
		pixels = append(pixels, t.run.cams[i].Width*t.run.cams[i].Height)
		nTiles = append(nTiles, layout.Tiles(t.run.cams[i].Width)*layout.Tiles(t.run.cams[i].Height))
	}
	c.Pixels, c.Tiles = scene.Median(pixels), scene.Median(nTiles)
	return c
}

func (m *measuring) CountPairs(ctx context.Context, steps int) (sums bench.Pairs, err error) {
	t, e := m.t, m.t.shards.first.e
	if e.setup.pairs, err = vk.Make[layout.TilePairs](e.setup.dev, vk.Readback, e.setup.views.maxTiles,
		"tile_pairs"); err != nil {
		return sums, err
	}
	defer func() {
		pairs := e.setup.pairs
		e.setup.pairs = vk.Slice[layout.TilePairs]{}
		err = errors.Join(err, e.memory.buildToFit(), e.setup.dev.Free(pairs.View))
	}()
	if err := e.memory.buildToFit(); err != nil {
		return sums, err
	}
	for range steps {
		clear(vk.Host(e.setup.pairs)) // views differ in size
		if err := m.Train(ctx, 1, nil); err != nil {
			return sums, err
		}
		for _, tile := range vk.Host(e.setup.pairs) {
			sums.Seen += float64(tile.Seen)
			sums.Blended += float64(tile.Blended)
			sums.SeenIsects += float64(tile.Isects)
			sums.Isects += float64(tile.All)
			sums.Visits += float64(tile.Visits)
			sums.PatchesBwd += float64(tile.PatchesBwd)
			sums.VisitsBwd += float64(tile.VisitsBwd)
		}
		sums.Reported += float64(t.report.progress.Isects)
	}
	return sums, nil
}
