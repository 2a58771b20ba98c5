#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "body.glsl"
layout(local_size_x_id = 0, local_size_x = 64) in;
layout(constant_id = 2) const uint PER_LANE = 4u;

// A grid of cells, each with its own bodies.
struct Cell {
    Body bodies[3];
    float weights[2][5];
};
layout(binding = 0, scalar) readonly buffer Cells { Cell cells[]; };
// Totals of one run.
layout(binding = 1, scalar) buffer Totals {
    float mass[4];   // kg
    Cell first;
    uint n;
};
layout(binding = 2, scalar) buffer Scratch { vec2 scratch[]; };

shared float partial[gl_WorkGroupSize.x * PER_LANE / 2];
shared Body kept[2];

void main() {
    uint i = gl_LocalInvocationID.x;
    float m = subgroupAdd(cells[gl_GlobalInvocationID.x].bodies[1].mass) * cells[0].weights[1][2];
    partial[i] = m;
    if (i < 2) kept[i] = cells[0].bodies[i];
    barrier();
    mass[0] = partial[(i + 1) % gl_WorkGroupSize.x] + kept[0].mass;
    first = cells[i];
    n += 1;
    scratch[i] = vec2(PER_LANE);
}
