#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
// rasterize_bwd: gradients of each (tile, splat) pair, summed over the tile's pixels, without atomics (see quadrant_sum.glsl for the order).
//   reads params counters tile_offsets slot_from_isect splat_from_slot projected render last_ids states v_render tile_from_bucket; writes v_slots v_abs_slots
// One workgroup takes a bucket (see raster.glsl). Lanes keep their pixels' state in registers and go through the splats from front to back, as in the
// forward pass, past those that miss the subgroup's quadrants.
#include "params.glsl"
#include "blend.glsl"
#include "dispatch.glsl"

layout(local_size_x_id = 0, local_size_x = 128) in;
layout(constant_id = 1) const uint SUBGROUP_SIZE = 32u;
// Also sum the absolute values of the mean's gradient over pixels, each component by itself (Ye et al. 2024).
layout(constant_id = 2) const bool ABSGRAD = false;
// Splats go to all quadrants, whether they touch them or not: for tests, since it must change no byte.
layout(constant_id = 3) const bool ALL_QUADRANTS = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 3, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 4, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 5, scalar) readonly buffer ProjectedB { Projected projected[]; };      // [N]
layout(binding = 6, scalar) readonly buffer Render { vec4 render[]; };                  // [P]
layout(binding = 7, scalar) readonly buffer LastIds { uint last_ids[]; };               // [P]
layout(binding = 8, scalar) readonly buffer States { vec4 states[]; };                  // [isects / BUCKET_SIZE][TILE_PIXELS]
layout(binding = 9, scalar) readonly buffer VRender { vec4 v_render[]; };               // [P] dL/d(rgb, alpha)
layout(binding = 10, scalar) readonly buffer Buckets { uint tile_from_bucket[]; };
layout(binding = 11, scalar) writeonly buffer VSlots { ProjectedGrad v_slots[]; };      // [n_isects]
layout(binding = 12, scalar) writeonly buffer VAbs { vec2 v_abs_slots[]; };             // [n_isects] with ABSGRAD; else not written
#include "raster.glsl"
#include "quadrant_sum.glsl"
#include "column_sum.glsl"

shared uint s_slot[BATCH];
shared uint s_last;     // the tile's largest last_id

struct Pixel {
    vec3 v;                 // dL/d(rgb)
    float transmittance;
    float behind;           // what lies behind, dotted with v
    uint last;
};

// A pixel of the tile at the start of bucket b.
Pixel load_pixel(View v, uvec2 corner, uvec2 place, uint b, uint begin) {
    uvec2 at = corner + place;
    Pixel p = Pixel(vec3(0.0), 0.0, 0.0, 0u);
    if (at.x >= v.width || at.y >= v.height) return p;
    uint i = at.y * v.width + at.x;
    p.last = last_ids[i];
    vec4 out_color = render[i];
    vec4 g = v_render[i];
    // Before any splat: nothing blended, all light passes.
    vec4 state = vec4(0.0, 0.0, 0.0, 1.0);
    if (b > 0u && p.last > b * BUCKET_SIZE) state = states[(begin / BUCKET_SIZE + b - 1u) * TILE_PIXELS + place.y * TILE_SIZE + place.x];
    p.v = g.rgb;
    p.transmittance = state.w;
    p.behind = dot(out_color.rgb - state.rgb, g.rgb) - out_color.w * g.a;
    return p;
}

// dL/dmean2d, given dL/dsigma times d.
vec2 mean_gradient(vec3 form, vec2 qd) {
    return 0.6931471805599453 * vec2(2.0 * form.x * qd.x + form.y * qd.y, form.y * qd.x + 2.0 * form.z * qd.y);    // ln 2
}

