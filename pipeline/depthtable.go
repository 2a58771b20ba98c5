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

// KnownDepths [n_views] are depths of pixels that steps compare their picture with, in the training frame. Nil: none
// are compared. A view may have none.
type KnownDepths [][]scene.KnownDepth

func (k KnownDepths) used() bool { return len(k) > 0 }

func (k KnownDepths) check(views int) error {
	if n := len(k); n > 0 && n != views {
		return fmt.Errorf("start training: depths of %d photos for %d cameras", n, views)
	}
	return nil
}

// depthTable holds the known depths and normals on a device, as depth_loss and normal_loss read them, and their
// weights.
type depthTable struct {
	dev     *vk.Device
	words   vk.Slice[uint32]
	staged  int // words that are uploaded at once
	heads   int // of a view: one for each size of photos, and one for normals, if any are known
	normals bool
	depth   fading
	normal  fading
}

type fading struct {
	weight float32 // in the loss before the first step
	final  float32 // share of it that is left at the end
	steps  int     // over which it falls
}

func (f *fading) log2Final() float32 { return float32(math.Log2(float64(f.final))) }

// depthStaging is how many words are uploaded at once, if no part of the table has more.
const depthStaging = 1 << 20

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

// planDepths makes a table of phantom memory.
func planDepths(dev *vk.Device, cams []scene.Camera, cfg *recipe.Config, o *TrainerOptions) *depthTable {
	x, parts := newDepthTable(dev, cfg, o, 1), partsOf(cams, o.Known, o.Normals, depthLevels(cfg))
	x.words, x.staged = phantom[uint32](dev, parts.words(), 4), parts.staged(depthStaging)
	return x
}

// loadDepths makes the engine's table and fills it, some parts at a time: RAM never holds the whole.
func (s *setup) loadDepths(r *training, o *TrainerOptions) (err error) {
	x, parts := newDepthTable(s.dev, &r.cfg, o, r.sceneScale), partsOf(r.cams, o.Known, o.Normals, depthLevels(&r.cfg))
	size := 4 * int64(parts.words())
	if most := maxBinding(s.dev); size > most {
		return fmt.Errorf("load depths: %w: known depths and normals of photos take %s, one buffer of the device holds %s",
			ErrTooSmall, vk.BytesText(size), vk.BytesText(most))
	}
	if x.words, err = vk.Make[uint32](s.dev, vk.DeviceLocal, parts.words(), "known depths"); err != nil {
		return err
	}
	s.depths, x.staged = x, parts.staged(depthStaging)
	staging, err := vk.Make[uint32](s.dev, vk.Upload, x.staged, "known depths staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.dev.Free(staging.View)) }()
	return parts.each(vk.Host(staging), func(at, n int) error {
		rec := vk.NewRecorder(s.dev)
		rec.Copy(x.words.At(at, n).View, staging.At(0, n).View)
		return s.dev.RunOnce(rec, "load depths")
	})
}

// depthGrid is the picture of a view at a level, in pixels, and in tiles across and down.
type depthGrid struct{ level, width, height, columns, rows int }

func levelGrid(c *scene.Camera, level int) depthGrid {
	w, h := c.Width>>level, c.Height>>level
	return depthGrid{level, w, h, layout.Tiles(w), layout.Tiles(h)}
}

// head returns the words in front of a view's depths.
func (g depthGrid) head() int { return 2 + g.columns*g.rows }

// size returns the words of a view's part that n depths are known for, at most.
func (g depthGrid) size(n int) int {
	if n == 0 {
		return 0
	}
	return g.head() + min(n, g.width*g.height)
}

// depthParts is the layout of the table: [n_views][heads] where a view's depths at a level begin, or its normals, which
// are the last; 0 where there are none. Then those of each view, each with room for all that is known of it.
type depthParts struct {
	cams    []scene.Camera
	known   KnownDepths
	normals KnownNormals
	levels  int
	heads   int   // of a view
	places  []int // [n_views*heads+1] where the parts begin, and where the last ends
}

func partsOf(cams []scene.Camera, known KnownDepths, normals KnownNormals, levels int) *depthParts {
	p := &depthParts{cams: cams, known: known, normals: normals, levels: levels, heads: levels}
	if normals.used() {
		p.heads++
	}
	n := len(cams) * p.heads
	p.places = make([]int, 1, n+1)
	p.places[0] = n
	for i := range n {
		size := 0
		switch view, level := i/p.heads, i%p.heads; {
		case level == levels:
			size = normals.size(view)
		case known.used():
			size = levelGrid(&cams[view], level).size(len(known[view]))
		}
		p.places = append(p.places, p.places[i]+size)
	}
	return p
}

func (p *depthParts) count() int { return len(p.places) - 1 }

func (p *depthParts) words() int { return p.places[p.count()] }

// staged returns how many words each gets room for: most, unless a part has more or the table less.
func (p *depthParts) staged(most int) int {
	for i := range p.count() {
		most = max(most, p.places[i+1]-p.places[i])
	}
	return min(most, p.words())
}

// put fills a part and reports whether anything is known there.
func (p *depthParts) put(words []uint32, part int) bool {
	view, level := part/p.heads, part%p.heads
	switch {
	case len(words) == 0:
		return false
	case level == p.levels:
		p.normals.put(words, view)
		return true
	}
	return putDepths(words, p.known[view], levelGrid(&p.cams[view], level))
}

// each fills room, of staged words, with one stretch of the table after the other, and calls f with its first word and
// its size. The heads come last.
func (p *depthParts) each(room []uint32, f func(at, n int) error) error {
	heads := make([]uint32, p.count())
	for first, end := 0, 0; first < p.count(); first = end {
		at := p.places[first]
		for end < p.count() && p.places[end+1]-at <= len(room) {
			end++
		}
		n := p.places[end] - at
		clear(room[:n]) // parts may have more room than they need
		parallel.For(end-first, func(k int) {
			i := first + k
			if p.put(room[p.places[i]-at:p.places[i+1]-at], i) {
				heads[i] = uint32(p.places[i])
			}
		})
		if n > 0 {
			if err := f(at, n); err != nil {
				return err
			}
		}
	}
	for at := 0; at < len(heads); at += len(room) {
		if err := f(at, copy(room, heads[at:])); err != nil {
			return err
		}
	}
	return nil
}

// putDepths fills a view's part of the table at a level and reports whether a depth is in it: how many pixels have one;
// the first of each tile, and where the last ends; those pixels, tile by tile. A pixel that stands for several has the
// mean of the inverse depths known in it, as a picture of fewer pixels does.
func putDepths(words []uint32, known []scene.KnownDepth, g depthGrid) bool {
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
		words[g.head()+int(n)] = inverseWord(inverse) | at%layout.TilePixels
		n++
	}
	for ; tile < g.columns*g.rows; tile++ {
		words[2+tile] = n
	}
	words[0] = n
	return n > 0
}

// inverseWord puts a positive number, rounded to 17 significant bits, above the low 8 bits of a word.
func inverseWord(x float32) uint32 { return (math.Float32bits(x) + 1<<6) >> 7 << 8 }
