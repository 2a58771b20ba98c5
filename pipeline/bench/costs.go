package bench

import (
	"math"

	"vksplat/shaders/layout"
)

// Counts are what a step's passes work on: medians over the views that were measured, where they do not say otherwise.
type Counts struct {
	Splats   int  `json:"splats"`
	SHDegree int  `json:"sh_degree"` // that views evaluate
	Mixed    bool `json:"mixed"`     // of the model's precisions
	AbsGrad  bool `json:"absgrad"`
	// UnseenApart says that adam_unseen steps what a view does not show.
	UnseenApart bool `json:"unseen_apart,omitempty"`
	Views       int  `json:"views,omitempty"` // of a step, where devices share a scene, each with Splats of it; 0: one

	Pixels  int `json:"pixels"`
	Tiles   int `json:"tiles"`
	Bands   int `json:"bands"`
	Visible int `json:"visible"` // splats that a view shows
	Isects  int `json:"isects"`  // (tile, splat) pairs

	// What blending cannot do without, with tiles as they are (see count_pairs.comp).
	SeenIsects   int `json:"seen_isects"`   // isects in front of the last that any pixel of the tile looks at
	SeenPairs    int `json:"seen_pairs"`    // (pixel, splat) pairs that are looked at until the pixels are opaque
	BlendedPairs int `json:"blended_pairs"` // those of them that change the pixel
	// (patch, splat) pairs that rasterize has to go through, and rasterize_bwd; (list, splat) pairs of the latter,
	// whose lists, of one patch or several, wait for each other
	Visits     int `json:"visits"`
	PatchesBwd int `json:"patches_bwd"`
	VisitsBwd  int `json:"visits_bwd"`

	Lanes     int  `json:"lanes"`      // of a patch in rasterize
	LanesBwd  int  `json:"lanes_bwd"`  // of a list in rasterize_bwd
	HandRound bool `json:"hand_round"` // lanes tell each other of splats instead of reading shared memory
	Bucket    int  `json:"bucket"`     // isects between two saved states

	PhotoBytes int `json:"photo_bytes"` // that a step copies, in the mean

	SortBits  int `json:"sort_bits"`  // of a digit
	DepthBits int `json:"depth_bits"` // that depths are sorted by
	TileBits  int `json:"tile_bits"`  // that isects are sorted by
}

// Cost returns what the pass with a name (Round.Passes) costs; known is false for passes that move next to nothing, and
// for passes without a count.
func (c *Counts) Cost(pass string) (cost Cost, known bool) {
	f, known := passCosts[pass]
	if !known {
		return cost, false
	}
	return f(c.floats()), true
}

// Bytes of what passes hand on.
const (
	shapeBytes   = 32
	paintBytes   = 16
	gradBytes    = 36 // layout.ProjectedGrad
	pixelBytes   = 16 // of render and v_render: four floats
	touchedBytes = 1  // of an isect: a bit a patch
	mapBytes     = 36 // of ssim_maps for a pixel: three floats a channel
	packetBytes  = shapeBytes + paintBytes + 4
)

// Instructions of a lane, counted in the kernels' inner loops: a fused multiplication and addition is one; exp, log,
// sqrt and 1/x are four each, because the units for these are a quarter as many on most GPUs. Loads of shared memory
// and shuffles of a visit are one each, beside what they take of their own unit. All are within a third or so.
const (
	adamInstructions     = 19  // of one parameter
	ssimInstructions     = 500 // of a pixel of loss: four blurred planes, three channels
	ssimGradInstructions = 290
)

