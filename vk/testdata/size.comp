#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_KHR_shader_subgroup_basic : require
// Writes the size of an indirect dispatch of 64 invocations per workgroup for count items, and the subgroup size.
layout(local_size_x = 64) in;
layout(constant_id = 7) const uint SUBGROUP_SIZE = 32;
layout(scalar, set = 0, binding = 0) readonly buffer Count { uint count; };
layout(scalar, set = 0, binding = 1) writeonly buffer Size { uint groups[3]; uint subgroup; uint expected; };

void main() {
    if (gl_LocalInvocationID.x > 0) return;
    groups[0] = (count + 63) / 64;
    groups[1] = 1;
    groups[2] = 1;
    subgroup = gl_SubgroupSize;
    expected = SUBGROUP_SIZE;
}
