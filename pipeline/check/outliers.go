package check

import (
	"fmt"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func outlierCases() []Case {
	sizes := [][2]int{{1, 1}, {3, 2}, {16, 16}, {17, 1}, {50, 40}, {70, 33}}
	table := func(change func(*strayPixels)) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error { return t.outliersOf(s[0], s[1], 0, change) })
		}
	}
	return []Case{
		newCase("find_outliers", "sizes", table(func(*strayPixels) {})),
		newCase("find_outliers", "no threshold", table(func(o *strayPixels) { o.share = 0 })),
		newCase("find_outliers", "few pixels are low", table(func(o *strayPixels) { o.share = 0.2 })),
		newCase("find_outliers", "masks", table(func(o *strayPixels) { o.photo.masked(0.8) })),
		newCase("find_outliers", "some of the others are drawn", table(func(o *strayPixels) { o.keep = 0.4 })),
		newCase("find_outliers", "of each step other pixels' errors", func(t *trial) error {
			return each([]uint32{0, 1, 5, 14, 400003}, func(step uint32) error {
				return t.outliersOf(50, 40, 0, func(o *strayPixels) { o.step, o.keep = step, 0.5 })
			})
		}),
		newCase("find_outliers", "smaller than the photo", func(t *trial) error {
			return each([]int{1, 2}, func(level int) error {
				return t.outliersOf(150, 131, level, func(o *strayPixels) { o.photo.masked(0.97) })
			})
		}),
		newCase("track_errors", "shares", func(t *trial) error {
			return each([]float32{1e-6, 0.3, 0.7, 0.999}, func(share float32) error { return t.history(share, 0) })
		}),
		newCase("track_errors", "nothing is known, or all of it counts", checkNoThreshold),
		newCase("track_errors", "a failed unit changes nothing", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedPeer},
				func(f uint32) error { return t.history(0.7, f) })
		}),
	}
}

// strayPixels is a photo of which some pixels count.
type strayPixels struct {
	photo *photo
	share float64 // of the pixels whose error is below the threshold; 0: there is no threshold
	keep  float32
	step  uint32
}

// inliers are the bits of the pixels that count, tile by tile.
func (p *photo) inliers() []uint32 {
	cols := (p.width + 15) / 16
	words := make([]uint32, layout.CountWords*cols*((p.height+15)/16))
	for i := range p.width * p.height {
		x, y := i%p.width, i/p.width
		if bit := y%16*16 + x%16; p.counts(i) {
			words[layout.CountWords*(y/16*cols+x/16)+bit/32] |= 1 << (bit % 32)
		}
	}
	return words
}

// outliersOf makes a photo with a lump of large errors, and checks what is found of it.
func (t *trial) outliersOf(width, height, level int, change func(*strayPixels)) error {
	o := &strayPixels{photo: t.photo(width, height, false).shrunk(level), share: 0.7, step: 7}
	for i := range o.photo.render {
		if x, y := i%o.photo.width, i/o.photo.width; x > 20 && x < 41 && y > 9 && y < 33 {
			o.photo.render[i][1] += 0.5
		}
	}
	change(o)
	return each([]bool{false, true}, func(floats bool) error {
		o.photo.floats = floats
		return o.check()
	})
}

// threshold returns a number between two errors that are far apart, about share of which are below it.
func (o *strayPixels) threshold() float32 {
	if o.share == 0 {
		return 0
	}
	p := o.photo
	mask := ref.ShrinkMask(p.mask, p.texelWidth, p.texelHeight, p.level)
	all := ref.OutlierErrors(pixels64(p.render), ref.ConvertSlice[float64](p.target), p.width, p.height, mask)
	var list []float64
	for i, e := range all {
		if p.counts(i) {
			list = append(list, e)
		}
	}
	slices.Sort(list)
	for i := int(o.share * float64(len(list))); i+1 < len(list); i++ {
		if list[i+1]-list[i] > 1e-5 {
			return float32((list[i] + list[i+1]) / 2)
		}
	}
	return 10
}

