#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reduce_slots_depth is reduce_slots for steps that compare depth: beside the nine components there always are the
// absolute gradients and that by the inverse of the depth.
//   reads params counters splat_from_rank first_isect shapes v_slots v_beside_slots; reads and writes
//   v_projected v_beside
#define DEPTH
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
const bool ABSGRAD = true;

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
layout(binding = 7, scalar) readonly buffer VBesideSlots { float v_beside_slots[]; };   // [n_isects][3]
layout(binding = 8, scalar) buffer VBeside { float v_beside[]; };                       // [N][3]
#define v_abs_slots v_beside_slots
#define v_abs_mean2d v_beside
#include "reduce_slots.glsl"
