#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// settle returns from a view's splats to this device's: it says where the gradients of each view's packet lie, and sets
// the numbers of its splats and of all. Packets of devices that failed fail the unit.
//   reads params headers; reads and writes counters; writes first_of
// One invocation.
#include "params.glsl"

layout(local_size_x = 1) in;

layout(push_constant, scalar) uniform Push {
    uint n_devices;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };                   // [N_COUNTERS]
layout(binding = 2, scalar) readonly buffer Headers { PacketHeader headers[]; };    // [n_devices]
// [n_devices + 1], ends with the number of all
layout(binding = 3, scalar) writeonly buffer FirstOf { uint first_of[]; };
#include "prefix.glsl"

void main() {
    check_headers(pc.n_devices);
    set_first_of(pc.n_devices);
    uint total = 0u;
    for (uint i = 0u; i < pc.n_devices; i++) total += headers[i].splats;
    counters[N_TOTAL] = total;
    counters[N_ACTIVE] = counters[FAILED] == 0u ? counters[N_SPLATS] : 0u;
}
