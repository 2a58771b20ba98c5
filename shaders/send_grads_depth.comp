#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// send_grads_depth is send_grads for steps that compare depth: absolute gradients and that by the inverse of the depth
// always go along.
//   reads params counters first_of paints v_projected v_beside; writes headers out_grads out_beside
#define DEPTH
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
const bool ABSGRAD = true;

layout(push_constant, scalar) uniform Push {
    uint index;         // of the device in first_of
    uint header_id;     // element of headers that is this packet's
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer FirstOf { uint first_of[]; };         // [number of devices + 1]
layout(binding = 3, scalar) readonly buffer Paints { float paints[]; };             // [V][4] opacity, colour
layout(binding = 4, scalar) readonly buffer VProjected { float v_projected[]; };  // [V][9], a ProjectedGrad
layout(binding = 5, scalar) readonly buffer VBeside { float v_beside[]; };          // [V][3]
layout(binding = 6, scalar) writeonly buffer Headers { PacketHeader headers[]; };
layout(binding = 7, scalar) writeonly buffer OutGrads { float out_grads[]; };       // [capacity][9]
layout(binding = 8, scalar) writeonly buffer OutBeside { float out_beside[]; };      // [capacity][3]
#define v_abs_mean2d v_beside
#define out_abs out_beside
#include "send_grads.glsl"
