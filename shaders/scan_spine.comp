#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// scan_spine turns block sums into exclusive prefix sums and stores the total. For isects it also checks that they fit:
// what does not fit fails the unit, loudly, and leaves it without isects.
//   reads params; reads and writes counters block_sums; writes dispatch_args
// One workgroup.
#include "params.glsl"
#include "dispatch.glsl"
#include "scan_group.glsl"

layout(local_size_x = 256) in;
// True when the values are tile counts: check the capacity and set the isects' dispatch arguments.
layout(constant_id = 1) const bool ISECTS = false;

layout(push_constant, scalar) uniform Push {
    uint count_slot;
    uint total_slot;    // slot of counters that receives the sum
    uint capacity;      // largest sum that fits
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
layout(binding = 2, scalar) buffer BlockSums { uint block_sums[]; };
layout(binding = 3, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };

#include "isects.glsl"

void main() {
    uint n_blocks = div_up(counters[pc.count_slot], SCAN_BLOCK);
    uint carry = 0u;
    bool overflow = false;
    for (uint base = 0u; base < n_blocks; base += GROUP) {
        uint i = base + gl_LocalInvocationID.x;
        uint v = i < n_blocks ? block_sums[i] : 0u;
        // The sum may pass 2^32 on a huge view; its upper half is summed apart to notice.
        uint total, high;
        uint before = group_exclusive_sum(v, total);
        group_exclusive_sum(v >> 16u, high);
        if (i < n_blocks) block_sums[i] = carry + before;
        overflow = overflow || high >= 0xFF00u || carry + total < carry;
        carry += total;
    }
    if (gl_LocalInvocationID.x != 0u) return;
    if (overflow) carry = 0xFFFFFFFFu;
    if (ISECTS) carry = set_isects(carry, pc.capacity);
    counters[pc.total_slot] = carry;
}
