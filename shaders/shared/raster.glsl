// What rasterize and rasterize_bwd share: which lane blends which pixels, and a batch of splats in shared memory. The includer declares SUBGROUP_SIZE,
// ALL_QUADRANTS and the workgroup's size, which is chosen for the device.
//
// A workgroup takes a tile. The tile has four quadrants of 8x8 pixels. GPUs have workgroups of 128: 32 lanes take a quadrant and each lane two of its
// pixels, four rows apart. Processors have workgroups of 32: a lane takes a whole column of a quadrant, because what lanes tell each other costs
// software Vulkan more than what they compute. A subgroup passes over splats that miss its quadrants: a lane finds out for one splat, a ballot tells
// the others.
//
// Loops are left at their bottom where that can be: software Vulkan computes both sides of a branch, for no lane if need be, and so goes once more than
// needed through a loop that is left at its top.
#ifndef RASTER_GLSL
#define RASTER_GLSL
#include "params.glsl"
#include "blend.glsl"

const uint RASTER_LANES = gl_WorkGroupSize.x;                   // 128 or 32
const uint LANE_PIXELS = TILE_PIXELS / RASTER_LANES;            // 2 or 8
const bool WHOLE_COLUMNS = LANE_PIXELS == 8u;                   // a lane takes a column of its quadrant
const uint COLUMN_LANES = WHOLE_COLUMNS ? 1u : 4u;
const uint PIXEL_STEP = WHOLE_COLUMNS ? 1u : 4u;                // rows from a lane's pixel to its next
const uint QUADRANT_LANES = RASTER_LANES / 4u;
const float QUADRANT_SPAN = 7.0;                                // px between the outer pixel centres of a quadrant
const uint BATCH = 128u;                                        // splats
const uint LANE_SPLATS = WHOLE_COLUMNS ? 4u : 1u;               // of a batch, that a lane fetches

// The batch: 36 bytes a splat, in two aligned words of four numbers and one.
shared vec4 s_mean[BATCH];      // mean2d, opacity, red
shared vec4 s_form[BATCH];      // form, green
shared float s_blue[BATCH];
shared uint s_quadrants[BATCH]; // bit q: the splat may touch quadrant q

// Number of this lane in its workgroup, counted along subgroups.
uint raster_lane() { return gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID; }

// Bits of the quadrants that this lane's subgroup blends.
uint own_quadrants() {
    uint first = gl_SubgroupID * SUBGROUP_SIZE / QUADRANT_LANES;
    uint n = max(1u, SUBGROUP_SIZE / QUADRANT_LANES);
    return ((1u << n) - 1u) << first;
}

// Place in the tile of pixel p of a lane, column and row.
uvec2 lane_pixel(uint lane, uint p) {
    uint quadrant = lane / QUADRANT_LANES;
    return uvec2(quadrant % 2u * 8u + lane / COLUMN_LANES % 8u, quadrant / 2u * 8u + lane % COLUMN_LANES + PIXEL_STEP * p);
}

// From pixel p of a lane whose pixel 0 has this centre to the splat's mean, px.
vec2 to_mean(vec2 mean2d, vec2 centre, uint p) {
    precise vec2 d = vec2(mean2d.x - centre.x, mean2d.y - centre.y - float(PIXEL_STEP * p));
    return d;
}

// Whether the ellipse at which alpha falls to the threshold comes into a square of pixel centres whose lowest one is at `low` relative to the mean.
// Never no where a pixel of it says yes: `slack` is more than sigma's rounding errors there, and what is no ellipse touches everything.
bool touches_quadrant(vec2 low, vec3 conic, float reach) {
    if (!(conic.x > 0.0 && conic.z > 0.0 && conic.x * conic.z > conic.y * conic.y)) return true;
    vec2 high = low + QUADRANT_SPAN;
    vec2 near = clamp(vec2(0.0), low, high);
    vec2 far = max(abs(low), abs(high));
    // Sigma is convex, so its least value is on one of the two sides nearest to the mean, unless the mean is inside.
    float y = clamp(-conic.y * near.x / conic.z, low.y, high.y);
    float x = clamp(-conic.y * near.y / conic.x, low.x, high.x);
    float at_side = 0.5 * (conic.x * near.x * near.x + conic.z * y * y) + conic.y * near.x * y;
    float at_end = 0.5 * (conic.x * x * x + conic.z * near.y * near.y) + conic.y * x * near.y;
    float slack = 0.001 + 2e-6 * (conic.x * far.x * far.x + conic.z * far.y * far.y);
    return !(min(at_side, at_end) > reach + slack);
}

// Quadrants of the tile with this corner that a splat may touch.
uint touched_quadrants(Projected s, vec2 corner) {
    if (ALL_QUADRANTS) return 15u;
    vec2 low = corner + 0.5 - s.mean2d;
    float reach = log(s.opacity / ALPHA_THRESHOLD);
    uint bits = 0u;
    for (uint q = 0u; q < 4u; q++)
        if (touches_quadrant(low + 8.0 * vec2(q % 2u, q / 2u), s.conic, reach)) bits |= 1u << q;
    return bits;
}

// Puts a splat at a place of the batch.
void store_splat(uint at, Projected p, vec2 corner) {
    Splat s = splat_of(p);
    s_mean[at] = vec4(s.mean2d, s.opacity, s.color.r);
    s_form[at] = vec4(s.form, s.color.g);
    s_blue[at] = s.color.b;
    s_quadrants[at] = touched_quadrants(p, corner);
}

Splat batch_splat(uint at) {
    vec4 a = s_mean[at], b = s_form[at];
    return Splat(a.xy, b.xyz, a.z, vec3(a.w, b.w, s_blue[at]));
}

// For WHOLE_COLUMNS, where reading shared memory costs a step for every lane: each lane reads one splat of the batch, and they hand them round.
Splat own_splat(uint first) { return batch_splat(min(first + gl_SubgroupInvocationID, BATCH - 1u)); }

// The splat that lane j of the subgroup has.
Splat splat_of_lane(Splat own, uint j) {
    return Splat(subgroupShuffle(own.mean2d, j), subgroupShuffle(own.form, j), subgroupShuffle(own.opacity, j), subgroupShuffle(own.color, j));
}

// The splats of the batch from number `first` on, a lane each, that touch the subgroup's quadrants.
uvec2 touching(uint first, uint n, uint quadrants) {
    uint at = first + gl_SubgroupInvocationID;
    return subgroupBallot(at < n && (s_quadrants[at] & quadrants) != 0u).xy;
}

// Takes the lowest lane out of a ballot that is not empty.
uint take_lowest(inout uvec2 todo) {
    if (SUBGROUP_SIZE <= 32u || todo.x != 0u) {
        uint lane = uint(findLSB(todo.x));
        todo.x &= todo.x - 1u;
        return lane;
    }
    uint lane = uint(findLSB(todo.y));
    todo.y &= todo.y - 1u;
    return 32u + lane;
}

#endif
