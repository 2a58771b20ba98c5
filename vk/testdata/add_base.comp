#version 460
#extension GL_EXT_scalar_block_layout : require
// Adds each part's base, the exclusive sum of the totals before it.
layout(local_size_x = 256) in;
layout(scalar, set = 0, binding = 0) readonly buffer Bases { uint bases[]; };
layout(scalar, set = 0, binding = 1) buffer Out { uint sums[]; };
layout(push_constant, scalar) uniform Push { uint n; };

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint i = group * 256 + gl_LocalInvocationID.x;
    if (i < n) sums[i] += bases[group];
}