// What a visit takes: a patch of 8x4 pixels and a splat that touches it. All pixels of the patch are worked on, whether
// the splat covers them or not.
const (
	visitPixels = layout.TilePixels / layout.Patches
	leastLanes  = 8                     // of a patch
	backLanes   = layout.TilePixels / 4 // of a workgroup of rasterize_bwd
	// batch_splat, for a lane: what lanes read together counts for each, since it goes to each one's registers.
	splatWords = 9
	// blend_piece of rasterize, for a lane: 9 to go on in the list, somewhat fewer in one of a whole subgroup, 3 loads;
	// for a pixel: 14 for alpha, 10 to blend.
	laneInstructions  = 12
	pixelInstructions = 24
	// sum_splat of rasterize_bwd and what goes through the list, by the source; 47 are a pixel's.
	laneBwdInstructions  = 50
	pixelBwdInstructions = 47
	// touched_patches of rasterize and make_lists, for an isect: the ellipse against a patch and a ballot.
	touchInstructions = layout.Patches * 30
	// tile_sum of rasterize_bwd, for a component of an isect and a list: a word that says whether there is a part, a
	// load, a choice and an addition.
	sumInstructions = 4
	components      = gradBytes / 4
)

// Shared words that loss and loss_grad write and read for a tile, from ssim.glsl: each channel's tile with its border
// (26x26), runs of 4 pixels along x that read 14 and write 4, then 2 pixels along y that read 12. loss has two planes
// that become four, and reads the difference once more; loss_grad has three.
const (
	ssimHalo      = 26 * 26
	ssimRuns      = 26 * layout.TileSize / 4
	ssimRises     = layout.TilePixels / 2
	ssimWords     = 3 * (2*ssimHalo + ssimRuns*(2*14+4*4) + ssimRises*(4*12+2))
	ssimGradWords = 3 * 3 * (ssimHalo + ssimRuns*(14+4) + ssimRises*12)
)

// work are Counts for arithmetic.
type work struct {
	n, visible, isects, pixels, tiles float64
	seenIsects, visits                float64
	patchesBwd, visitsBwd             float64
	bucket                            float64
	state                             float64 // bytes of a pixel's saved state
	photo                             float64
	lanes, lanesBwd                   float64 // of a patch
	handRound                         bool
	coefficients                      float64 // of a channel
	// bytes of a splat's parameters but its colours', of those that are drawn, of its colours, of both moments of all
	geometry, drawn, sh, moments float64
	colour                       float64 // bytes of one number of its colours

	apart                   float64 // splats that adam_unseen steps
	abs                     float64 // bytes of an absolute gradient
	views                   float64 // of a step
	depthPasses, tilePasses float64 // of the sorts
	digits                  float64 // bytes of a block's histogram, by element
	// of a view; times that its isects are made and drawn: with several bands, once more for the backward pass
	bands, passes float64
}

func (c *Counts) floats() *work {
	k := float64((c.SHDegree + 1) * (c.SHDegree + 1))
	w := &work{
		n: float64(c.Splats), visible: float64(c.Visible), isects: float64(c.Isects), pixels: float64(c.Pixels),
		tiles:      float64(c.Tiles),
		seenIsects: float64(c.SeenIsects), visits: float64(c.Visits), visitsBwd: float64(c.VisitsBwd),
		patchesBwd: float64(c.PatchesBwd), bucket: float64(max(c.Bucket, layout.LeastBucket)), state: 16,
		lanes: float64(max(c.Lanes, leastLanes)), lanesBwd: float64(max(c.LanesBwd, leastLanes)),
		handRound: c.HandRound, photo: float64(c.PhotoBytes),
		coefficients: k, geometry: 4 * layout.RowSh, sh: 12 * k, colour: 4, moments: 8 * (layout.RowSh + 3*k),
		depthPasses: math.Ceil(float64(c.DepthBits) / float64(c.SortBits)),
		tilePasses:  math.Ceil(float64(c.TileBits) / float64(c.SortBits)),
		digits:      4 * math.Ldexp(1, c.SortBits) / layout.SortBlock,
	}
	if c.UnseenApart {
		w.apart = w.n - w.visible
	}
	for row := range layout.RowSh {
		if layout.Drawn(row) {
			w.drawn += 4
		}
	}
	if c.Mixed { // halves for colours, bfloat16 for moments, packed states
		w.sh, w.colour, w.moments, w.state = w.sh/2, w.colour/2, w.moments/2, w.state/2
	}
	if c.AbsGrad {
		w.abs = 8
	}
	w.views = float64(max(c.Views, 1))
	w.bands, w.passes = float64(max(c.Bands, 1)), 1
	if c.Bands > 1 {
		w.passes = 2
	}
	return w
}

