#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// send_grads fills a packet with the gradients of the splats that came from one device, for that device. Where the
// colour is clamped its gradient is 0: the device no longer has the colour.
//   reads params counters first_of paints v_projected v_abs_mean2d; writes headers out_grads out_abs
// One workgroup COPY_BLOCK words of out_grads; there are enough for the largest packet, and always a first, which
// writes the header.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// Absolute gradients go along.
layout(constant_id = 1) const bool ABSGRAD = false;

layout(push_constant, scalar) uniform Push {
    uint index;         // of the device in first_of
    uint header_id;     // element of headers that is this packet's
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer FirstOf { uint first_of[]; };         // [number of devices + 1]
layout(binding = 3, scalar) readonly buffer Paints { float paints[]; };           // [V][4] opacity, colour
layout(binding = 4, scalar) readonly buffer VProjected { float v_projected[]; };  // [V][9], a ProjectedGrad
layout(binding = 5, scalar) readonly buffer VAbs { float v_abs_mean2d[]; };       // [V][2] with ABSGRAD; else not read
layout(binding = 6, scalar) writeonly buffer Headers { PacketHeader headers[]; };
layout(binding = 7, scalar) writeonly buffer OutGrads { float out_grads[]; };       // [capacity][9]
// [capacity][2] with ABSGRAD; else not written
layout(binding = 8, scalar) writeonly buffer OutAbs { float out_abs[]; };
#include "send_grads.glsl"
