#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reduce_slots sums the gradients of each visible splat over its tiles: in the order of its slots where it touches at
// most MANY_SLOTS tiles of the image, else along each row of tiles from left to right, then the rows from top to
// bottom. Neither order knows of bands, which come one after the other and continue the sums, so a view in one band or
// in many gives the same.
//   reads params counters splat_from_rank first_isect shapes v_slots v_abs_slots; reads and writes
//   v_projected v_abs_mean2d
// A workgroup takes REDUCE_RANKS splats and an invocation one of the nine components of one of them, so that neighbours
// read neighbouring words. A splat with many slots is then done by all, an invocation taking a component of a row. Near
// splats are large and come first in the order of depth: a workgroup's splats are runs of four from all over it.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// Absolute gradients of the mean are summed beside the others.
layout(constant_id = 1) const bool ABSGRAD = false;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; };         // [V]
layout(binding = 3, scalar) readonly buffer First { uint first_isect[]; };              // [V]
layout(binding = 4, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
// [n_isects][9], a ProjectedGrad
layout(binding = 5, scalar) readonly buffer VSlots { float v_slots[]; };
layout(binding = 6, scalar) buffer VProjected { float v_projected[]; };                 // [N][9]
// [n_isects][2] with ABSGRAD; else not read
layout(binding = 7, scalar) readonly buffer VAbsSlots { float v_abs_slots[]; };
// [N][2] with ABSGRAD; else not touched
layout(binding = 8, scalar) buffer VAbs { float v_abs_mean2d[]; };
#include "reduce_slots.glsl"
