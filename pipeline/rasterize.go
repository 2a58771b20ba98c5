package pipeline

import (
	"os"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// rasterShape is how rasterize and rasterize_bwd run on a device.
type rasterShape struct {
	lanes    uint32 // of a workgroup
	subgroup uint32
}

// lanesVariable asks for a workgroup of so many lanes on software Vulkan: 128 is what GPUs have.
const lanesVariable = "VKSPLAT_LANES"

// chooseRaster takes two pixels a lane, on processors eight (shared/raster.glsl). That changes the order of sums, so it follows from the kind of device,
// not from the size of subgroups, which changes nothing.
func chooseRaster(d vk.DeviceInfo) rasterShape {
	l := d.Limits
	s := rasterShape{layout.TilePixels / 2, l.SubgroupSize}
	if d.Type == vk.CPU && l.SubgroupSize <= layout.TilePixels/8 && os.Getenv(lanesVariable) != "128" {
		s.lanes = layout.TilePixels / 8
	}
	if l.MinSubgroupSize <= 8 && s.subgroup > 8 && l.MaxComputeWorkgroupSubgroups >= s.lanes/8 {
		s.subgroup = 8 // Intel: wider, both spill registers
	}
	return s
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
		Spec: shaders.RasterizeSpec{WorkgroupSize: v.raster.lanes, KeepStates: keep, SubgroupSize: v.raster.subgroup},
	}, v.indirect(layout.ArgsTiles))
	if keep && !v.pairs.IsZero() {
		v.r.Dispatch(&shaders.CountPairs{
			Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect, SplatFromSlot: v.splatFromSlot, Projected: v.projected,
			TilePairs: v.pairs, Push: shaders.CountPairsPush{Band: uint32(band), NBands: uint32(v.bands)},
		}, v.indirect(layout.ArgsTiles))
	}
}
