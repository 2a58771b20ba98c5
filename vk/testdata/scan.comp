#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
// Exclusive prefix sum of each workgroup's part, for any subgroup size from 4 to 64, and the part's total.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SUBGROUP_SIZE = 32;
layout(scalar, set = 0, binding = 0) readonly buffer In { uint values[]; };
layout(scalar, set = 0, binding = 1) writeonly buffer Out { uint sums[]; };
layout(scalar, set = 0, binding = 2) writeonly buffer Totals { uint totals[]; };
layout(push_constant, scalar) uniform Push { uint n; };
shared uint part[64];

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint i = group * 256 + gl_LocalInvocationID.x;
    uint v = i < n ? values[i] : 0;
    uint before = subgroupExclusiveAdd(v);
    uint n_parts = 256 / SUBGROUP_SIZE;
    if (gl_SubgroupInvocationID == SUBGROUP_SIZE - 1) part[gl_SubgroupID] = before + v;
    barrier();
    uint base = 0, total = 0;
    for (uint k = 0; k < n_parts; k++) {
        if (k < gl_SubgroupID) base += part[k];
        total += part[k];
    }
    if (i < n) sums[i] = base + before;
    if (gl_LocalInvocationID.x == 0 && group * 256 < n) totals[group] = total;
}