// Moves a pixel's state past a splat that may hit it with this alpha before the ceiling, and adds to the sums.
void pass_splat(inout Pixel p, Splat s, bool hit, float raw, vec2 d, inout ColumnSums sums, inout vec2 abs_mean2d) {
    float alpha = hit ? min(MAX_ALPHA, raw) : 0.0;
    // Every sum of products is written as fma: variants are compiled apart, and no compiler shall choose.
    precise float weight = alpha * p.transmittance;
    precise float cv = fma(s.color.r, p.v.r, fma(s.color.g, p.v.g, s.color.b * p.v.b));
    p.behind = fma(-weight, cv, p.behind);
    precise float passes = 1.0 - alpha;
    // dC/dalpha = T c - (what lies behind) / (1 - alpha); none flows where the ceiling holds.
    float q = hit && raw <= MAX_ALPHA ? alpha * fma(-p.transmittance, cv, p.behind / passes) : 0.0;
    precise float next = p.transmittance * passes;
    p.transmittance = next;
    precise vec2 qd = q * d;
    sums.q += q;
    sums.y += qd.y;
    sums.yy = fma(qd.y, d.y, sums.yy);
    sums.color = fma(vec3(weight), p.v, sums.color);
    if (ABSGRAD) abs_mean2d += abs(mean_gradient(s.form, qd));
}

// The subgroup's part of the sums of the splats of a round; k is the first one's number in the tile.
void sum_round(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint n, uint k, uint quadrants, SumPlace place) {
    uvec2 todo = touching(first, min(n, first + ROUND), quadrants);
    while ((todo.x | todo.y) != 0u) {
        uint j = take_lowest(todo);
        Splat s = batch_splat(first + j);
        vec2 d[LANE_PIXELS];
        float raw[LANE_PIXELS];
        bool hit[LANE_PIXELS];
        for (uint p = 0u; p < LANE_PIXELS; p++) {
            d[p] = to_mean(s.mean2d, centre, p);
            hit[p] = covers(s, d[p], raw[p]) && k + j < pixels[p].last;
        }
        // Halves of the quadrant that the splat misses cost little.
        bool half_hit[LANE_PIXELS], some = false;
        for (uint p = 0u; p < LANE_PIXELS; p++) {
            half_hit[p] = subgroupAny(hit[p]);
            some = some || half_hit[p];
        }
        if (!some) continue;
        ColumnSums sums = ColumnSums(0.0, 0.0, 0.0, vec3(0.0));
        vec2 abs_mean2d = vec2(0.0);
        for (uint p = 0u; p < LANE_PIXELS; p++)
            if (half_hit[p]) pass_splat(pixels[p], s, hit[p], raw[p], d[p], sums, abs_mean2d);
        store_sums(sums, d[0].x, j, place);
        if (ABSGRAD) store_abs_sums(abs_mean2d, j, place);
    }
}

// The same for WHOLE_COLUMNS and as many splats as the subgroup has lanes, `first` of the batch and k of the tile being the first one: each lane is left
// with the sums of one of them. `last` is the largest last_id of the subgroup.
void sum_columns(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint n, uint k, uint quadrants, uint last) {
    uvec2 todo = touching(first, n, quadrants);
    if (k >= last) todo = uvec2(0u);
    TileSums kept = no_sums();
    Splat own = own_splat(first);
    if (todo.x != 0u) {
        for (;;) {
            uint j = take_lowest(todo);
            Splat s = splat_of_lane(own, j);
            ColumnSums sums = ColumnSums(0.0, 0.0, 0.0, vec3(0.0));
            vec2 abs_mean2d = vec2(0.0);
            for (uint p = 0u; p < LANE_PIXELS; p++) {
                vec2 d = to_mean(s.mean2d, centre, p);
                float raw;
                bool hit = covers(s, d, raw) && k + j < pixels[p].last;
                pass_splat(pixels[p], s, hit, raw, d, sums, abs_mean2d);
            }
            keep_sums(kept, sums, to_mean(s.mean2d, centre, 0u).x, abs_mean2d, j);
            if (todo.x == 0u) break;
        }
    }
    store_kept(kept, first % ROUND);
}

// The same for all splats of a round.
void sum_round_columns(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint n, uint k, uint quadrants, uint last) {
    for (uint i = 0u;;) {
        sum_columns(pixels, centre, first + i, n, k + i, quadrants, last);
        i += SUBGROUP_SIZE;
        if (i == ROUND) break;
    }
}

