package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

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
	c.LRAppearance, c.RefineEvery, c.SHInterval, c.NumDownscales = 0, 0, 1, 0
}

// HoldAt is Hold on photos that are halved level times, with a refinement after each step if refines is set.
func (t *Trainer) HoldAt(level int, refines bool) {
	t.Hold()
	c := &t.cfg
	c.NumDownscales, c.ResolutionSchedule = level, math.MaxInt
	if refines {
		c.RefineEvery, c.RefineStart, c.RefineStop, c.ResetEvery = 1, 0, math.MaxInt, 0
	}
}

// Measure holds the model and times steps. The configured number of steps must leave room for bench.Options.Total of
// them. report, which may be nil, is called after every step.
func (t *Trainer) Measure(ctx context.Context, o bench.Options, report func(Progress)) (m bench.Measurement,
	err error) {
	t.Hold()
	if err := t.timeAll(true); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, t.timeAll(false)) }()
	return bench.Measure(ctx, &measuring{t, report}, o)
}

// timeAll makes all steps able to have timestamps, or the first frame's alone as usual. Nothing may be in flight.
func (t *Trainer) timeAll(on bool) error {
	return t.each(func(m *member) error {
		if err := m.e.closePrograms(); err != nil {
			return err
		}
		m.e.timeAll = on
		return m.e.buildToFit()
	})
}

// timeCopies decides whether the copies of photos have timestamps from now on.
func (t *Trainer) timeCopies(on bool) error {
	return t.each(func(m *member) error {
		for i, f := range m.e.frames {
			if err := errors.Join(f.copier.SetTimed(on), m.photos.keepers[i].SetTimed(on)); err != nil {
				return err
			}
		}
		return nil
	})
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
	if err := t.timeCopies(meter.Timed()); err != nil {
		return err
	}
	t.meter = meter
	defer func() {
		t.meter = nil
		err = errors.Join(err, t.timeCopies(false))
	}()
	meter.Start()
	defer meter.Stop()
	from := t.progress.Step
	if err := t.RunTo(ctx, from+steps, m.report); err != nil {
		return err
	}
	if ran := t.progress.Step - from; ran < steps {
		return fmt.Errorf("measure steps: %d of %d ran, of a run of %d steps", ran, steps, t.cfg.Iterations)
	}
	return nil
}

func (m *measuring) Counts() bench.Counts {
	t := m.t
	c := bench.Counts{
		Splats: t.progress.Splats, SHDegree: t.cfg.SHDegree, Mixed: t.e.model.Mixed, AbsGrad: t.e.strategy.absgrad,
		Bands: t.e.bands, SortBits: t.e.sort.bits, DepthBits: layout.DepthBits, TileBits: t.e.tileBits(),
		Lanes:    int(t.e.raster.forward) / layout.Patches,
		LanesBwd: int(t.e.raster.listLanes()), HandRound: t.e.raster.handRound,
		Bucket: int(t.e.raster.bucket), UnseenApart: t.e.unseenApart(),
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
	if e.pairs, err = vk.Make[layout.TilePairs](e.dev, vk.Readback, e.maxTiles, "tile_pairs"); err != nil {
		return sums, err
	}
	defer func() {
		pairs := e.pairs
		e.pairs = vk.Slice[layout.TilePairs]{}
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
			sums.Seen += float64(tile.Seen)
			sums.Blended += float64(tile.Blended)
			sums.SeenIsects += float64(tile.Isects)
			sums.Isects += float64(tile.All)
			sums.Visits += float64(tile.Visits)
			sums.PatchesBwd += float64(tile.PatchesBwd)
			sums.VisitsBwd += float64(tile.VisitsBwd)
		}
		sums.Reported += float64(t.progress.Isects)
	}
	return sums, nil
}
