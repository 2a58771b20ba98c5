#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#include "body.glsl"
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0, scalar) writeonly buffer Bodies { Body bodies[]; };
void main() { bodies[gl_LocalInvocationIndex].mass = 0.0; }
