#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// rasterize_bwd: gradients of each (tile, splat) pair, summed over the tile's pixels, without atomics (see
// patch_sum.glsl for the order).
//   reads params counters tile_offsets slot_from_isect splat_from_slot projected render last_ids states touched
//   v_render tile_from_bucket
//   writes v_slots v_abs_slots
// One workgroup takes a bucket (see raster.glsl). Lanes keep their pixels' state in registers and go through the splats
// from front to back, as in the forward pass, past those that miss the patch.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x_id = 0, local_size_x = 64) in;
layout(constant_id = 1) const uint SUBGROUP_SIZE = 32u;
// Also sum the absolute values of the mean's gradient over pixels, each component by itself (Ye et al. 2024).
layout(constant_id = 2) const bool ABSGRAD = false;
layout(constant_id = 3) const bool HAND_ROUND = false;
const bool SPREAD = HAND_ROUND ? false : true;
const bool ALL_PATCHES = false;
// Splats in shared memory at once: as many as a word of `touched` has bits.
const uint BATCH = TOUCH_BITS;
// Splats whose sums are there at once. The less memory, the more workgroups a GPU runs side by side, and their number
// decides how fast this kernel is; on processors barriers cost more. Narrow subgroups leave more parts.
const uint ROUND = (HAND_ROUND ? 32u : 16u) / (SUBGROUP_SIZE < 8u ? 2u : 1u);
const uint PIECE = SUBGROUP_SIZE < ROUND ? SUBGROUP_SIZE : ROUND;
#include "raster.glsl"
#include "patch_sum.glsl"

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 3, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 4, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 5, scalar) readonly buffer ProjectedB { Projected projected[]; };      // [N]
layout(binding = 6, scalar) readonly buffer Render { vec4 render[]; };                  // [P]
layout(binding = 7, scalar) readonly buffer LastIds { uint last_ids[]; };               // [P]
// [isects / BUCKET_SIZE][TILE_PIXELS]
layout(binding = 8, scalar) readonly buffer States { vec4 states[]; };
// [isects / TOUCH_BITS + n_tiles][PATCHES]
layout(binding = 9, scalar) readonly buffer Touched { uint touched[]; };
layout(binding = 10, scalar) readonly buffer VRender { vec4 v_render[]; };              // [P] dL/d(rgb, alpha)
layout(binding = 11, scalar) readonly buffer Buckets { uint tile_from_bucket[]; };
// [n_isects][9], a ProjectedGrad
layout(binding = 12, scalar) writeonly buffer VSlots { float v_slots[]; };
// [n_isects] with ABSGRAD; else not written
layout(binding = 13, scalar) writeonly buffer VAbs { vec2 v_abs_slots[]; };

const uint GRADS = 9u;

shared uint s_slot[BATCH];
shared uint s_last;     // the tile's largest last_id

struct Pixel {
    vec3 v;                 // dL/d(rgb)
    float transmittance;    // 0 once the pixel is done
    float behind;           // what lies behind, dotted with v
};

// A pixel of the tile at the start of bucket b, and the number of isects up to the last one that changes it.
Pixel load_pixel(View v, uvec2 corner, uvec2 place, uint b, uint begin, out uint last) {
    uvec2 at = corner + place;
    Pixel p = Pixel(vec3(0.0), 0.0, 0.0);
    last = 0u;
    if (at.x >= v.width || at.y >= v.height) return p;
    uint i = at.y * v.width + at.x;
    last = last_ids[i];
    if (last <= b * BUCKET_SIZE) return p;
    // Before any splat: nothing blended, all light passes.
    vec4 state = vec4(0.0, 0.0, 0.0, 1.0);
    if (b > 0u) state = states[(begin / BUCKET_SIZE + b - 1u) * TILE_PIXELS + place.y * TILE_SIZE + place.x];
    vec4 out_color = render[i];
    vec4 g = v_render[i];
    p.v = g.rgb;
    p.transmittance = state.w;
    p.behind = dot(out_color.rgb - state.rgb, g.rgb) - out_color.w * g.a;
    return p;
}

// dL/dmean2d, given dL/dsigma times d.
vec2 mean_gradient(vec3 form, vec2 qd) {
    return 0.6931471805599453 * fma(2.0 * form.xz, qd, form.y * qd.yx);    // ln 2
}

// Sums of a splat over the pixels of a column, q being dL/dsigma and d = mean2d - pixel centre.
struct ColumnSums {
    float q;
    float y;        // q dy
    float yy;       // q dy dy
    vec3 color;
    vec2 abs_mean2d;
};

