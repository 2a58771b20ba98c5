#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// rasterize_bwd: gradients of each (tile, splat) pair, summed over the tile's pixels in row-major order (after the per-splat backward passes of
// Mallick et al. 2024 and Durvasula et al. 2023, without atomics).
//   reads params counters tile_offsets slot_from_isect splat_from_slot projected render last_ids states v_render tile_from_bucket; writes v_slots v_abs_slots
// One workgroup of one subgroup takes a bucket. Each lane owns one pair; the pixels' states pass from lane to lane like goods on a belt: at tick t
// lane l handles pixel t - l, after the splats in front of it have. Narrower subgroups need more rounds and do the same sums.
#include "params.glsl"
#include "blend.glsl"
#include "dispatch.glsl"

layout(local_size_x_id = 0, local_size_x = 32) in;
layout(constant_id = 1) const uint SUBGROUP_SIZE = 32u;
// Also sum the absolute values of the mean's gradient over pixels, each component by itself (Ye et al. 2024).
layout(constant_id = 2) const bool ABSGRAD = false;

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

shared vec3 s_v[TILE_PIXELS];           // dL/d(rgb)
shared vec2 s_state[TILE_PIXELS];       // transmittance; what lies behind, dotted with dL/d(rgb)
shared uint s_last[TILE_PIXELS];

// Loads the state of the tile's pixels at the start of bucket b and returns the largest last_id this lane saw.
uint load_pixels(View v, uint tile, uint b, uint begin) {
    uvec2 corner = uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE;
    uint last_max = 0u;
    for (uint p = gl_SubgroupInvocationID; p < TILE_PIXELS; p += SUBGROUP_SIZE) {
        uvec2 pixel = corner + uvec2(p % TILE_SIZE, p / TILE_SIZE);
        uint last = 0u;
        if (pixel.x < v.width && pixel.y < v.height) {
            uint at = pixel.y * v.width + pixel.x;
            last = last_ids[at];
            vec4 out_color = render[at];
            vec4 g = v_render[at];
            // Before any splat: nothing blended, all light passes.
            vec4 state = vec4(0.0, 0.0, 0.0, 1.0);
            if (b > 0u && last > b * BUCKET_SIZE) state = states[(begin / BUCKET_SIZE + b - 1u) * TILE_PIXELS + p];
            s_v[p] = g.rgb;
            s_state[p] = vec2(state.w, dot(out_color.rgb - state.rgb, g.rgb) - out_color.w * g.a);
        }
        s_last[p] = last;
        last_max = max(last_max, last);
    }
    return last_max;
}

// One splat at one pixel: adds to the gradient, moves the state past the splat.
void accumulate(Projected s, vec2 d, uint p, inout vec2 state, inout ProjectedGrad g, inout vec2 abs_mean2d) {
    float falloff;
    float raw = splat_alpha(d, s.conic, s.opacity, falloff);
    if (raw == 0.0) return;
    float alpha = min(MAX_ALPHA, raw);
    vec3 v = s_v[p];
    float weight = alpha * state.x;
    float cv = dot(s.color, v);
    g.color += weight * v;
    state.y -= weight * cv;
    precise float next = state.x * (1.0 - alpha);
    // dC/dalpha = T c - (what lies behind) / (1 - alpha); none flows where the ceiling holds.
    if (raw <= MAX_ALPHA) {
        float v_alpha = state.x * cv - state.y / (1.0 - alpha);
        float v_sigma = -alpha * v_alpha;
        g.opacity += falloff * v_alpha;
        g.conic += v_sigma * vec3(0.5 * d.x * d.x, d.x * d.y, 0.5 * d.y * d.y);
        vec2 v_mean2d = v_sigma * vec2(s.conic.x * d.x + s.conic.y * d.y, s.conic.y * d.x + s.conic.z * d.y);
        g.mean2d += v_mean2d;
        if (ABSGRAD) abs_mean2d += abs(v_mean2d);
    }
    state.x = next;
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
    uint lane = gl_SubgroupInvocationID;
    uint last_max = subgroupMax(load_pixels(v, tile, b, begin));
    uint stop = min(end - begin, (b + 1u) * BUCKET_SIZE);
    vec2 corner = vec2(uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE) + 0.5;
    barrier();
    for (uint first = b * BUCKET_SIZE; first < stop; first += SUBGROUP_SIZE) {
        uint k = first + lane;      // index within the tile
        bool owns = k < stop;
        uint slot = owns ? slot_from_isect[begin + k] : 0u;
        ProjectedGrad g = ProjectedGrad(vec2(0.0), vec3(0.0), 0.0, vec3(0.0));
        vec2 abs_mean2d = vec2(0.0);
        if (first < last_max) {
            Projected s;
            if (owns) s = projected[splat_from_slot[slot]];
            vec2 state = vec2(0.0);
            for (uint t = 0u; t < TILE_PIXELS + SUBGROUP_SIZE - 1u; t++) {
                state = subgroupShuffle(state, max(lane, 1u) - 1u);
                uint p = t - lane;
                bool on_belt = p < TILE_PIXELS;     // p wraps to a huge number before the lane's first pixel
                if (lane == 0u && on_belt) state = s_state[p];
                if (on_belt && owns && k < s_last[p])
                    accumulate(s, s.mean2d - (corner + vec2(p % TILE_SIZE, p / TILE_SIZE)), p, state, g, abs_mean2d);
                if (lane == SUBGROUP_SIZE - 1u && on_belt) s_state[p] = state;
            }
            barrier();
        }
        if (owns) v_slots[slot] = g;
        if (ABSGRAD && owns) v_abs_slots[slot] = abs_mean2d;
    }
}
