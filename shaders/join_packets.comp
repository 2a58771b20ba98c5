#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// join_packets makes the splats of all packets of a view those that the unit works on: it says where each packet's go,
// sets their number, and the dispatch arguments anew. More than there is room for, and packets of devices that failed,
// fail the unit; then it is empty.
//   reads params headers; reads and writes counters; writes dispatch_args first_of
// One invocation.
#include "params.glsl"

layout(local_size_x = 1) in;

layout(push_constant, scalar) uniform Push {
    uint n_devices;
    uint capacity;      // splats that there is room for
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };                   // [N_COUNTERS]
layout(binding = 2, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };        // [N_ARGS]
layout(binding = 3, scalar) readonly buffer Headers { PacketHeader headers[]; };    // [n_devices]
// [n_devices + 1], ends with the number of all
layout(binding = 4, scalar) writeonly buffer FirstOf { uint first_of[]; };
#include "prefix.glsl"
#include "args.glsl"

void main() {
    check_headers(pc.n_devices);
    uint n = count_records(pc.n_devices);
    if (n > pc.capacity) fail(FAILED_VIEW, n);
    bool failed = counters[FAILED] != 0u;
    if (failed) n = 0u;
    set_first_of(pc.n_devices);
    counters[N_ACTIVE] = n;
    set_args(n, failed);
}
