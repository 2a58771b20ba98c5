#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reorder_back copies rows that reorder_out has put in order into one chunk.
//   reads counters moved; writes chunk
// One invocation a splat.
#include "const.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint capacity;      // of the model, splats
    uint row;           // the first one
    uint n_rows;
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Moved { uint moved[]; };    // [n_rows][capacity]
layout(binding = 2, scalar) writeonly buffer Chunk { uint chunk[]; };   // [rows][chunk_splats]

void main() {
    uint i = global_index(), id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    for (uint r = 0u; r < pc.n_rows; r++) chunk[(pc.row + r) * pc.chunk_splats + i] = moved[r * pc.capacity + id];
}
