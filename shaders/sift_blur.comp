#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// sift_blur convolves the rows or the columns of a plane with a Gaussian. Pixels beyond the border are as those at it.
//   reads plane; writes blurred
// A workgroup makes 96 pixels of 32 rows, or of 32 columns.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 1) const bool VERTICAL = false;

const uint MOST_RADIUS = 13u;
const uint LINES = 32u;
const uint LENGTH = 96u;
const uint LOADED = LENGTH + 2u * MOST_RADIUS;

layout(push_constant, scalar) uniform Push {
    uint width;
    uint rows;
    uint pitch;
    uint radius;        // at most MOST_RADIUS
    float weights[14];  // of pixels so far away
} pc;
layout(binding = 0, scalar) readonly buffer Plane { float plane[]; };       // [rows][pitch]
layout(binding = 1, scalar) writeonly buffer Blurred { float blurred[]; };  // likewise

shared float s_pixel[LINES * LOADED];   // [LINES][LOADED], or [LOADED][LINES] where VERTICAL

// Neighbouring invocations have neighbouring pixels of a row: of i, the place along a line and the line.
uvec2 place(uint i, uint n) {
    return VERTICAL ? uvec2(i / LINES, i % LINES) : uvec2(i % n, i / n);
}

uint slot(uint along, uint line) {
    return VERTICAL ? along * LINES + line : line * LOADED + along;
}

void main() {
    uint lid = gl_LocalInvocationID.x, n = LENGTH + 2u * pc.radius;
    uvec2 size = VERTICAL ? uvec2(pc.rows, pc.width) : uvec2(pc.width, pc.rows);
    uint tiles = div_up(size.x, LENGTH);
    uvec2 first = uvec2(group_index() % tiles * LENGTH, group_index() / tiles * LINES);
    if (first.y >= size.y) return;
    for (uint i = lid; i < n * LINES; i += 256u) {
        uvec2 at = place(i, n);
        uvec2 from = min(uvec2(max(int(first.x + at.x) - int(pc.radius), 0), first.y + at.y), size - 1u);
        s_pixel[slot(at.x, at.y)] = plane[VERTICAL ? from.x * pc.pitch + from.y : from.y * pc.pitch + from.x];
    }
    barrier();
    for (uint i = lid; i < LENGTH * LINES; i += 256u) {
        uvec2 at = place(i, LENGTH), to = first + at;
        if (to.x >= size.x || to.y >= size.y) continue;
        uint middle = at.x + pc.radius;
        float sum = pc.weights[0] * s_pixel[slot(middle, at.y)];
        for (uint k = 1u; k <= pc.radius; k++)
            sum += pc.weights[k] * (s_pixel[slot(middle - k, at.y)] + s_pixel[slot(middle + k, at.y)]);
        blurred[VERTICAL ? to.x * pc.pitch + to.y : to.y * pc.pitch + to.x] = sum;
    }
}
