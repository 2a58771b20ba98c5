#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reorder_out copies some rows of one chunk, parameters, moments or statistics alike, to the ranks of its splats.
//   reads counters rank_from_splat chunk; writes moved
// One invocation a splat: reads lie side by side, and so do writes, mostly, once the model has been in order.
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
layout(binding = 1, scalar) readonly buffer Ranks { uint rank_from_splat[]; };  // [N]
layout(binding = 2, scalar) readonly buffer Chunk { uint chunk[]; };            // [rows][chunk_splats]
layout(binding = 3, scalar) writeonly buffer Moved { uint moved[]; };           // [n_rows][capacity]

void main() {
    uint i = global_index(), id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE]) return;
    uint rank = rank_from_splat[id];
    for (uint r = 0u; r < pc.n_rows; r++) moved[r * pc.capacity + rank] = chunk[(pc.row + r) * pc.chunk_splats + i];
}
