#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reorder_ranks turns the sorted order round: from the splat of each rank to the rank of each splat.
//   reads counters splat_from_rank; writes rank_from_splat
// One invocation a rank.
#include "const.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Splats { uint splat_from_rank[]; };     // [N]
layout(binding = 2, scalar) writeonly buffer Ranks { uint rank_from_splat[]; };     // [N]

void main() {
    uint rank = global_index();
    if (rank < counters[N_ACTIVE]) rank_from_splat[splat_from_rank[rank]] = rank;
}
