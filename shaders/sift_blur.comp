#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
// sift_blur convolves the rows of a plane with a Gaussian, and transposes it: twice is a blurred plane. Pixels beyond
// the border are as those at it.
//   reads plane; writes blurred
// variant processor: an invocation makes 32 pixels of a row, for processors, on which every access to memory is dear
// The other: a workgroup makes LENGTH pixels of LINES rows, an invocation four of a row at a time.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 256) in;

const uint MOST_RADIUS = 13u;
const uint LINES = 32u;
const uint LENGTH = 96u;
const uint LOADED = LENGTH + 2u * MOST_RADIUS + 1u;     // odd, so that rows begin in different banks of shared memory

layout(push_constant, scalar) uniform Push {
    uint width;
    uint rows;
    uint pitch;
    uint blurred_pitch;
    uint radius;        // at most MOST_RADIUS
    float weights[17];  // of pixels so far away, 0 beyond the radius
} pc;
layout(binding = 0, scalar) readonly buffer Plane { float plane[]; };       // [rows][pitch]
layout(binding = 1, scalar) writeonly buffer Blurred { float blurred[]; };  // [width][blurred_pitch]

#ifdef PROCESSOR

layout(constant_id = 0) const uint RADIUS = MOST_RADIUS;    // pc.radius, at least 1

const uint OWN = 32u;   // pixels of a row that an invocation makes

void main() {
    uint i = global_index(), y = i % pc.rows, first = i / pc.rows * OWN;
    if (first >= pc.width) return;
    float sum[OWN];
    [[unroll]] for (uint j = 0u; j < OWN; j++) sum[j] = 0.0;
    [[unroll]] for (uint k = 0u; k < OWN + 2u * RADIUS; k++) {
        int x = clamp(int(first + k) - int(RADIUS), 0, int(pc.width) - 1);
        float v = plane[y * pc.pitch + uint(x)];
        [[unroll]] for (uint j = 0u; j < OWN; j++)
            if (j <= k && k - j <= 2u * RADIUS) sum[j] += v * pc.weights[abs(int(k - j) - int(RADIUS))];
    }
    [[unroll]] for (uint j = 0u; j < OWN; j++)
        if (first + j < pc.width) blurred[(first + j) * pc.blurred_pitch + y] = sum[j];
}

#else

shared float s_pixel[LINES * LOADED];

void load(uvec2 first) {
    uint lid = gl_LocalInvocationID.x;
    for (uint y = lid / 32u; y < LINES; y += 8u)
        for (uint x = lid % 32u; x < LENGTH + 2u * pc.radius; x += 32u) {
            uvec2 from = uvec2(max(int(first.x + x) - int(pc.radius), 0), first.y + y);
            from = min(from, uvec2(pc.width, pc.rows) - 1u);
            s_pixel[y * LOADED + x] = plane[from.y * pc.pitch + from.x];
        }
}

void main() {
    uint across = div_up(pc.width, LENGTH), line = gl_LocalInvocationID.x % LINES;
    uvec2 first = uvec2(group_index() % across * LENGTH, group_index() / across * LINES);
    if (first.y >= pc.rows) return;
    load(first);
    barrier();
    for (uint x = gl_LocalInvocationID.x / LINES * 4u; x < LENGTH; x += 32u) {
        vec4 sum = vec4(0.0), weight = vec4(0.0);
        for (uint k = 0u; k < 2u * pc.radius + 4u; k++) {
            weight = vec4(pc.weights[abs(int(k) - int(pc.radius))], weight.xyz);
            sum += s_pixel[line * LOADED + x + k] * weight;
        }
        for (uint k = 0u; k < 4u; k++)
            if (first.x + x + k < pc.width && first.y + line < pc.rows)
                blurred[(first.x + x + k) * pc.blurred_pitch + first.y + line] = sum[k];
    }
}

#endif
