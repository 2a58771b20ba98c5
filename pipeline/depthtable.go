package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/internal/parallel"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// KnownDepths [n_views] are depths of pixels that steps compare their picture with, by the cameras that are trained on,
// in the training frame. Nil: none are compared. A view may have none.
type KnownDepths [][]scene.KnownDepth

func (k KnownDepths) used() bool { return len(k) > 0 }

func (k KnownDepths) check(views int) error {
	if n := len(k); n > 0 && n != views {
		return fmt.Errorf("start training: depths of %d photos for %d cameras", n, views)
	}
	return nil
}

// depthTable is what is known of depths and normals on a device, as depth_loss and normal_loss read it, and how they
// weigh.
type depthTable struct {
	dev     *vk.Device
	words   vk.Slice[uint32]
	heads   int // of a view: one for each size of photos, and one for normals, if any are known
	normals bool
	depth   fading
	normal  fading
}

// fading is how a loss weighs over the steps.
type fading struct {
	weight float32 // in the loss before the first step
	final  float32 // share of it that is left at the end
	steps  int     // over which it falls
}

func (f *fading) log2Final() float32 { return float32(math.Log2(float64(f.final))) }

// depthStaging is how many words are uploaded at once.
const depthStaging = 1 << 20

// bytes returns the size of the table; x may be nil.
func (x *depthTable) bytes() int64 {
	if x == nil {
		return 0
	}
	return x.words.Size()
}

// stagingBytes returns what uploading the table takes of mapped memory; x may be nil.
func (x *depthTable) stagingBytes() int64 { return min(x.bytes(), 4*depthStaging) }

func (x *depthTable) close() error { return x.dev.Free(x.words.View) }

// depthLevels is how many sizes of photos a run trains on.
func depthLevels(cfg *recipe.Config) int { return cfg.NumDownscales + 1 }

// newDepthTable makes a table without its memory.
func newDepthTable(dev *vk.Device, cfg *recipe.Config, o *TrainerOptions, sceneScale float64) *depthTable {
	x := &depthTable{dev: dev, heads: depthLevels(cfg), normals: o.Normals.used(),
		depth:  fading{float32(cfg.DepthLambda * sceneScale), float32(cfg.DepthLambdaFinal), cfg.DecaySteps()},
		normal: fading{float32(cfg.NormalLambda), float32(cfg.NormalLambdaFinal), cfg.DecaySteps()}}
	if x.normals {
		x.heads++
	}
	return x
}

// planDepths makes a table that is not there, of at least the size that it will have.
func planDepths(dev *vk.Device, cams []scene.Camera, cfg *recipe.Config, o *TrainerOptions) *depthTable {
	x := newDepthTable(dev, cfg, o, 1)
	words := len(cams) * x.heads
	for i := range o.Normals {
		words += len(o.Normals.words(i))
	}
	for i, known := range o.Known {
		for level := range depthLevels(cfg) {
			if g := levelGrid(&cams[i], level); len(known) > 0 {
				words += g.head() + min(len(known), g.width*g.height)
			}
		}
	}
	x.words = phantom[uint32](dev, words, 4)
	return x
}

