// Parameters and moments in a chunk of float32, for the optimiser (optimise.glsl). The includer declares chunk,
// pc.chunk_splats and pc.n_params, and includes its adam*.glsl before.
#ifndef STATE_GLSL
#define STATE_GLSL
#include "const.glsl"
#include "rows.glsl"

void put(uint r, uint i, float x) { chunk[r * pc.chunk_splats + i] = x; }

// SH coefficients, one a column.
struct Four {
    mat4x3 x, m, v;
};

// Four rows of three, or the first three.
mat4x3 load_columns(uint r, uint i, bool all) {
    if (!all) return mat4x3(row3(r, i), vec3(0.0), vec3(0.0), vec3(0.0));
    return mat4x3(row3(r, i), row3(r + 3u, i), row3(r + 6u, i), row3(r + 9u, i));
}

Four load_four(uint k, uint i, bool all) {
    uint r = ROW_SH + 3u * k;
    return Four(load_columns(r, i, all), load_columns(r + pc.n_params, i, all),
                load_columns(r + 2u * pc.n_params, i, all));
}

mat4x3 values(Four four) { return four.x; }

#include "project_bwd.glsl"
#include "adam_geometry.glsl"

void step_column(uint r, uint i, vec3 x, vec3 m, vec3 v, vec3 g, float lr) {
    x -= adam(m, v, g, lr);
    put3(r, i, x);
    put3(r + pc.n_params, i, m);
    put3(r + 2u * pc.n_params, i, v);
}

void step_four(uint k, uint i, bool all, Four four, mat4x3 g, float lr_first, float lr) {
    uint r = ROW_SH + 3u * k;
    step_column(r, i, four.x[0], four.m[0], four.v[0], g[0], lr_first);
    if (!all) return;
    step_column(r + 3u, i, four.x[1], four.m[1], four.v[1], g[1], lr);
    step_column(r + 6u, i, four.x[2], four.m[2], four.v[2], g[2], lr);
    step_column(r + 9u, i, four.x[3], four.m[3], four.v[3], g[3], lr);
}

struct Moments {
    Geometry m, v;
};

Moments load_moments(uint i) { return Moments(load_geometry(pc.n_params, i), load_geometry(2u * pc.n_params, i)); }

Geometry step_moments(uint i, Moments t, Geometry g) {
    Geometry d = adam_geometry(t.m, t.v, g);
    put_geometry(pc.n_params, i, t.m);
    put_geometry(2u * pc.n_params, i, t.v);
    return d;
}

uint stat_row(uint stat) { return 3u * pc.n_params + stat; }
void begin_splat(uint id) {}

#endif
