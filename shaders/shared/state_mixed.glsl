// Parameters and moments in a chunk in mixed precision, for the optimiser (optimise.glsl). The includer declares chunk,
// pc.chunk_splats and pc.n_params, and includes its adam*.glsl before.
#ifndef STATE_MIXED_GLSL
#define STATE_MIXED_GLSL
#include "rows.glsl"
#include "philox.glsl"

void put(uint r, uint i, float x) { chunk[r * pc.chunk_splats + i] = floatBitsToUint(x); }

uvec2 rounding;     // random words of the splat and the step: for moments and for SH coefficients

void begin_splat(uint id) {
    rounding = philox(uvec4(id, params[0].step, DRAW_ROUNDING, 0u), uvec2(params[0].seed_lo, params[0].seed_hi)).xy;
}

// Steps the moments of parameter r, a word, and returns what to subtract from the parameter.
float adam(inout uint word, uint r, float g, float lr) {
    float m = first_moment(word), v = second_moment(word);
    float d = adam(m, v, g, lr);
    word = round_moments(m, v, row_bits(rounding.x, r));
    return d;
}

// Likewise for parameters r, r + 1 and r + 2.
vec3 adam(inout uvec3 words, uint r, vec3 g, float lr) {
    vec3 d;
    d.x = adam(words.x, r, g.x, lr);
    d.y = adam(words.y, r + 1u, g.y, lr);
    d.z = adam(words.z, r + 2u, g.z, lr);
    return d;
}

void put_word(uint r, uint i, uint w) { chunk[r * pc.chunk_splats + i] = w; }

void put_words(uint r, uint i, uvec3 w) {
    chunk[r * pc.chunk_splats + i] = w.x;
    chunk[(r + 1u) * pc.chunk_splats + i] = w.y;
    chunk[(r + 2u) * pc.chunk_splats + i] = w.z;
}

// SH coefficients and their moments' words.
struct Four {
    Sh4 sh;
    uvec3 moments[4];
};

Four load_four(uint k, uint i, bool all) {
    uint t = moment_row(pc.n_params) + ROW_SH + 3u * k;
    Sh4 sh = load_sh4(k, i, all);
    uvec3 none = uvec3(0u);
    if (!all) return Four(sh, uvec3[](load_words(t, i), none, none, none));
    return Four(sh, uvec3[](load_words(t, i), load_words(t + 3u, i), load_words(t + 6u, i), load_words(t + 9u, i)));
}

mat4x3 values(Four f) { return values(f.sh); }

uint rounded(uint r, float x) { return round_half(x, row_bits(rounding.y, r)); }
// Three coefficients from parameter r on as halves in upper bits.
uvec3 halves(uint r, vec3 x) { return uvec3(rounded(r, x.x), rounded(r + 1u, x.y), rounded(r + 2u, x.z)); }

#include "project_bwd.glsl"

void step_four(uint k, uint i, bool all, Four f, mat4x3 g, float lr_first, float lr) {
    uint r = ROW_SH + 3u * k, w = half_row(3u * k), t = moment_row(pc.n_params) + r;
    mat4x3 x = values(f);
    uvec3 c0 = halves(r, x[0] - adam(f.moments[0], r, g[0], lr_first));
    put_words(t, i, f.moments[0]);
    chunk[w * pc.chunk_splats + i] = pair(c0.x, c0.y);
    if (!all) {
        chunk[(w + 1u) * pc.chunk_splats + i] = pair(c0.z, f.sh.a.y);
        return;
    }
    uvec3 c1 = halves(r + 3u, x[1] - adam(f.moments[1], r + 3u, g[1], lr));
    put_words(t + 3u, i, f.moments[1]);
    chunk[(w + 1u) * pc.chunk_splats + i] = pair(c0.z, c1.x);
    chunk[(w + 2u) * pc.chunk_splats + i] = pair(c1.y, c1.z);
    uvec3 c2 = halves(r + 6u, x[2] - adam(f.moments[2], r + 6u, g[2], lr));
    put_words(t + 6u, i, f.moments[2]);
    uvec3 c3 = halves(r + 9u, x[3] - adam(f.moments[3], r + 9u, g[3], lr));
    put_words(t + 9u, i, f.moments[3]);
    put_words(w + 3u, i, uvec3(pair(c2.x, c2.y), pair(c2.z, c3.x), pair(c3.y, c3.z)));
}

#include "moment_words.glsl"

Moments load_moments(uint i) { return load_moment_words(moment_row(pc.n_params), i); }

Geometry step_moments(uint i, Moments m, Geometry g) {
    uint t = moment_row(pc.n_params);
    Geometry d = adam_words(m, g);
    put_moment_words(t, i, m);
    return d;
}

uint stat_row(uint stat) { return moment_row(pc.n_params) + pc.n_params + stat; }

#endif
