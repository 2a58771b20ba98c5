package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
)

// findPlaces finds which places of the scene a band's squares of pixels show.
func (v *view) findPlaces(band int) {
	if !v.s.compare.robust {
		return
	}
	scratch(v.r, &v.places, "places", v.size.maxTiles*layout.TileSquares)
	v.r.Dispatch(&shaders.FindPlaces{
		Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect,
		SplatFromSlot: v.splatFromSlot, Shapes: v.shapes, Paints: v.paints, DepthKeys: v.depthKeys, Places: v.places,
		Push: shaders.FindPlacesPush{Band: uint32(band), NBands: uint32(v.s.bands)},
	}, v.indirect(layout.ArgsTiles))
}
