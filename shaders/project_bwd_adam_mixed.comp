#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_bwd_adam_mixed is project_bwd_adam for a chunk in mixed precision. Arithmetic is in float32; only what is stored is rounded, at random, so that
// on average nothing is lost.
//   reads params counters depth_keys v_projected v_abs_mean2d; reads and writes chunk
// One invocation a splat of one chunk.
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
// The statistic is of absolute gradients (Ye et al. 2024).
layout(constant_id = 1) const bool ABSGRAD = false;
// Means are moved at random after the step (Kheradmand et al. 2024, equation 8).
layout(constant_id = 2) const bool NOISE = false;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // parameters P
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };                // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };               // [N]
layout(binding = 3, scalar) readonly buffer VProjected { ProjectedGrad v_projected[]; };    // [N]
layout(binding = 4, scalar) buffer Chunk { uint chunk[]; };                                 // [rows][chunk_splats]: mixed.glsl
layout(binding = 5, scalar) readonly buffer VAbs { vec2 v_abs_mean2d[]; };                  // [N] with ABSGRAD; else not read
#include "mixed_rows.glsl"

uvec2 rounding;     // random words of the splat and the step: for moments and for SH coefficients
uint sh_word;       // the word of the SH coefficient that put() had last

void begin_splat(uint id) {
    rounding = philox(uvec4(id, params[0].step, DRAW_ROUNDING, 0u), uvec2(params[0].seed_lo, params[0].seed_hi)).xy;
}

// Steps the moments of parameter r and returns what to subtract from the parameter.
float adam(uint r, uint i, float g, float lr) {
    uint at = (moment_row(pc.n_params) + r) * pc.chunk_splats + i;
    uint word = chunk[at];
    float m = ADAM_BETA1 * first_moment(word) + (1.0 - ADAM_BETA1) * g;
    float v = ADAM_BETA2 * second_moment(word) + (1.0 - ADAM_BETA2) * (g * g);
    uint random = row_bits(rounding.x, r);
    chunk[at] = round_bfloat(m, random & 0xFFFFu) | round_bfloat(v, random >> 16) << 16;
    return lr * params[0].inv_bias1 * m / (sqrt(v) * params[0].inv_sqrt_bias2 + ADAM_EPS);
}

void add(uint at, float x) { chunk[at] = floatBitsToUint(uintBitsToFloat(chunk[at]) + x); }

// SH coefficients come in ascending order: a word is read with its lower half and written with its upper, or with the last of those that are trained.
void put(uint r, uint i, float g, float lr) {
    if (r < ROW_SH) {
        add(r * pc.chunk_splats + i, -adam(r, i, g, lr));
        return;
    }
    uint j = r - ROW_SH;
    uint at = half_row(j) * pc.chunk_splats + i;
    int shift = int(j & 1u) * 16;
    if (shift == 0) sh_word = chunk[at];
    float x = half_value(bitfieldExtract(sh_word, shift, 16)) - adam(r, i, g, lr);
    sh_word = bitfieldInsert(sh_word, round_half(x, row_bits(rounding.y, r) >> 16), shift, 16);
    uint trained = 3u * (params[0].view.sh_degree + 1u) * (params[0].view.sh_degree + 1u);
    if (shift != 0 || j + 1u == trained) chunk[at] = sh_word;
}
uint stat_row(uint stat) { return moment_row(pc.n_params) + pc.n_params + stat; }
#include "optimise.glsl"