// Moves a pixel's state past a splat that may hit it with this alpha before the ceiling, and adds to the sums.
void pass_splat(inout Pixel p, Splat s, bool hit, float raw, vec2 d, inout ColumnSums sums) {
    // As in the forward pass, which ends a pixel at the first splat that would leave too little light.
    float most = min(MAX_ALPHA, raw);
    precise float taken = most * p.transmittance;
    precise float next = p.transmittance - taken;
    bool blended = hit && next > TRANSMITTANCE_THRESHOLD;
    float alpha = blended ? most : 0.0;
    float weight = blended ? taken : 0.0;
    float cv = fma(s.color.r, p.v.r, fma(s.color.g, p.v.g, s.color.b * p.v.b));
    p.behind = fma(-weight, cv, p.behind);
    float passes = 1.0 - alpha;
    // dC/dalpha = T c - (what lies behind) / (1 - alpha); none flows where the ceiling holds, and alpha is 0 where
    // nothing is hit.
    float q = raw <= MAX_ALPHA ? alpha * fma(-p.transmittance, cv, p.behind / passes) : 0.0;
    p.transmittance = blended ? next : hit ? 0.0 : p.transmittance;
    float qy = q * d.y;
    sums.q += q;
    sums.y += qy;
    sums.yy = fma(qy, d.y, sums.yy);
    sums.color = fma(vec3(weight), p.v, sums.color);
    if (ABSGRAD) sums.abs_mean2d += abs(mean_gradient(s.form, vec2(q * d.x, qy)));
}

// Moves the lane's pixels past a splat of the batch, number `at` of a piece, and leaves the subgroup's part of its sums
// as that of splat j of the round, if `keep`. Bit `at` of touches[p] says whether it touches pixel p's patch.
void sum_splat(inout Pixel pixels[LANE_PIXELS], vec2 centre, Splat s, uint at, uint touches[LANE_PIXELS], uint j,
               bool keep) {
    float dx = to_mean_x(s.mean2d.x, centre);
    Column c = column_of(s, dx);
    ColumnSums sums = ColumnSums(0.0, 0.0, 0.0, vec3(0.0), vec2(0.0));
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        if (SPREAD && (touches[p] >> at & 1u) == 0u) continue;
        vec2 d = vec2(dx, to_mean_y(s.mean2d.y, centre, p));
        float raw;
        bool hit = covers(s, c, d.y, raw);
        pass_splat(pixels[p], s, hit, raw, d, sums);
    }
    precise float x = dx * sums.q;
    vec2 mean2d = mean_gradient(s.form, vec2(x, sums.y));
    store_sums(float[9](mean2d.x, mean2d.y, dx * x, dx * sums.y, sums.yy, sums.q,
                        sums.color.r, sums.color.g, sums.color.b), sums.abs_mean2d, j, keep);
}

// The sums of a piece of a batch, which begins with splat `first` of it and j of the round. touches[p] are those of its
// splats that touch pixel p's patch, `todo` those of any.
void sum_piece(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint todo, uint touches[LANE_PIXELS], uint j) {
    if (ONE_LIST && !HAND_ROUND) {      // a walk, but NVIDIA's compiler makes a seventh more of it (driver 580)
        while (todo != 0u) {
            uint at = uint(findLSB(todo));
            todo &= todo - 1u;
            sum_splat(pixels, centre, batch_splat(first + at), at, touches, j + at, true);
        }
        return;
    }
    Walk walk = walk_of(first, todo);
    uint n = walk_length(walk);
    if (n == 0u) return;
    for (uint i = 0u;;) {
        uint at;
        bool more;
        Splat s = walk_next(walk, at, more);
        // What covers nothing may pass for a splat of any patch.
        sum_splat(pixels, centre, s, min(at, 31u), touches, j + at, more);
        i++;
        if (i == n) break;
    }
}

// From the sums to the gradients of n splats of a batch, from number `first` on, a lane each.
void store_round(uint first, uint n) {
    for (uint i = raster_lane(); i < n * GRADS; i += LANES) {
        uint j = i / GRADS, part = i % GRADS;
        float sum = tile_sum(j, part);
        // The conic's gradient has q dx dx / 2, q dx dy, q dy dy / 2. q = -alpha dL/dalpha, and alpha is the opacity
        // times what opacity's gradient is made of.
        float scale = part == 2u || part == 4u ? 0.5 : part == 5u ? -exp2(-s_mean[first + j].z) : 1.0;
        v_slots[s_slot[first + j] * GRADS + part] = sum == 0.0 ? 0.0 : sum * scale;
    }
    if (!ABSGRAD) return;
    for (uint j = raster_lane(); j < n; j += LANES)
        v_abs_slots[s_slot[first + j]] = vec2(tile_sum(j, 9u), tile_sum(j, 10u));
}