func (o *strayPixels) check() error {
	p := o.photo
	l := p.t.list()
	params, render, target := p.inputs(l)
	params.RobustKeep, params.Step, params.ViewId = o.keep, o.step, 5
	params.SeedLo, params.SeedHi = 77, 3
	tiles := int(params.View.TileWidth * params.View.TileHeight)
	history := make([]layout.ErrorHistory, 3)
	history[1].Threshold = o.threshold()
	inliers, errors := output[uint32](l, "inliers", layout.CountWords*tiles),
		inout(l, "errors", make([]uint32, layout.ErrorBins))
	l.r.Dispatch(&shaders.FindOutliers{
		Params: input(l, "params", []layout.StepParams{params}), History: input(l, "history", history), Render: render,
		Target: target, Inliers: inliers.Slice, Errors: errors.Slice, Push: shaders.FindOutliersPush{Row: 1},
		Spec: shaders.FindOutliersSpec{TargetFloat: p.floats, Masked: p.mask != nil, Shrunk: p.level > 0},
	}, vk.Groups(tiles+2))
	if err := l.run(); err != nil {
		return err
	}
	c := ref.Outliers[float64]{Threshold: float64(history[1].Threshold), Keep: o.keep, Step: o.step, ID: 5,
		Seed: [2]uint32{77, 3}, Mask: ref.ShrinkMask(p.mask, p.texelWidth, p.texelHeight, p.level)}
	want, bins := ref.FindOutliers(pixels64(p.render), ref.ConvertSlice[float64](p.target), p.width, p.height, &c)
	counted := *p
	counted.level, counted.texelWidth, counted.texelHeight, counted.mask = 0, p.width, p.height, want
	return first(equal("inliers", inliers.got, counted.inliers()), sameErrors(errors.got, bins))
}

// sameErrors compares histograms: a float32 error may lie on the other side of a bin's border.
func sameErrors(got, want []uint32) error {
	var some, all, off int
	for i := range want {
		some, all = some+int(got[i]), all+int(want[i])
		if d := some - all; d < -1 || d > 1 {
			return fmt.Errorf("binding errors: %d up to bin %d, want %d", some, i, all)
		} else if d != 0 {
			off++
		}
	}
	if some != all || off > 3 {
		return fmt.Errorf("binding errors: %d in all, want %d; %d bins differ", some, all, off)
	}
	return nil
}

// track runs track_errors on the second of three histories.
func (t *trial) track(history []layout.ErrorHistory, errors []uint32, share float32,
	failed uint32) ([]layout.ErrorHistory, error) {
	l := t.list()
	counters := make([]uint32, layout.NCounters)
	counters[layout.Failed] = failed
	out := inout(l, "history", history)
	l.r.Dispatch(&shaders.TrackErrors{
		Params:   input(l, "params", []layout.StepParams{{RobustPercentile: share}}),
		Counters: input(l, "counters", counters), Errors: input(l, "errors", errors), History: out.Slice,
		Push: shaders.TrackErrorsPush{Row: 1},
	}, vk.Groups(1))
	err := l.run()
	return out.got, err
}

// history checks a step with errors of which most are small.
func (t *trial) history(share float32, failed uint32) error {
	history, errors := make([]layout.ErrorHistory, 3), make([]uint32, layout.ErrorBins)
	for i := range errors {
		errors[i] = uint32(t.IntN(1 + 100000/(i+1)))
		for k := range history {
			history[k].Bins[i] = 100 * t.Float32()
		}
	}
	got, err := t.track(history, errors, share, failed)
	if err != nil {
		return err
	}
	if failed != 0 {
		return sameBytes("history", got, history)
	}
	bins := ref.ConvertSlice[float64](history[1].Bins[:])
	threshold := ref.TrackErrors(bins, errors, float64(share))
	return first(sameBytes("history", got[:1], history[:1]), sameBytes("history", got[2:], history[2:]),
		closeTo("history.bins", got[1].Bins[:], bins, 0, 1e-6),
		closeTo("history.threshold", []float32{got[1].Threshold}, []float64{threshold}, 1e-9, 1e-4))
}

// checkNoThreshold has no errors, and then a share of 1.
func checkNoThreshold(t *trial) error {
	history, errors := make([]layout.ErrorHistory, 3), make([]uint32, layout.ErrorBins)
	got, err := t.track(history, errors, 0.7, 0)
	if err != nil {
		return err
	}
	if err := sameBytes("history", got, history); err != nil {
		return err
	}
	errors[9] = 5
	if got, err = t.track(history, errors, 1, 0); err != nil {
		return err
	}
	return equal("history.threshold", []float32{got[1].Threshold}, []float32{0})
}
