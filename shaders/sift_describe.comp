#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
// sift_describe makes the descriptors of points: histograms of 8 directions of the gradients in 4 x 4 squares around
// them (Lowe 2004, section 6), whose roots of shares are stored (Arandjelovic and Zisserman 2012).
//   reads points angles levels runs; writes descriptors
// variant processor: an invocation an angle, for processors, on which atomic additions are dear
// The other: a workgroup an angle of a point.
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

#ifdef PROCESSOR
uint sum[6u * 6u * 8u];     // with squares around, which do not count
#define ADD(column, row, direction, x) sum[((row) * 6 + (column) + 7) * 8 + (direction)] += x
#else
shared uint s_sum[NUMBERS];
shared float s_number[NUMBERS];
shared float s_tree[64];
#define ADD(column, row, direction, x) atomicAdd(s_sum[(row) * 32 + (column) * 8 + (direction)], x)
#endif

// Shares a gradient out among the bins around it: at is in squares from the point, turn in directions.
void add(vec2 at, float turn, float weight) {
    vec3 bin = vec3(at - 0.5, turn), low = floor(bin), share = bin - low;
    ivec3 first = ivec3(low);
    for (int k = 0; k < 8; k++) {
        ivec3 up = ivec3(k, k >> 1, k >> 2) & 1, to = first + up + ivec3(2, 2, 0);
#ifndef PROCESSOR
        if (any(lessThan(to.xy, ivec2(0))) || any(greaterThan(to.xy, ivec2(3)))) continue;
#endif
        vec3 w = mix(1.0 - share, share, bvec3(up));
        ADD(to.x, to.y, -to.z & 7, uint(weight * w.x * w.y * w.z));
    }
}

#ifdef PROCESSOR

shared uint s_given[2];     // a bit for each angle of the workgroup that there is
shared uint s_angle[64];    // those, in order

// The pixels of a row, at dy from the point, that may be less than 2.5 squares away: first and last from the point.
vec2 reach_of(vec2 axis, float dy) {
    vec2 slope = mix(axis, vec2(1e-6), lessThan(abs(axis), vec2(1e-6)));
    vec2 middle = vec2(-axis.y, axis.x) * dy / slope, reach = 2.5 / abs(slope);
    return vec2(max(middle.x - reach.x, middle.y - reach.y), min(middle.x + reach.x, middle.y + reach.y));
}

void add_gradients(SiftPoint p, float angle) {
    float side = SQUARE * sigma_of(p.level), far = sqrt(2.0) * side * 2.5;
    vec2 axis = vec2(cos(angle), sin(angle)) / side;
    int first_row = max(1, int(pc.band.first) + 1);
    int last_row = int(min(pc.band.height, pc.band.first + pc.band.rows)) - 2;
    int y = max(int(floor(p.y - far)), first_row) - 1, end = min(int(ceil(p.y + far)), last_row);
    for (int x = 1, last = 0; x <= last || y < end; x++) {
        if (x > last) {     // each invocation begins its next row when it has done one
            y++;
            vec2 reach = clamp(p.x + reach_of(axis, float(y) - p.y), 0.0, float(pc.band.width));
            x = max(int(reach.x), 1);
            last = min(int(ceil(reach.y)), int(pc.band.width) - 2);
        }
        vec2 d = vec2(x, y) - vec2(p.x, p.y), at = vec2(dot(axis, d), axis.x * d.y - axis.y * d.x);
        if (x > last || max(abs(at.x), abs(at.y)) >= 2.5) continue;
        vec2 g = gradient_at(ivec2(x, y), p.nearest);
        float turn = g.y - angle;
        turn = turn < 0.0 ? turn + TAU : turn;
        add(at, turn * (8.0 / TAU), SIFT_ONE * g.x * exp(-dot(at, at) / 8.0));
    }
}

void main() {
    uint lid = gl_LocalInvocationID.x, slot = global_index(), first = 2u * runs[pc.run].first;
    if (lid < 2u) s_given[lid] = 0u;
    barrier();
    bool given = slot < 2u * runs[pc.run].n && angles[first + slot] >= 0.0;
    if (given) atomicOr(s_given[lid / 32u], 1u << lid % 32u);
    barrier();
    uint half_n = bitCount(s_given[0]), rank = bitCount(s_given[lid / 32u] & (1u << lid % 32u) - 1u);
    if (given) s_angle[lid < 32u ? rank : half_n + rank] = first + slot;
    barrier();
    if (lid >= half_n + bitCount(s_given[1])) return;
    uint i = s_angle[lid];
    [[unroll]] for (uint k = 0u; k < sum.length(); k++) sum[k] = 0u;
    add_gradients(points[i / 2u], angles[i]);
    float square = 0.0, total = 0.0, number[NUMBERS];
    [[unroll]] for (uint k = 0u; k < NUMBERS; k++) {
        number[k] = float(sum[(k / 32u * 6u + k / 8u % 4u + 7u) * 8u + k % 8u]) / SIFT_ONE;
        square += number[k] * number[k];
    }
    float norm = sqrt(square);
    [[unroll]] for (uint k = 0u; k < NUMBERS; k++) {
        number[k] = norm > 0.0 ? min(number[k] / norm, MOST) : 0.0;
        total += number[k];
    }
    [[unroll]] for (uint w = 0u; w < 32u; w++) {
        uint word = 0u;
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            float share = total > 0.0 ? sqrt(number[4u * w + k] / total) : 0.0;
            word |= uint(min(floor(512.0 * share + 0.5), 255.0)) << 8u * k;
        }
        descriptors[32u * i + w] = word;
    }
}

#else

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

#endif
