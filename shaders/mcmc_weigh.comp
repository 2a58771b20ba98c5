#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_weigh gives every splat of one chunk its share of the draws: the opacity in fixed point, rounded up or down at
// random so that it is right on average however few bits there are. In the round of relocation the dead, of at most
// prune_opacity or no numbers, have none and are marked to go.
//   reads params counters chunk; writes actions hole_offset (as flags) weights (summed next) multiplicity
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
// The chunk is in mixed precision: mixed.glsl.
layout(constant_id = 1) const bool MIXED = false;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint round;         // ROUND_*
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Chunk { float chunk[]; };                   // [rows][chunk_splats]
// [N] ACTION_PRUNE where a splat is dead
layout(binding = 3, scalar) writeonly buffer Actions { uint actions[]; };
layout(binding = 4, scalar) writeonly buffer Holes { uint hole_offset[]; };             // [N] 1 there
layout(binding = 5, scalar) writeonly buffer Weights { uint weights[]; };               // [N] the sum is below 2^31
layout(binding = 6, scalar) writeonly buffer Multiplicity { uint multiplicity[]; };     // [N] times drawn: 0 so far

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
#include "finite.glsl"

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    uint n = counters[N_ACTIVE];
    if (i >= pc.chunk_splats || id >= n) return;
    StepParams p = params[0];
    float opacity = 1.0 / (1.0 + exp(-row(ROW_LOGIT_OPACITIES, i)));
    bool dead = !is_finite_splat(i) || pc.round == ROUND_RELOCATE && opacity <= p.prune_opacity;
    // Bits for which even n opacities of 1 sum up to less than 2^31. Scaling by a power of two is exact, so is the
    // fraction.
    float fixed_opacity = ldexp(opacity, min(24, 30 - findMSB(n)));
    float whole = floor(fixed_opacity);
    uint r = philox(uvec4(id, p.step, DRAW_WEIGHT + pc.round, 0u), uvec2(p.seed_lo, p.seed_hi)).x;
    bool up = float(r >> 8u) * 5.9604644775390625e-8 < fixed_opacity - whole;
    actions[id] = dead ? ACTION_PRUNE : ACTION_KEEP;
    hole_offset[id] = dead ? 1u : 0u;
    weights[id] = dead ? 0u : uint(whole) + (up ? 1u : 0u);
    multiplicity[id] = 0u;
}
