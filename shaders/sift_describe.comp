#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// sift_describe makes the descriptors of points: histograms of 8 directions of the gradients in 4 x 4 squares around
// them (Lowe 2004, section 6), whose roots of shares are stored (Arandjelovic and Zisserman 2012).
//   reads points angles levels runs; writes descriptors
// A workgroup an angle of a point.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    SiftBand band;
    uint run;
} pc;
layout(binding = 0, scalar) readonly buffer Points { SiftPoint points[]; };             // [n]
layout(binding = 1, scalar) readonly buffer Angles { float angles[]; };                 // [n][2] -1: none
layout(binding = 2, scalar) readonly buffer Levels { float levels[]; };                 // [SIFT_LEVELS][rows][pitch]
layout(binding = 3, scalar) writeonly buffer Descriptors { uint descriptors[]; };       // [n][2][32] bytes
layout(binding = 4, scalar) readonly buffer Runs { SiftRun runs[]; };                   // [bands]

#include "sift_gradient.glsl"

const uint NUMBERS = 128u;      // [4 rows][4 columns][8 directions], against the angle, as in COLMAP's
const float SQUARE = 3.0;       // side, in standard deviations
const float MOST = 0.2;         // of a number, when their squares add up to 1

shared uint s_sum[NUMBERS];
shared float s_number[NUMBERS];
shared float s_tree[64];

// Shares a gradient out among the bins around it: at is in squares from the point, turn in directions.
void add(vec2 at, float turn, float weight) {
    vec3 bin = vec3(at - 0.5, turn), low = floor(bin), share = bin - low;
    ivec3 first = ivec3(low);
    for (int k = 0; k < 8; k++) {
        ivec3 up = ivec3(k, k >> 1, k >> 2) & 1, to = first + up + ivec3(2, 2, 0);
        if (any(lessThan(to.xy, ivec2(0))) || any(greaterThan(to.xy, ivec2(3)))) continue;
        vec3 w = mix(1.0 - share, share, bvec3(up));
        atomicAdd(s_sum[to.y * 32 + to.x * 8 + (-to.z & 7)], uint(weight * w.x * w.y * w.z));
    }
}

void add_gradients(SiftPoint p, float angle) {
    float side = SQUARE * sigma_of(p.level);
    int radius = int(sqrt(2.0) * side * 2.5 + 0.5), width = 2 * radius + 1;
    ivec2 middle = ivec2(floor(vec2(p.x, p.y) + 0.5));
    vec2 axis = vec2(cos(angle), sin(angle)) / side;
    for (int i = int(gl_LocalInvocationID.x); i < width * width; i += 64) {
        ivec2 pixel = middle + ivec2(i % width, i / width) - radius;
        vec2 d = vec2(pixel) - vec2(p.x, p.y), at = vec2(dot(axis, d), axis.x * d.y - axis.y * d.x);
        if (!has_gradient(pixel) || max(abs(at.x), abs(at.y)) >= 2.5) continue;
        vec2 g = gradient_at(pixel, p.nearest);
        float turn = g.y - angle;
        turn = turn < 0.0 ? turn + TAU : turn;
        add(at, turn * (8.0 / TAU), SIFT_ONE * g.x * exp(-dot(at, at) / 8.0));
    }
}

// The sum of x over the workgroup.
float sum_of(float x) {
    uint lid = gl_LocalInvocationID.x;
    barrier();
    s_tree[lid] = x;
    for (uint half_size = 32u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) s_tree[lid] += s_tree[lid + half_size];
    }
    barrier();
    return s_tree[0];
}

void main() {
    uint lid = gl_LocalInvocationID.x, i = 2u * runs[pc.run].first + group_index();
    if (group_index() >= 2u * runs[pc.run].n || angles[i] < 0.0) return;
    s_sum[lid] = 0u;
    s_sum[lid + 64u] = 0u;
    barrier();
    add_gradients(points[i / 2u], angles[i]);
    barrier();
    vec2 v = vec2(s_sum[lid], s_sum[lid + 64u]) / SIFT_ONE;
    float norm = sqrt(sum_of(dot(v, v)));
    v = norm > 0.0 ? min(v / norm, MOST) : vec2(0.0);
    float total = sum_of(v.x + v.y);
    v = total > 0.0 ? sqrt(v / total) : vec2(0.0);
    s_number[lid] = v.x;
    s_number[lid + 64u] = v.y;
    barrier();
    if (lid >= 32u) return;
    uint word = 0u;
    for (uint k = 0u; k < 4u; k++)
        word |= uint(min(floor(512.0 * s_number[4u * lid + k] + 0.5), 255.0)) << 8u * k;
    descriptors[32u * i + lid] = word;
}
