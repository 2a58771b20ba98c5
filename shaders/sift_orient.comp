#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// sift_orient finds the directions in which most gradients around a point look (Lowe 2004, section 5): the two
// strongest, of which the second has at least 0.8 of the first.
//   reads points levels runs; writes angles
// A workgroup a point.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    SiftBand band;
    uint run;
} pc;
layout(binding = 0, scalar) readonly buffer Points { SiftPoint points[]; };     // [n]
layout(binding = 1, scalar) readonly buffer Levels { float levels[]; };         // [SIFT_LEVELS][rows][pitch]
layout(binding = 2, scalar) writeonly buffer Angles { vec2 angles[]; };         // [n] radians, -1: no second one
layout(binding = 3, scalar) readonly buffer Runs { SiftRun runs[]; };           // [bands]

#include "sift_gradient.glsl"

const uint BINS = 36u;
const uint SMOOTHINGS = 6u;
const float SECOND = 0.8;   // of the highest peak

shared uint s_sum[BINS];
shared float s_histogram[2][BINS];

void add_gradients(SiftPoint p) {
    float sigma = 1.5 * sigma_of(p.level);
    int radius = max(int(3.0 * sigma), 1), side = 2 * radius + 1;
    ivec2 middle = ivec2(floor(vec2(p.x, p.y) + 0.5));
    for (int i = int(gl_LocalInvocationID.x); i < side * side; i += 64) {
        ivec2 at = middle + ivec2(i % side, i / side) - radius;
        vec2 d = vec2(at) - vec2(p.x, p.y);
        if (!has_gradient(at) || dot(d, d) >= float(radius * radius) + 0.6) continue;
        vec2 g = gradient_at(at, p.nearest);
        float weight = SIFT_ONE * g.x * exp(-dot(d, d) / (2.0 * sigma * sigma));
        float bin = g.y * (float(BINS) / TAU) - 0.5, low = floor(bin), share = bin - low;
        uint k = uint(int(low) + int(BINS));
        atomicAdd(s_sum[k % BINS], uint(weight * (1.0 - share)));
        atomicAdd(s_sum[(k + 1u) % BINS], uint(weight * share));
    }
}

// The peaks of a histogram, and where they are.
vec2 peaks(uint from) {
    vec2 height = vec2(0.0), angle = vec2(-1.0);
    for (uint i = 0u; i < BINS; i++) {
        float h = s_histogram[from][i];
        float before = s_histogram[from][(i + BINS - 1u) % BINS], after = s_histogram[from][(i + 1u) % BINS];
        if (!(h > before && h > after && h > height.y)) continue;
        float at = float(i) + 0.5 - 0.5 * (after - before) / (after + before - 2.0 * h);
        at = at < 0.0 ? at + float(BINS) : at;
        float turn = at * (TAU / float(BINS));
        if (h > height.x) {
            height = vec2(h, height.x);
            angle = vec2(turn, angle.x);
        } else {
            height.y = h;
            angle.y = turn;
        }
    }
    if (height.y < SECOND * height.x) angle.y = -1.0;
    return angle;
}

void main() {
    uint lid = gl_LocalInvocationID.x, i = runs[pc.run].first + group_index(), from = 0u;
    if (group_index() >= runs[pc.run].n) return;
    if (lid < BINS) s_sum[lid] = 0u;
    barrier();
    add_gradients(points[i]);
    barrier();
    if (lid < BINS) s_histogram[0][lid] = float(s_sum[lid]);
    for (uint k = 0u; k < SMOOTHINGS; k++) {
        barrier();
        if (lid < BINS)
            s_histogram[1u - from][lid] = (s_histogram[from][(lid + BINS - 1u) % BINS] + s_histogram[from][lid] +
                s_histogram[from][(lid + 1u) % BINS]) * (1.0 / 3.0);
        from = 1u - from;
    }
    barrier();
    if (lid == 0u) angles[i] = peaks(from);
}
