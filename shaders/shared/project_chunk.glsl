// project and project_lens: the splats of a chunk.
#ifndef PROJECT_CHUNK_GLSL
#define PROJECT_CHUNK_GLSL
#include "project.glsl"

void main() {
    uint first = global_index() - gl_LocalInvocationID.x;   // the workgroup's first splat
    uint n = pc.first_id < counters[N_ACTIVE] ? min(counters[N_ACTIVE] - pc.first_id, pc.chunk_splats) : 0u;
    if (first < n) project_group(first, n, first);
}

#endif
