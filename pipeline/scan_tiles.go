package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
)

// scanTiles is countTiles and the scan of its counts in one pass that looks back.
func (v *view) scanTiles(band int) {
	v.r.Dispatch(&shaders.ScanTiles{
		Params: v.f.params, Counters: v.counters, SplatFromRank: v.splatFromRank, Projected: v.projected,
		Extents: v.extents,
		Tallies: v.bandTallies().scan, FirstIsect: v.firstIsect, DispatchArgs: v.args,
		Push: shaders.ScanTilesPush{Band: uint32(band), NBands: uint32(v.bands), Capacity: uint32(v.isectCapacity)},
	}, v.indirect(layout.ArgsVisible))
}
