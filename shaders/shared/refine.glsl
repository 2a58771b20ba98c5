// Where refinement puts things. n splats, `holes` of them pruned, `added` new: the items to place are the new splats by
// parent, then the splats that live at or beyond the new count; the places are the holes below it in order, then the
// ids from n on. Item k goes to place k. Nobody reads a place that is written, so it all happens in place. The includer
// declares counters, hole_offset, hole_list.
#ifndef REFINE_GLSL
#define REFINE_GLSL
#include "const.glsl"

uint place(uint k) {
    uint free_holes = counters[N_FREE_HOLES];
    return k < free_holes ? hole_list[k] : counters[N_ACTIVE] + (k - free_holes);
}

// Where splat id, which lives on, will be.
uint new_home(uint id) {
    uint after = counters[N_AFTER];
    if (id < after) return id;
    uint moved_before = (id - after) - (hole_offset[id] - hole_offset[after]);
    return place(counters[N_NEW_ALLOWED] + moved_before);
}

#endif
