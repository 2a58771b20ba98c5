#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_commit makes the new number of splats the model's.
//   reads and writes counters
// One invocation.
#include "const.glsl"

layout(local_size_x = 1) in;

layout(binding = 0, scalar) buffer Counters { uint counters[]; };

void main() {
    if (counters[FAILED] == 0u && counters[N_ACTIVE] > 0u) counters[N_SPLATS] = counters[N_AFTER];
}