// Splats that no pixel of the tile reaches.
void store_zeros(uint first, uint n) {
    for (uint i = raster_lane(); i < n * GRADS; i += LANES)
        v_slots[s_slot[first + i / GRADS] * GRADS + i % GRADS] = 0.0;
    if (ABSGRAD && raster_lane() < n) v_abs_slots[s_slot[first + raster_lane()]] = vec2(0.0);
}

// The largest of the cluster's lanes.
uint cluster_max(uint x) {
    for (uint distance = 1u; distance < CLUSTER; distance *= 2u) x = max(x, subgroupShuffleXor(x, distance));
    return x;
}

// Which isects of a batch, from number k of the tile on, touch the patch of the lane's pixel p and lie in front of the
// last one that changes any pixel of it; `word` is the batch's first in `touched`.
uint touches_of(uint word, uint k, uint p, uint last) {
    if (k >= last) return 0u;
    uint bits = touched[word + (SPREAD ? 2u * p : 0u) + raster_lane() / LIST_LANES];
    return last - k < 32u ? bits & (1u << last - k) - 1u : bits;
}

// The sums of a round's splats, n from number `first` of the batch on.
void sum_round(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint n, uint touches[LANE_PIXELS]) {
    uint todo = 0u;
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        touches[p] >>= first;
        todo |= touches[p];
    }
    if (ROUND < 32u) todo &= (1u << ROUND % 32u) - 1u;
    if (raster_lane() % CLUSTER == 0u) s_summed[raster_lane() / CLUSTER] = todo;
    for (uint g = 0u;;) {
        sum_piece(pixels, centre, first + g, PIECE < ROUND ? todo & (1u << PIECE % 32u) - 1u : todo, touches, g);
        g += PIECE;
        if (g >= n) break;
        todo >>= PIECE % 32u;
        for (uint p = 0u; p < LANE_PIXELS; p++) touches[p] >>= PIECE % 32u;
    }
}

void main() {
    uint bucket = group_index();
    View v = params[0].view;
    uint n_tiles = v.tile_width * v.tile_height;
    if (bucket >= counters[N_ISECTS] / BUCKET_SIZE + n_tiles) return;
    uint tile = tile_from_bucket[bucket];
    uint begin = tile_offsets[tile], end = tile_offsets[tile + 1u];
    uint b = bucket - (begin / BUCKET_SIZE + tile);
    if (b * BUCKET_SIZE >= end - begin) return;
    uint lane = raster_lane();
    uvec2 corner = uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE;
    if (lane == 0u) s_last = 0u;
    store_none();
    barrier();
    Pixel pixels[LANE_PIXELS];
    uint last[LANE_PIXELS], most = 0u;
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        pixels[p] = load_pixel(v, corner, lane_pixel(lane, p), b, begin, last[p]);
        last[p] = cluster_max(last[p]);
        most = max(most, last[p]);
    }
    if (!SPREAD) last[0] = most;    // all are of one patch
    if (lane % CLUSTER == 0u) atomicMax(s_last, most);  // of integers: the order does not matter
    vec2 centre = vec2(corner + lane_pixel(lane, 0u)) + 0.5;
    uint stop = min(end - begin, (b + 1u) * BUCKET_SIZE);
    for (uint batch = b * BUCKET_SIZE;;) {
        uint n = min(BATCH, stop - batch);
        uint touches[LANE_PIXELS];
        uint word = (begin / TOUCH_BITS + tile + batch / TOUCH_BITS) * PATCHES;
        for (uint p = 0u; p < LANE_PIXELS; p++)
            touches[p] = SPREAD || p == 0u ? touches_of(word, batch, p, last[p]) : touches[0];
        if (lane < n) {
            uint slot = slot_from_isect[begin + batch + lane];
            s_slot[lane] = slot;
            store_splat(lane, projected[splat_from_slot[slot]]);
        }
        barrier();
        for (uint first = 0u;;) {
            uint n_round = min(ROUND, n - first);
            if (batch + first >= s_last) {
                store_zeros(first, n_round);
            } else {
                sum_round(pixels, centre, first, n_round, touches);
                barrier();
                store_round(first, n_round);
            }
            barrier();
            first += ROUND;
            if (first >= n) break;
        }
        batch += BATCH;
        if (batch >= stop) break;
    }
}
