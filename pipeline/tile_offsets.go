package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// findTileOffsets finds where each tile's isects begin, and the order in which rasterize begins the tiles.
func (v *view) findTileOffsets(ids vk.Slice[uint32]) {
	v.tileOffsets = vk.ScratchOf[uint32](v.r, "tile_offsets", v.size.maxTiles+1)
	v.tileOrder = vk.ScratchOf[uint32](v.r, "tile_order", v.size.maxTiles)
	v.r.Dispatch(&shaders.TileOffsets{
		Params: v.f.params, Counters: v.s.counters, TileIds: ids, TileOffsets: v.tileOffsets, TileOrder: v.tileOrder,
	}, v.indirect(layout.ArgsTileOffsets))
}
