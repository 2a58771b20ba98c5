#version 460
#extension GL_EXT_scalar_block_layout : require
// y = a*x + y.
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const float BIAS = 0.0;
layout(scalar, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(scalar, set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant, scalar) uniform Push { uint n; float a; };

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint i = group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (i < n) y[i] = a * x[i] + y[i] + BIAS;
}
