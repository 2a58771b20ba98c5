// What rasterize and rasterize_bwd share: which lane blends which pixels, and a batch of splats in shared memory. The
// includer declares SUBGROUP_SIZE, HAND_ROUND, SPREAD, ALL_PATCHES, BATCH, the number of splats of a batch, PIECE, how
// many of them have their lists gone through together, and the workgroup's size, which is chosen for the device.
//
// A workgroup takes a tile. The tile has eight patches of 8x4 pixels, two in a row, and a patch blends only the splats
// whose ellipse touches it. Where a lane has one pixel a patch is a subgroup of 32. Where it has more, they are below
// each other in one patch, and several patches share a subgroup and go through their own lists side by side; or, with
// SPREAD, they are in the same place of each patch of a column of patches, which goes through one list.
#ifndef RASTER_GLSL
#define RASTER_GLSL
#include "params.glsl"
#include "blend.glsl"

const uint LANES = gl_WorkGroupSize.x;                                          // 64 to 256
const uint LANE_PIXELS = TILE_PIXELS / LANES;                                   // PIXEL_STEP rows apart
const uint PATCH_WIDTH = 8u;                                                    // px
const uint PATCH_HEIGHT = 4u;                                                   // px
const uint PATCH_COLUMNS = TILE_SIZE / PATCH_WIDTH;
const uint COLUMN_PATCHES = 0x55u;                                              // bit k: patch k is of the first column
const uint PATCH_LANES = LANES / PATCHES;                                       // without SPREAD
const uint LIST_LANES = SPREAD ? PATCH_LANES * LANE_PIXELS : PATCH_LANES;       // lanes that have one list
// lanes of a list that are in one subgroup
const uint CLUSTER = SUBGROUP_SIZE < LIST_LANES ? SUBGROUP_SIZE : LIST_LANES;
// the lanes of a subgroup have one list
const bool ONE_LIST = LIST_LANES >= SUBGROUP_SIZE;
const uint PIXEL_STEP = SPREAD ? PATCH_HEIGHT : 1u;                             // rows between two pixels of a lane

#ifdef DEPTH
#define REST vec2
#define REST_OF(color) color.ba
#else
#define REST float
#define REST_OF(color) color.b
#endif

// The batch, and behind it a splat that covers nothing. 36 bytes a splat, in two aligned words of four numbers and one,
// or with DEPTH two.
shared vec4 s_mean[BATCH + 1u];                     // mean2d, log_opacity, red
shared vec4 s_form[BATCH + 1u];                     // form, green
shared REST s_blue[BATCH + 1u];                     // blue, with DEPTH also the inverse depth

// Number of this lane in its workgroup, counted along subgroups.
uint raster_lane() { return gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID; }

// Numbers of this lane's list and cluster in its workgroup. Where they are subgroups, NVIDIA's compiler must be told:
// by way of raster_lane() it computes them for every splat, which costs rasterize_bwd 8 % (driver 580).
uint list_number() { return LIST_LANES == SUBGROUP_SIZE ? gl_SubgroupID : raster_lane() / LIST_LANES; }
uint cluster_number() { return CLUSTER == SUBGROUP_SIZE ? gl_SubgroupID : raster_lane() / CLUSTER; }

// Place in the tile of pixel p of a lane, column and row.
uvec2 lane_pixel(uint lane, uint p) {
    if (SPREAD)
        return uvec2(lane / LIST_LANES * PATCH_WIDTH + lane % PATCH_WIDTH,
                     lane % LIST_LANES / PATCH_WIDTH + p * PATCH_HEIGHT);
    uint patch_id = lane / PATCH_LANES;
    return uvec2(patch_id % 2u * PATCH_WIDTH + lane % PATCH_WIDTH,
                 patch_id / 2u * PATCH_HEIGHT + lane % PATCH_LANES / PATCH_WIDTH * LANE_PIXELS + p);
}

// From the centre of a pixel to a mean, along one axis, px. Both passes round once.
float to_mean(float mean, float centre) {
    precise float d = mean - centre;
    return d;
}

// From pixel p of a lane whose pixel 0 has this centre to a mean, px.
float to_mean_y(float y, vec2 centre, uint p) { return to_mean(y, centre.y + float(p * PIXEL_STEP)); }

#include "touch.glsl"

// Puts a splat at a place of the batch.
void store_splat(uint at, Blended p) {
    Splat s = splat_of(p);
    s_mean[at] = vec4(s.mean2d, s.log_opacity, s.color.r);
    s_form[at] = vec4(s.form, s.color.g);
    s_blue[at] = REST_OF(s.color);
}

// Once, before the first batch: the splat behind it.
void store_none() {
    if (raster_lane() > 0u) return;
    s_mean[BATCH] = vec4(0.0, 0.0, LOG2_NOTHING, 0.0);
    s_form[BATCH] = vec4(0.0);
    s_blue[BATCH] = REST(0.0);
}

Splat batch_splat(uint at) {
    vec4 a = s_mean[at], b = s_form[at];
    return Splat(a.xy, b.xyz, a.z, COLOR(a.w, b.w, s_blue[at]));
}

// A patch's list of splats of a piece that are still to be blended: bit k is splat `first` + k of the batch. With
// HAND_ROUND each lane of a subgroup has one of them in registers and they hand them round: reading shared memory costs
// software Vulkan a step for every lane, even where all read one address.
struct Walk {
    uint first;
    uint todo;
    Splat own;
};

Walk walk_of(uint first, uint todo) {
    Walk w;
    w.first = first;
    w.todo = ONE_LIST ? subgroupBroadcastFirst(todo) : todo;    // the compiler shall know that it is the same
    if (HAND_ROUND) w.own = batch_splat(first + min(gl_SubgroupInvocationID, PIECE - 1u));
    return w;
}

// How many splats the longest list of the subgroup has.
uint walk_length(Walk w) {
    uint n = uint(bitCount(w.todo));
    return ONE_LIST ? n : subgroupMax(n);
}

// The next splat of the list, k being its number from `first` on; if there are no more, one that covers nothing.
Splat walk_next(inout Walk w, out uint k, out bool more) {
    uint next = uint(findLSB(w.todo));      // -1 if there is none
    more = w.todo != 0u;
    w.todo &= w.todo - 1u;
    if (HAND_ROUND) {
        k = min(next, PIECE - 1u);
        Splat s = Splat(subgroupShuffle(w.own.mean2d, k), subgroupShuffle(w.own.form, k),
                        subgroupShuffle(w.own.log_opacity, k), subgroupShuffle(w.own.color, k));
        if (!more) s = Splat(vec2(0.0), vec3(0.0), LOG2_NOTHING, COLOR(0.0));   // lane k's may be anything
        return s;
    }
    k = more ? next : BATCH - w.first;
    return batch_splat(w.first + k);
}

#endif
