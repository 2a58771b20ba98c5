package pipeline

import (
	"context"
	"errors"

	"vksplat/pipeline/bench"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Hold keeps the model as it is from here on: steps do all their work, at the full degree of spherical harmonics and
// the full size of the photos, but learning rates are zero and nothing is refined. So every round of measured steps
// works on the same model, and kernels that round differently are timed on the same model, too.
func (t *Trainer) Hold() {
	c := &t.cfg
	for _, rate := range c.SplatRates() {
		*rate = 0
	}
	c.LRExposure, c.RefineEvery, c.SHInterval, c.NumDownscales = 0, 0, 1, 0
}

// Measure holds the model and times steps. The configured number of steps must leave room for bench.Options.Total of
// them. report, which may be nil, is called after every step.
func (t *Trainer) Measure(ctx context.Context, o bench.Options, report func(Progress)) (bench.Measurement, error) {
	t.Hold()
	return bench.Measure(ctx, &measuring{t, report}, o)
}

// measuring is a Trainer whose steps package bench measures.
type measuring struct {
	t      *Trainer
	report func(Progress)
}

func (m *measuring) Train(ctx context.Context, steps int, meter *bench.Meter) error {
	t := m.t
	if meter != nil {
		t.queued = 0 // the first frame is the next: it has the program with timestamps
		t.pace.since = measuredOneOf
		t.meter = meter
		defer func() { t.meter = nil }()
	}
	return t.RunTo(ctx, t.progress.Step+steps, m.report)
}

func (m *measuring) Counts() bench.Counts {
	t := m.t
	c := bench.Counts{
		Splats: t.progress.Splats, SHDegree: t.cfg.SHDegree, Mixed: t.e.model.Mixed, AbsGrad: t.e.strategy.absgrad,
		Bands: t.e.bands, SortBits: t.e.sort.bits, DepthBits: depthBits, TileBits: t.e.tileBits(),
	}
	var pixels, nTiles []int
	for i := range t.cams {
		pixels = append(pixels, t.cams[i].Width*t.cams[i].Height)
		nTiles = append(nTiles, layout.Tiles(t.cams[i].Width)*layout.Tiles(t.cams[i].Height))
	}
	c.Pixels, c.Tiles = scene.Median(pixels), scene.Median(nTiles)
	return c
}

func (m *measuring) CountPairs(ctx context.Context, steps int) (sums bench.Pairs, err error) {
	t, e := m.t, m.t.e
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
	for range steps {
		clear(vk.Host(e.pairs)) // views differ in size
		if err := m.Train(ctx, 1, nil); err != nil {
			return sums, err
		}
		for _, tile := range vk.Host(e.pairs) {
			sums.Seen += float64(tile[0])
			sums.Blended += float64(tile[1])
			sums.SeenIsects += float64(tile[2])
			sums.Isects += float64(tile[3])
		}
		sums.Reported += float64(t.progress.Isects)
	}
	return sums, nil
}