// From the sums to the gradients of the splats of a round, a lane a splat.
void store_columns(uint first, uint n) {
    uint j = raster_lane(), at = first + j;
    if (j >= ROUND || at >= n) return;
    TileSums t = take_kept(j);
    vec4 form = s_form[at];
    // Zero stays zero, whatever the conic and the opacity.
    ProjectedGrad g;
    g.mean2d = t.qd == vec2(0.0) ? t.qd : mean_gradient(form.xyz, t.qd);
    g.conic = vec3(0.5, 1.0, 0.5) * t.qdd;
    g.opacity = t.q == 0.0 ? 0.0 : -t.q / s_mean[at].z;
    g.color = t.color;
    v_slots[s_slot[at]] = g;
    if (ABSGRAD) v_abs_slots[s_slot[at]] = t.abs_mean2d;
}

// From the sums to the gradients of the splats of a round, eight lanes a splat.
void store_round(uint first, uint n) {
    for (uint i = raster_lane(); i < ROUND * 8u; i += RASTER_LANES) {
        uint j = i / 8u, task = i % 8u, at = first + j;
        if (at >= n) break;
        uint slot = s_slot[at];
        if (task == 0u) {
            // Zero stays zero, whatever the conic.
            vec2 qd = vec2(take_sum(j, SUM_X), take_sum(j, SUM_Y));
            v_slots[slot].mean2d = qd == vec2(0.0) ? qd : mean_gradient(s_form[at].xyz, qd);
            if (ABSGRAD) v_abs_slots[slot] = vec2(take_sum(j, SUM_ABS), take_sum(j, SUM_ABS + 1u));
        } else if (task <= 3u) {
            v_slots[slot].conic[task - 1u] = (task == 2u ? 1.0 : 0.5) * take_sum(j, task == 1u ? SUM_XX : task == 2u ? SUM_XY : SUM_YY);
        } else if (task == 4u) {
            // q = -alpha dL/dalpha, and alpha is the opacity times what opacity's gradient is made of.
            float q = take_sum(j, SUM_Q);
            v_slots[slot].opacity = q == 0.0 ? 0.0 : -q / s_mean[at].z;
        } else {
            v_slots[slot].color[task - 5u] = take_sum(j, task == 5u ? SUM_R : task == 6u ? SUM_G : SUM_B);
        }
    }
}

// Splats that no pixel of the tile reaches.
void store_zeros(uint first, uint n) {
    uint at = first + raster_lane();
    if (raster_lane() >= ROUND || at >= n) return;
    v_slots[s_slot[at]] = ProjectedGrad(vec2(0.0), vec3(0.0), 0.0, vec3(0.0));
    if (ABSGRAD) v_abs_slots[s_slot[at]] = vec2(0.0);
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
    if (!WHOLE_COLUMNS) clear_parts();
    barrier();
    Pixel pixels[LANE_PIXELS];
    for (uint p = 0u; p < LANE_PIXELS; p++) pixels[p] = load_pixel(v, corner, lane_pixel(lane, p), b, begin);
    uint last = 0u;
    for (uint p = 0u; p < LANE_PIXELS; p++) last = max(last, pixels[p].last);
    last = subgroupMax(last);
    if (gl_SubgroupInvocationID == 0u) atomicMax(s_last, last);     // of integers: the order does not matter
    vec2 centre = vec2(corner + lane_pixel(lane, 0u)) + 0.5;
    uint quadrants = own_quadrants();
    SumPlace place = sum_place();
    uint stop = min(end - begin, (b + 1u) * BUCKET_SIZE);
    for (uint batch = b * BUCKET_SIZE;;) {
        uint n = min(BATCH, stop - batch);
        for (uint i = 0u; i < LANE_SPLATS; i++) {
            uint at = lane + i * RASTER_LANES;
            if (at >= n) break;
            uint slot = slot_from_isect[begin + batch + at];
            s_slot[at] = slot;
            store_splat(at, projected[splat_from_slot[slot]], vec2(corner));
        }
        barrier();
        for (uint first = 0u;;) {
            if (batch + first >= s_last) {
                store_zeros(first, n);
            } else {
                if (WHOLE_COLUMNS) sum_round_columns(pixels, centre, first, n, batch + first, quadrants, last);
                else if (batch + first < last) sum_round(pixels, centre, first, n, batch + first, quadrants, place);
                barrier();
                if (WHOLE_COLUMNS) store_columns(first, n);
                else store_round(first, n);
                barrier();
            }
            first += ROUND;
            if (first >= n) break;
        }
        barrier();
        batch += BATCH;
        if (batch >= stop) break;
    }
}