// loadDepths makes the engine's table and fills it.
func (e *engine) loadDepths(r *training, o *TrainerOptions) (err error) {
	x := newDepthTable(e.dev, &r.cfg, o, r.sceneScale)
	words := depthWords(r.cams, o.Known, o.Normals, depthLevels(&r.cfg))
	if most := maxBinding(e.dev); 4*int64(len(words)) > most {
		return fmt.Errorf("load depths: %w: known depths and normals of photos take %s, one buffer of the device holds %s",
			ErrTooSmall, vk.BytesText(4*int64(len(words))), vk.BytesText(most))
	}
	if x.words, err = vk.Make[uint32](e.dev, vk.DeviceLocal, len(words), "known depths"); err != nil {
		return err
	}
	e.depths = x
	staging, err := vk.Make[uint32](e.dev, vk.Upload, min(len(words), depthStaging), "known depths staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.dev.Free(staging.View)) }()
	for first := 0; first < len(words); first += depthStaging {
		n := copy(vk.Host(staging), words[first:])
		rec := vk.NewRecorder(e.dev)
		rec.Copy(x.words.At(first, n).View, staging.At(0, n).View)
		if err := runOnce(e.dev, rec, "load depths"); err != nil {
			return err
		}
	}
	return nil
}

// depthGrid is the picture of a view at a level, in pixels, and in tiles across and down.
type depthGrid struct{ level, width, height, columns, rows int }

func levelGrid(c *scene.Camera, level int) depthGrid {
	w, h := c.Width>>level, c.Height>>level
	return depthGrid{level, w, h, layout.Tiles(w), layout.Tiles(h)}
}

// head returns the words in front of a view's depths.
func (g depthGrid) head() int { return 2 + g.columns*g.rows }

// depthWords makes the table: [n_views][heads] where a view's depths at a level begin, or its normals, which are the
// last; 0 where there are none. Then those of each view.
func depthWords(cams []scene.Camera, known KnownDepths, normals KnownNormals, levels int) []uint32 {
	heads := levels
	if normals.used() {
		heads++
	}
	parts := make([][]uint32, len(cams)*heads)
	parallel.For(len(parts), func(i int) {
		view, level := i/heads, i%heads
		switch {
		case level == levels:
			parts[i] = normals.words(view)
		case known.used():
			parts[i] = levelDepths(known[view], levelGrid(&cams[view], level))
		}
	})
	words := make([]uint32, len(parts))
	for i, p := range parts {
		if len(p) > 0 {
			words[i] = uint32(len(words))
			words = append(words, p...)
		}
	}
	return words
}

// levelDepths makes a view's part of the table at a level: how many pixels have a depth; the first of each tile, and
// where the last ends; those pixels, tile by tile. A pixel that stands for several has the mean of the inverse depths
// known in it, as a picture of fewer pixels does.
func levelDepths(known []scene.KnownDepth, g depthGrid) []uint32 {
	type pixel struct {
		at      uint32 // tile, then place in it
		inverse float64
	}
	pixels := make([]pixel, 0, len(known))
	for _, k := range known {
		x, y := int(k.X)>>g.level, int(k.Y)>>g.level
		if x >= g.width || y >= g.height || !(k.Depth > 0) {
			continue
		}
		tile := y/layout.TileSize*g.columns + x/layout.TileSize
		place := y%layout.TileSize*layout.TileSize + x%layout.TileSize
		pixels = append(pixels, pixel{uint32(tile*layout.TilePixels + place), 1 / float64(k.Depth)})
	}
	slices.SortStableFunc(pixels, func(a, b pixel) int { return int(int64(a.at) - int64(b.at)) })
	words := make([]uint32, g.head(), g.head()+len(pixels))
	tile, n := 0, uint32(0)
	for i := 0; i < len(pixels); {
		at, sum, end := pixels[i].at, 0.0, i
		for ; end < len(pixels) && pixels[end].at == at; end++ {
			sum += pixels[end].inverse
		}
		inverse := float32(sum / float64(end-i))
		i = end
		if !(inverse > 0) || math.IsInf(float64(inverse), 0) {
			continue
		}
		for ; tile < int(at)/layout.TilePixels; tile++ {
			words[2+tile] = n
		}
		words = append(words, inverseWord(inverse)|at%layout.TilePixels)
		n++
	}
	if n == 0 {
		return nil
	}
	for ; tile < g.columns*g.rows; tile++ {
		words[2+tile] = n
	}
	words[0] = n
	return words
}

// inverseWord puts a positive number, rounded to 17 significant bits, above the low 8 bits of a word.
func inverseWord(x float32) uint32 { return (math.Float32bits(x) + 1<<6) >> 7 << 8 }
