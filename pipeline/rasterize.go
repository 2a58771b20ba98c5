package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// rasterShape is how rasterize and rasterize_bwd run on a device. It changes no byte.
type rasterShape struct {
	subgroup  uint32
	handRound bool // lanes tell each other of splats
}

func chooseRaster(d vk.DeviceInfo) rasterShape {
	l := d.Limits
	s := rasterShape{l.SubgroupSize, d.Type == vk.CPU}
	if l.MinSubgroupSize <= 8 && s.subgroup > 8 && l.MaxComputeWorkgroupSubgroups >= layout.RasterLanes/8 {
		s.subgroup = 8 // Intel: wider, both spill registers
	}
	return s
}

// rasterize blends a band's tiles. Without keep nothing is saved for a backward pass.
func (v *view) rasterize(band int, keep bool) {
	scratch(v.r, &v.render, "render", v.maxPixels)
	lastIDs, states, touched, buckets := 0, 0, 0, 0
	if keep {
		lastIDs, states = v.maxPixels, v.isectCapacity/layout.BucketSize*layout.TilePixels
		touched, buckets = (v.isectCapacity/layout.TouchBits+v.maxTiles)*layout.Patches, v.isectCapacity/layout.BucketSize+v.maxTiles
	}
	v.lastIDs = vk.ScratchOf[uint32](v.r, "last_ids", lastIDs)
	v.states = vk.ScratchOf[[4]float32](v.r, "states", states)
	v.touched = vk.ScratchOf[uint32](v.r, "touched", touched)
	v.buckets = vk.ScratchOf[uint32](v.r, "tile_from_bucket", buckets)
	v.r.Dispatch(&shaders.Rasterize{
		Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect, SplatFromSlot: v.splatFromSlot, Projected: v.projected,
		Render: v.render, LastIds: v.lastIDs, States: v.states, Touched: v.touched, TileFromBucket: v.buckets,
		Push: shaders.RasterizePush{Band: uint32(band), NBands: uint32(v.bands)},
		Spec: shaders.RasterizeSpec{KeepStates: keep, SubgroupSize: v.raster.subgroup, HandRound: v.raster.handRound},
	}, v.indirect(layout.ArgsTiles))
	if keep && !v.pairs.IsZero() {
		v.r.Dispatch(&shaders.CountPairs{
			Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect, SplatFromSlot: v.splatFromSlot, Projected: v.projected,
			TilePairs: v.pairs, Push: shaders.CountPairsPush{Band: uint32(band), NBands: uint32(v.bands)},
		}, v.indirect(layout.ArgsTiles))
	}
}