// passCosts holds the passes of a step. Each formula says what is read, then what is written.
var passCosts = map[string]func(w *work) Cost{
	// A photo that is on the device already; one that comes from the host has its bus to wait for.
	PhotoCopy:                func(w *work) Cost { return moved(2*w.photo, 0) },
	"project":                costProject,
	"project_mixed":          costProject,
	"sort_histogram (depth)": costDepthHistogram,
	"sort_scan (depth)":      func(w *work) Cost { return w.sortScan(w.n + w.visible*(w.depthPasses-1)) },
	"sort_scatter (depth)":   costDepthScatter,
	// Keys once for all passes.
	"sort_count (depth)": func(w *work) Cost { return moved(4*w.n, 4*w.depthPasses*w.n) },
	"sort_sweep (depth)": costDepthSweep,
	"count_tiles":        costCountTiles,
	"scan_tiles":         costCountTiles,
	"scan_reduce":        func(w *work) Cost { return w.eachBand(moved(4*w.visible, w.visible)) },
	"scan_apply":         func(w *work) Cost { return w.eachBand(moved(8*w.visible, 8*w.visible)) },
	// As count_tiles; of each isect tile, splat and slot. Instructions: a walk over rows of tiles.
	"emit_isects": func(w *work) Cost {
		c := w.eachBand(moved(w.visible*(8+shapeBytes), 0))
		return moved(c.Bytes+w.passes*12*w.isects, w.passes*100*w.isects)
	},
	"sort_histogram (tiles)": func(w *work) Cost {
		keys := w.passes * w.tilePasses * w.isects
		return moved(keys*(4+w.digits), 6*keys)
	},
	"sort_scan (tiles)": func(w *work) Cost { return w.sortScan(w.passes * w.isects * w.tilePasses) },
	// Keys and values in, keys and values out, a histogram a block; each bit of a digit is a ballot and a few masks,
	// twice.
	"sort_scatter (tiles)": func(w *work) Cost {
		keys := w.passes * w.tilePasses * w.isects
		return moved(keys*(16+w.digits), 120*keys)
	},
	"sort_count (tiles)": func(w *work) Cost {
		return moved(w.passes*4*w.isects, w.passes*4*w.tilePasses*w.isects)
	},
	// Keys and values in and out; each bit of a digit is a ballot and a few masks.
	"sort_sweep (tiles)": func(w *work) Cost {
		keys := w.passes * w.tilePasses * w.isects
		return moved(16*keys, 80*keys)
	},
	"tile_offsets": func(w *work) Cost { return moved(12*w.tiles, 5*w.tiles*math.Log2(w.isects+2)) },
	"rasterize":    costRasterize, "rasterize_handed": costRasterize,
	"apply_appearance": func(w *work) Cost { return moved(2*pixelBytes*w.pixels, 60*w.pixels) },
	"find_places":      costPlaces,
	"find_outliers":    func(w *work) Cost { return moved((pixelBytes+4+1./8)*w.pixels, 150*w.pixels) },
	"loss": func(w *work) Cost {
		c := moved(w.pixels*(pixelBytes+4+mapBytes)+12*w.tiles, ssimInstructions*w.pixels)
		c.SharedWords = ssimWords * w.tiles
		return c
	},
	"loss_grad": func(w *work) Cost {
		c := moved(w.pixels*(mapBytes+pixelBytes+4+pixelBytes), ssimGradInstructions*w.pixels)
		c.SharedWords = ssimGradWords * w.tiles
		return c
	},
	"apply_appearance_bwd": func(w *work) Cost { return moved(3*pixelBytes*w.pixels, 180*w.pixels) },
	"rasterize_bwd":        costRasterizeBwd,
	"reduce_slots":         costReduce,
	"project_bwd_adam":     costOptimise, "project_bwd_adam_mixed": costOptimise,
	"adam_unseen": costUnseen, "adam_unseen_mixed": costUnseen,
	"finish": func(w *work) Cost { return moved(12*w.tiles, 3*w.tiles) },
	// Several devices. Of all views together a device sends and gets about as many splats as one view shows: of each
	// its own share.
	"mark_visible": func(w *work) Cost { return moved(8*w.n*w.views, 4*w.n*w.views) },
	"send_visible": func(w *work) Cost {
		return moved(12*w.n*w.views+2*packetBytes*w.visible, 10*w.n*w.views+40*w.visible)
	},
	// Splats out and in, and those of the device's own, then gradients out and in; a device's own stay.
	"copy_records": func(w *work) Cost {
		others := 1 - 1/w.views
		return moved(2*(packetBytes+others*packetBytes+2*others*(gradBytes+w.abs))*w.visible,
			2*(1+others)*packetBytes*w.visible)
	},
	"send_grads": func(w *work) Cost {
		return moved((2*gradBytes+paintBytes-4+2*w.abs)*w.visible, 4*gradBytes*w.visible)
	},
	"project_bwd_adam_views": costOptimiseViews, "project_bwd_adam_views_mixed": costOptimiseViews,
}

