package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// rasterLanes returns the workgroup's size of rasterize and rasterize_bwd: two pixels a lane, on processors eight (shared/raster.glsl). It changes the
// order of sums, so it must follow from the device alone, not from what subgroup size is asked for.
func rasterLanes(d vk.DeviceInfo) uint32 {
	if d.Type == vk.CPU && d.Limits.SubgroupSize <= layout.TilePixels/8 {
		return layout.TilePixels / 8
	}
	return layout.TilePixels / 2
}

// rasterize blends a band's tiles. Without keep nothing is saved for a backward pass.
func (v *view) rasterize(band int, keep bool) {
	scratch(v.r, &v.render, "render", v.maxPixels)
	lastIDs, states, buckets := 0, 0, 0
	if keep {
		lastIDs, states, buckets = v.maxPixels, v.isectCapacity/layout.BucketSize*layout.TilePixels, v.isectCapacity/layout.BucketSize+v.maxTiles
	}
	v.lastIDs = vk.ScratchOf[uint32](v.r, "last_ids", lastIDs)
	v.states = vk.ScratchOf[[4]float32](v.r, "states", states)
	v.buckets = vk.ScratchOf[uint32](v.r, "tile_from_bucket", buckets)
	v.r.Dispatch(&shaders.Rasterize{
		Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect, SplatFromSlot: v.splatFromSlot, Projected: v.projected,
		Render: v.render, LastIds: v.lastIDs, States: v.states, TileFromBucket: v.buckets,
		Push: shaders.RasterizePush{Band: uint32(band), NBands: uint32(v.bands)},
		Spec: shaders.RasterizeSpec{WorkgroupSize: rasterLanes(v.dev.Info()), KeepStates: keep, SubgroupSize: v.sort.subgroup},
	}, v.indirect(layout.ArgsTiles))
	if keep && !v.pairs.IsZero() {
		v.r.Dispatch(&shaders.CountPairs{
			Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect, SplatFromSlot: v.splatFromSlot, Projected: v.projected,
			TilePairs: v.pairs, Push: shaders.CountPairsPush{Band: uint32(band), NBands: uint32(v.bands)},
		}, v.indirect(layout.ArgsTiles))
	}
}
