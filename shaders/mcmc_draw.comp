#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_draw draws the splat that each copy is made of, with replacement, with probabilities proportional to the
// weights, and counts how often each is.
//   reads params counters weights hole_list; writes sources dispatch_args; reads and writes multiplicity
// One invocation a copy.
#include "params.glsl"
#include "dispatch.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint round;         // ROUND_*
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
// [N] exclusive sums, their total in N_WEIGHT
layout(binding = 2, scalar) readonly buffer Weights { uint weights[]; };
layout(binding = 3, scalar) readonly buffer HoleList { uint hole_list[]; };         // [n_holes] the dead
layout(binding = 4, scalar) writeonly buffer Sources { uint sources[]; };           // [copies]
layout(binding = 5, scalar) buffer Multiplicity { uint multiplicity[]; };           // [N]
layout(binding = 6, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };
#include "copies.glsl"

// The last splat whose sum is at most draw: its own weight is not 0.
uint find_source(uint draw, uint n) {
    uint low = 0u, high = n;
    while (high - low > 1u) {
        uint middle = low + (high - low) / 2u;
        if (weights[middle] <= draw) low = middle;
        else high = middle;
    }
    return low;
}

void main() {
    uint k = global_index();
    if (k == 0u) dispatch_args[ARGS_COPIES] = fold_groups(div_up(n_copies(pc.round), GROUP));
    if (k >= n_copies(pc.round) || counters[FAILED] != 0u) return;
    StepParams p = params[0];
    uint n = counters[N_ACTIVE];
    uint total = counters[N_WEIGHT];
    uint r = philox(uvec4(copy_home(pc.round, k), p.step, DRAW_SOURCE + pc.round, 0u), uvec2(p.seed_lo, p.seed_hi)).x;
    uint draw, low;
    umulExtended(r, total == 0u ? n : total, draw, low);
    uint source = total == 0u ? draw : find_source(draw, n);
    // Nothing that lives: the dead stay where they are, what is added comes from anywhere.
    if (total == 0u && pc.round == ROUND_RELOCATE) source = NO_SOURCE;
    sources[k] = source;
    if (source != NO_SOURCE) atomicAdd(multiplicity[source], 1u);
}
