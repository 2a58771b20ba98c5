package features

import (
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/pipeline/failure"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Constants of shaders/shared/sift.glsl.
const (
	levels     = 6
	tileX      = 32
	tileY      = 16
	slots      = 32
	mostRadius = 13
	firstSigma = 1.6
	// gradients of level 3, the last of these, describe the largest keypoints of an octave
	describedLevels = 4
	rowMultiple     = 64 // pixels of a row are a multiple, so that rows begin where a binding may
)

// halo is how many rows beside its own a band needs: blurring up to level 3 reaches 27, a descriptor 49 more; blurring
// up to level 5 reaches 50, and an extremum moves by 5.
const halo = 80

// octave is one size of the photo.
type octave struct {
	index         int // its pixels are 2^index pixels of the photo
	width, height int
	pitch         int // pixels from row to row
	bands         []band
	tiles         int // of all octaves up to this one
}

// band is a part of an octave that is in memory at a time.
type band struct {
	begin, end int // rows whose keypoints it finds
	first      int // row that is the first in memory
	rows       int // in memory
	tile       int // number of its first tile
}

// grid is the number of its tiles.
func (b *band) grid(o *octave) int {
	return (o.width + tileX - 1) / tileX * ((b.end - b.begin + tileY - 1) / tileY)
}

// on says what kernels read of a band.
func (b *band) on(o *octave) layout.SiftBand {
	return layout.SiftBand{Width: uint32(o.width), Height: uint32(o.height), Pitch: uint32(o.pitch),
		First: uint32(b.first), Rows: uint32(b.rows)}
}

// level returns a level of a band, of the memory of all its levels.
func (b *band) level(o *octave, all vk.Slice[float32], i int) vk.Slice[float32] {
	return all.At(i*b.rows*o.pitch, b.rows*o.pitch)
}

// newOctave plans an octave after so many tiles. Levels have at most so many pixels at a time.
func newOctave(index, width, height, pixels, tiles int) (octave, error) {
	o := octave{index: index, width: width, height: height, tiles: tiles,
		pitch: (width + rowMultiple - 1) &^ (rowMultiple - 1)}
	rows := min(height, pixels/o.pitch)
	own := height
	if rows < height {
		own = (rows - 2*halo) / tileY * tileY
	}
	if own <= 0 {
		return o, fmt.Errorf("%w: %d rows of %d pixels do not fit %s", failure.ErrTooSmall, 2*halo+tileY, width,
			vk.BytesText(int64(levels*4*pixels)))
	}
	for begin := 0; begin < height; begin += own {
		b := band{begin: begin, end: min(begin+own, height), first: max(0, begin-halo), tile: o.tiles}
		b.rows = min(b.end+halo, height) - b.first
		o.tiles += b.grid(&o)
		o.bands = append(o.bands, b)
	}
	return o, nil
}

// leastSide is that of the smallest octave.
const leastSide = 16

// octavesOf plans what a photo of a size goes through: first the octaves of the photo as it is, then that of the
// doubled photo.
func (e *Extractor) octavesOf(width, height int) (parts [][]octave, err error) {
	pixels := int(min(e.options.MaxBytes, e.dev.Info().Limits.MaxStorageBufferRange) / (4 * levels))
	last := e.options.FirstOctave + e.options.Octaves - 1
	var whole []octave
	tiles := 0
	for w, h, index := width, height, 0; index <= last && min(w, h) >= leastSide; index++ {
		o, err := newOctave(index, w, h, pixels, tiles)
		if err != nil {
			return nil, err
		}
		whole, tiles = append(whole, o), o.tiles
		w, h = (w+1)/2, (h+1)/2
	}
	if len(whole) > 0 {
		parts = append(parts, whole)
	}
	if e.options.FirstOctave < 0 && 2*min(width, height) >= leastSide {
		o, err := newOctave(-1, 2*width, 2*height, pixels, 0)
		if err != nil {
			return nil, err
		}
		parts = append(parts, []octave{o})
	}
	return parts, nil
}

// smallerHint is the remedy of memory that is too small for a photo's rows.
func smallerHint(err error) error {
	if failure.IsShortage(err) {
		return fault.WithHint(err, failure.AnyOf(failure.RaiseMemory(), "use smaller photos"))
	}
	return err
}

// blurs are the standard deviations by which each level is blurred to become the next: first the photo, which a camera
// has blurred by half a pixel, becomes level 0.
func blurs(index int) (sigmas [levels]float64) {
	had := 0.5 * math.Exp2(float64(-index))
	for i := range sigmas {
		sigma := firstSigma * math.Exp2(float64(i)/3)
		sigmas[i] = math.Sqrt(sigma*sigma - had*had)
		had = sigma
	}
	return sigmas
}

// gaussian returns the weights of a blur on one side of a pixel, and how far they reach.
func gaussian(sigma float64) (weights [mostRadius + 4]float32, radius int) {
	radius = min(int(math.Ceil(4*sigma)), mostRadius)
	var w [mostRadius + 4]float64
	sum := 0.0
	for i := range radius + 1 {
		w[i] = math.Exp(-float64(i*i) / (2 * sigma * sigma))
		sum += w[i] * float64(min(2, 1+i))
	}
	for i := range w {
		weights[i] = float32(w[i] / sum)
	}
	return weights, radius
}