// moved is the cost of a pass that uses neither shared memory nor shuffles to speak of.
func moved(bytes, instructions float64) Cost { return Cost{Bytes: bytes, Instructions: instructions} }

// sectorBytes is what device memory moves at least: a sector of NVIDIA's and AMD's caches.
const sectorBytes = 32

// sectors returns the bytes of an array of all splats, so many of each, that lie in sectors in which a visible splat
// has some, where splats are visible at random. `each` divides a sector. Where neighbours are seen together these are
// fewer.
func (w *work) sectors(each float64) float64 {
	if w.n == 0 {
		return 0
	}
	return w.n * each * (1 - math.Pow(1-w.visible/w.n, sectorBytes/each))
}

// eachBand is the cost of a pass that goes over all visible splats, for every band.
func (w *work) eachBand(c Cost) Cost {
	return moved(c.Bytes*w.bands*w.passes, c.Instructions*w.bands*w.passes)
}

// costProject: the means of all splats, and of their other drawn parameters the sectors with a splat in view; keys of
// all, and the sectors with a shape and a paint.
func costProject(w *work) Cost {
	return moved(w.n*(12+4)+(w.drawn-12)/4*w.sectors(4)+w.sh/w.colour*w.sectors(w.colour)+
		w.sectors(shapeBytes)+w.sectors(paintBytes), 12*w.n+w.visible*(200+5*w.coefficients))
}

// costDepthHistogram: the first pass reads the keys of all splats, the others those of the visible; a histogram a
// block.
func costDepthHistogram(w *work) Cost {
	keys := w.n + w.visible*(w.depthPasses-1)
	return moved(keys*(4+w.digits), 6*keys)
}

// costDepthScatter: as the other sort, but the first pass reads no values.
func costDepthScatter(w *work) Cost {
	others := w.depthPasses - 1
	return Cost{
		Bytes:        w.n*(4+w.digits) + 8*w.visible + others*w.visible*(16+w.digits),
		Instructions: 120 * (w.n + w.visible*others),
	}
}

// costDepthSweep: as costDepthScatter, without histograms.
func costDepthSweep(w *work) Cost {
	others := w.depthPasses - 1
	return moved(4*w.n+8*w.visible+others*w.visible*16, 80*(w.n+w.visible*others))
}

// costCountTiles: ids and shapes in order of depth; counts.
func costCountTiles(w *work) Cost {
	return w.eachBand(moved(w.visible*(4+shapeBytes+4), 100*w.visible))
}

// sortScan: the histograms of so many keys in all passes, read and written.
func (w *work) sortScan(keys float64) Cost { return moved(2*w.digits*keys, 2*w.digits*keys) }

// costRasterize: slot and splat of every isect that is looked at, each splat's projection once; pixels with their last
// ids, and the state of a tile's pixels before each bucket but its first.
func costRasterize(w *work) Cost {
	c := Cost{
		Bytes: w.passes*(8*w.seenIsects+(shapeBytes+paintBytes)*min(w.visible, w.seenIsects)+pixelBytes*w.pixels) +
			4*w.pixels + w.states() + w.seenIsects*touchedBytes, // which the last of two times alone writes
		Instructions: w.passes * (touchInstructions*w.seenIsects +
			w.visits*(w.lanes*laneInstructions+visitPixels*pixelInstructions)),
		SharedWords: w.passes * splatWords * w.seenIsects,
	}
	w.readSplats(&c, w.passes*w.lanes*w.visits)
	return c
}

