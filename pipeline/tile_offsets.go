package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// findTileOffsets finds where each tile's isects begin.
func (v *view) findTileOffsets(ids vk.Slice[uint32]) {
	v.tileOffsets = vk.ScratchOf[uint32](v.r, "tile_offsets", v.maxTiles+1)
	v.r.Dispatch(&shaders.TileOffsets{
		Params: v.f.params, Counters: v.counters, TileIds: ids, TileOffsets: v.tileOffsets,
	}, v.indirect(layout.ArgsTileOffsets))
}
