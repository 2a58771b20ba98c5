package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// rasterShape is how rasterize and rasterize_bwd run on a device (shared/raster.glsl).
type rasterShape struct {
	forward   uint32 // lanes of a workgroup of rasterize
	subgroup  uint32
	handRound bool   // lanes pass splats to each other
	bucket    uint32 // isects of a bucket
}

// backwardLanes is how many lanes a workgroup of rasterize_bwd has.
const backwardLanes = layout.TilePixels / 4

// chooseRaster gives a lane one pixel forward, and four backward: one of each patch of a column. On processors a lane
// has four pixels of one patch both ways. Small buckets make many workgroups, which GPUs need, and take memory for
// states. All this changes the order in which gradients are summed, so it follows from the kind of device, not from the
// size of subgroups, which changes nothing.
func chooseRaster(d vk.DeviceInfo) rasterShape {
	l := d.Limits
	s := rasterShape{layout.TilePixels, l.SubgroupSize, false, layout.LeastBucket}
	if d.ShapedForCPU() && l.SubgroupSize <= layout.TilePixels/4 {
		s = rasterShape{layout.TilePixels / 4, l.SubgroupSize, true, layout.MostBucket}
	}
	// Intel spills registers in wider ones than its narrowest, 8 or, from Xe2 on, 16; in AMD's 64 lanes two lists would
	// wait for each other.
	for _, size := range []uint32{8, 16, 32} {
		if l.MinSubgroupSize <= size && s.subgroup > size && l.MaxComputeWorkgroupSubgroups >= s.forward/size {
			s.subgroup = size
		}
	}
	return s
}

// listLanes returns how many lanes of rasterize_bwd go through one list.
func (s *rasterShape) listLanes() uint32 {
	if s.handRound {
		return backwardLanes / layout.Patches
	}
	return backwardLanes / 2
}

// column returns how many patches have one list there.
func (s *rasterShape) column() uint32 { return layout.Patches * s.listLanes() / backwardLanes }

// backwardSide returns how many lists share a subgroup of it.
func (s *rasterShape) backwardSide() uint32 { return max(1, s.subgroup/s.listLanes()) }

// backwardRound returns ROUND of rasterize_bwd.
func (s *rasterShape) backwardRound() uint32 {
	round := uint32(16)
	if s.handRound {
		round = 32
	}
	if s.subgroup < 8 {
		round /= 2
	}
	return round
}

// states returns how many states of pixels are saved for isects: those of a tile before each bucket.
func (s *rasterShape) states(isects int) int { return isects / int(s.bucket) * layout.TilePixels }

// isectStates returns how many of them are an isect's share.
func (s *rasterShape) isectStates() int64 { return layout.TilePixels / int64(s.bucket) }

// stateWords returns how many words of 8 bytes a saved state takes: it is packed in mixed precision.
func (s *setup) stateWords() int {
	if s.model.Mixed {
		return 1
	}
	return 2
}

func (s *setup) stateBytes() int64 { return s.raster.isectStates() * 8 * int64(s.stateWords()) }

// rasterize blends a band's tiles. Without keep nothing is saved for a backward pass.
func (v *view) rasterize(band int, keep bool) {
	scratch(v.r, &v.render, "render", v.size.maxPixels)
	v.blendTiles(v.f.params, v.render, band, keep)
}

// blendTiles blends a band's tiles into render, over the background that params holds.
func (v *view) blendTiles(params vk.Slice[layout.StepParams], render vk.Slice[[4]float32], band int, keep bool) {
	lastIDs, states, touched, buckets := 0, 0, 0, 0
	if keep {
		lastIDs, states = v.size.maxPixels, v.s.raster.states(v.s.isectCapacity)*v.s.stateWords()
		buckets = v.s.isectCapacity/int(v.s.raster.bucket) + v.size.maxTiles
		touched = (v.s.isectCapacity/layout.TouchBits + v.size.maxTiles) * layout.Patches
	}
	v.lastIDs = vk.ScratchOf[uint32](v.r, "last_ids", lastIDs)
	v.states = vk.ScratchOf[[2]uint32](v.r, "states", states)
	v.touched = vk.ScratchOf[uint32](v.r, "touched", touched)
	v.buckets = vk.ScratchOf[uint32](v.r, "tile_from_bucket", buckets)
	plain := &shaders.Rasterize{
		Params: params, TileOffsets: v.tileOffsets, TileOrder: v.tileOrder, SlotFromIsect: v.slotFromIsect,
		SplatFromSlot: v.splatFromSlot, Shapes: v.shapes, Paints: v.paints,
		Render: render, LastIds: v.lastIDs, States: v.states, Touched: v.touched, TileFromBucket: v.buckets,
		Push: shaders.RasterizePush{Band: uint32(band), NBands: uint32(v.s.bands)},
		Spec: shaders.RasterizeSpec{WorkgroupSize: v.s.raster.forward, KeepStates: keep,
			SubgroupSize: v.s.raster.subgroup,
			BandAlone:    v.s.parts != nil, BucketSize: v.s.raster.bucket, PackedStates: keep && v.s.model.Mixed},
		Handed: v.s.raster.handRound,
	}
	if v.comparesDepths() {
		v.rasterizeDepth(plain)
	} else {
		v.r.Dispatch(plain, v.indirect(layout.ArgsTiles))
	}
	if keep && !v.s.pairs.IsZero() {
		v.r.Dispatch(vk.Derive(plain, func(p *shaders.CountPairs) {
			p.TilePairs, p.Push.Column = v.s.pairs, v.s.raster.column()
			p.Push.Side, p.Push.Round = v.s.raster.backwardSide(), v.s.raster.backwardRound()
		}), v.indirect(layout.ArgsTiles))
	}
}
