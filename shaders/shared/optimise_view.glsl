// What an invocation of project_bwd_adam does, whatever the storage of the model: see optimise.glsl and splat_bwd.glsl.
#ifndef OPTIMISE_VIEW_GLSL
#define OPTIMISE_VIEW_GLSL
#include "optimise.glsl"
#include "seen.glsl"
#include "splat_bwd.glsl"

void add_statistics(uint id, uint i) {
    uint r = stat_row(STAT_GRAD2D);
    vec2 v_mean2d = ABSGRAD ? v_abs_mean2d[id].xy : v_projected[id].mean2d;
    float sum = row(r, i), count = row(r + 1u, i);
    put(r, i, sum + grad2d(v_mean2d, 0u));
    put(r + 1u, i, count + 1.0);
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    uint n = counters[N_ACTIVE], failed = counters[FAILED];
    bool exists = i < pc.chunk_splats && id < n && failed == 0u;
    bool seen = exists && depth_keys[id] != CULLED;
    if (UNSEEN_APART && !group_sees(seen) || !exists) return;
    begin_step(id);
    Penalty penalty = penalty_of(n);
    if (seen) add_statistics(id, i);
    splat_bwd(i, id, seen, penalty);
}

#endif
