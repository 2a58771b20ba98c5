package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
)

// countTiles counts the tiles of a band that each visible splat touches, into what becomes first_isect.
func (v *view) countTiles(band int) {
	v.r.Dispatch(&shaders.CountTiles{
		Params: v.f.params, Counters: v.s.counters, SplatFromRank: v.splatFromRank, Shapes: v.shapes,
		TileCounts: v.firstIsect,
		Push:       shaders.CountTilesPush{Band: uint32(band), NBands: uint32(v.s.bands)},
	}, v.indirect(layout.ArgsVisible))
}
