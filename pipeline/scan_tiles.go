package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
)

// scanGroups is how many workgroups of scan_tiles many GPUs run at once.
const scanGroups = 1024

// scanTiles is countTiles and the scan of its counts in one pass that looks back.
func (v *view) scanTiles(band int) {
	v.r.Dispatch(&shaders.ScanTiles{
		Params: v.f.params, Counters: v.s.counters, SplatFromRank: v.splatFromRank, Shapes: v.shapes,
		Tallies: v.bandTallies().scan, FirstIsect: v.firstIsect, DispatchArgs: v.s.args,
		Push: shaders.ScanTilesPush{Band: uint32(band), NBands: uint32(v.s.bands), Capacity: uint32(v.s.isectCapacity),
			MostGroups: scanGroups},
	}, v.indirect(layout.ArgsVisible))
}
