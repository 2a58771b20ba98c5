package pipeline

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// setup holds what passes bind and what decides which of them are recorded. Planning records a copy whose buffers are
// phantoms.
type setup struct {
	dev    *vk.Device
	kinds  []recipe.Kind // units that are recorded
	model  *model
	sort   sortShape
	raster rasterShape

	views    viewSize // the largest view of a step
	drawn    viewSize // the largest picture
	lens     lenses   // of any of the cameras
	compare  comparison
	strategy strategy
	parts    *parts // how pictures are drawn band by band; nil: whole, as in training
	looks    bool   // pictures show what params say

	isectCapacity int // (tile, splat) pairs that fit in one band
	bands         int // bands that a view is processed in

	counters vk.Slice[uint32]           // [N_COUNTERS]
	args     vk.Slice[[3]uint32]        // [N_ARGS]
	target   vk.Slice[uint32]           // photo of the step, see target.glsl; the device's photos own it
	pairs    vk.Slice[layout.TilePairs] // [maxTiles] where steps count the pairs that blending reads; else zero
	// [votersOf] cameras that are trained on, with the depths of their points; only with recipe.Carve
	voters      vk.Slice[layout.Voter]
	appearances *appearances // nil: photos are compared as rendered
	histories   *histories   // of errors; nil: all pixels count that masks leave
	depths      *depthTable  // nil: depths are not compared
	poses       *poseTable   // nil: cameras are where they were given

	world      world
	links      *team.Links // nil: one device alone
	viewSplats int         // projections that a view has room for, with several devices

	verify bool // VKSPLAT_VERIFY=1: checks follow every pass of a step
	hooks  testHooks
}

// testHooks let tests force rare cases.
type testHooks struct {
	capacities     int                          // multiplies the first capacities; 0: 1
	unseenTogether bool                         // unseen splats are not stepped apart
	sabotage       func(v *view, buffer string) // may break a buffer before it is verified
}

// newSetup returns a setup for views of the given cameras and units of the given kinds, without buffers.
func newSetup(dev *vk.Device, degree int, cameras []scene.Camera, kinds []recipe.Kind) (*setup, error) {
	size, err := sizeOf(cameras)
	if err != nil {
		return nil, err
	}
	m, err := newModel(dev, degree)
	return &setup{dev: dev, kinds: kinds, model: m, sort: chooseSort(dev.Info()), raster: chooseRaster(dev.Info()),
		views: size, drawn: size, lens: lensesOf(cameras, kinds), strategy: strategy3DGS{}, bands: 1,
		world: oneDevice, verify: os.Getenv(verifyVariable) == "1"}, err
}

func (s *setup) has(k recipe.Kind) bool { return slices.Contains(s.kinds, k) }

// bytesPerIsect returns about how many bytes an isect costs: tile id and slot, both double-buffered for the sort, its
// splat and, with a backward pass, its gradient and its part of the saved states.
func (s *setup) bytesPerIsect() int64 {
	bytes := int64(4*4 + 4)
	if s.has(recipe.Step) {
		bytes += 36 + s.stateBytes()
	}
	if s.depths != nil {
		bytes += 4 * s.raster.isectStates()
	}
	return bytes + 4*int64(s.besideWords())
}

// bytesPerSplat returns about how many bytes of scratch memory a splat costs: shapes, paints, keys, the sort's copies,
// offsets, v_projected.
func (s *setup) bytesPerSplat() int64 {
	return 32 + 16 + 4 + 4*4 + 4 + 36 + 12 + 4*int64(s.besideWords())
}

// besideWords returns how many numbers a gradient has besides those of a projection: the absolute gradients of the
// mean, and those and the gradient of the inverse depth.
func (s *setup) besideWords() int {
	switch {
	case s.depths != nil:
		return team.AbsWords + 1
	case s.strategy.variants().absgrad:
		return team.AbsWords
	}
	return 0
}

// isectSpan returns how many isects one binding spans, of the buffer with the most bytes per isect.
func (s *setup) isectSpan() int64 {
	if !s.has(recipe.Step) {
		return maxBinding(s.dev) / 4
	}
	return maxBinding(s.dev) / max(36, s.stateBytes())
}

// targetWords returns the size of the largest photo, and of the word after it.
func (s *setup) targetWords() int {
	words := s.views.maxPixels
	if s.compare.floats {
		words *= 3
	}
	return words + photos.MaskWords(s.views.maxPixels) + 1 // see target.glsl
}

// mostBands returns how many bands a view can be cut into.
func (s *setup) mostBands() int { return max(s.views.maxRows, s.drawn.maxRows) }

// startBands returns how many bands to start with: bands, unless the environment says otherwise.
func (s *setup) startBands(bands int) int {
	if b, err := strconv.Atoi(os.Getenv("VKSPLAT_BANDS")); err == nil {
		bands = b
	}
	return min(max(bands, 1), s.mostBands())
}

// viewSize is the largest size of several views: each number is a maximum of its own.
type viewSize struct {
	maxPixels int
	maxTiles  int
	maxRows   int // rows of tiles
	maxWidth  int // px
}

// with returns the size that includes a camera.
func (s viewSize) with(c *scene.Camera) viewSize {
	return viewSize{max(s.maxPixels, c.Width*c.Height), max(s.maxTiles, layout.Tiles(c.Width)*layout.Tiles(c.Height)),
		max(s.maxRows, layout.Tiles(c.Height)), max(s.maxWidth, c.Width)}
}

// sizeOf returns the size of views; each side is 1 to 32768 pixels.
func sizeOf(cameras []scene.Camera) (s viewSize, err error) {
	for i := range cameras {
		c := &cameras[i]
		if c.Width < 1 || c.Height < 1 || c.Width > 1<<15 || c.Height > 1<<15 {
			return s, fmt.Errorf("create engine: view %s is %dx%d pixels, 1 to 32768 a side are allowed", c.Name,
				c.Width, c.Height)
		}
		s = s.with(c)
	}
	return s, nil
}

// union returns the maxima of two sizes.
func (s viewSize) union(o viewSize) viewSize {
	return viewSize{max(s.maxPixels, o.maxPixels), max(s.maxTiles, o.maxTiles), max(s.maxRows, o.maxRows),
		max(s.maxWidth, o.maxWidth)}
}

// setCounters sets the number of splats and clears everything else, failures included.
func (s *setup) setCounters(n uint32) error {
	r := vk.NewRecorder(s.dev)
	r.Fill(s.counters.View, 0)
	r.Fill(s.counters.At(layout.NSplats, 1).View, n)
	return s.dev.RunOnce(r, "set counters")
}

// firstIsects returns the number of pairs to start with for n splats: not what few views need, because buffers do not
// shrink. Few splats are large ones.
func (s *setup) firstIsects(n int) int {
	return max(minIsects, 4*s.views.maxTiles, min(8*n, n+moreIsects))
}

// learntBytes returns the size of what is learnt of photos.
func (s *setup) learntBytes() (n int64) {
	if s.appearances != nil {
		n += s.appearances.table.Size()
	}
	if s.histories != nil {
		n += s.histories.words.Size()
	}
	if s.poses != nil {
		n += s.poses.rows.Size() + s.poses.anchors.Size()
	}
	return n
}