// costPlaces: the splats of a tile that any pixel looks at, once for the middle pixels of its squares, and a place of
// each square. Half of the light is left before the last of them, so that it is an upper bound of what is read.
func costPlaces(w *work) Cost {
	squares := w.tiles * layout.TileSquares
	return Cost{Bytes: w.passes * (8*w.seenIsects + (shapeBytes+paintBytes)*min(w.visible, w.seenIsects) + 8*squares),
		Instructions: w.passes * (16*layout.TileSquares*w.seenIsects + 100*squares)}
}

// readSplats counts lanes that read a splat of a batch.
func (w *work) readSplats(c *Cost, lanes float64) {
	if w.handRound {
		c.Shuffles += splatWords * lanes
	} else {
		c.SharedWords += splatWords * lanes
	}
}

// states returns the bytes of the states that are saved, at least: a tile has one less than it has buckets.
func (w *work) states() float64 {
	return max(0, w.seenIsects/w.bucket-w.tiles) * layout.TilePixels * w.state
}

// costRasterizeBwd: what rasterize reads and wrote, and the gradient of every pixel; the gradients of all isects, also
// of those that are skipped.
func costRasterizeBwd(w *work) Cost {
	c := Cost{
		Bytes: 8*w.seenIsects + (shapeBytes+paintBytes)*min(w.visible,
			w.seenIsects) + w.pixels*(2*pixelBytes+4) + w.states() + w.seenIsects*touchedBytes +
			w.isects*(4+gradBytes+w.abs),
		Instructions: backLanes/w.lanesBwd*sumInstructions*components*w.seenIsects +
			w.visitsBwd*w.lanesBwd*laneBwdInstructions + w.patchesBwd*visitPixels*pixelBwdInstructions,
		// Splats in; parts of sums in and out, and of each component and list whether there is one.
		SharedWords: (splatWords+backLanes/w.lanesBwd*components)*w.seenIsects + 2*components*w.visitsBwd,
		// store_sums: 10 of eight lanes, one more for each doubling.
		Shuffles: w.visitsBwd * w.lanesBwd * (10 + math.Log2(w.lanesBwd/leastLanes)),
	}
	w.readSplats(&c, w.lanesBwd*w.visitsBwd)
	return c
}

// costReduce: the gradients of all isects, and of each visible splat what says which they are; its sum, which goes in
// and out again for each further band.
func costReduce(w *work) Cost {
	sum := gradBytes + w.abs
	return Cost{
		Bytes:        w.isects*sum + w.visible*(w.bands*(8+shapeBytes)+(2*w.bands-1)*sum),
		Instructions: 11*w.isects + 60*w.visible,
	}
}

// costOptimise: parameters and moments of all splats in and out, their keys; of the visible ones gradients and paints
// in, and statistics in and out. Less what adam_unseen does, as if workgroups were seen as a whole or not at all.
func costOptimise(w *work) Cost {
	c := w.adam(w.n - w.apart)
	return moved(c.Bytes+4*w.n+w.visible*(gradBytes+paintBytes+w.abs+16),
		c.Instructions+w.visible*(400+12*w.coefficients))
}

// costUnseen is of both its parts: each key is read by one of them.
func costUnseen(w *work) Cost {
	c := w.adam(w.apart)
	return moved(c.Bytes+4*w.n, c.Instructions)
}

// adam is the cost of n splats: parameters and moments in and out.
func (w *work) adam(n float64) Cost {
	return moved(2*n*(w.geometry+w.sh+w.moments), n*(layout.RowSh+3*w.coefficients)*adamInstructions)
}

// costOptimiseViews: as costOptimise, with the number that each view gives a splat instead of its key, and gradients of
// as many splats as one view shows. Paints stayed with the views.
func costOptimiseViews(w *work) Cost {
	c := costOptimise(w)
	return moved(c.Bytes+4*w.n*(w.views-1)-paintBytes*w.visible, c.Instructions)
}
