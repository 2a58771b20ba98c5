// What the two kernels that move keys share. The includer declares counters and dispatch_args, RADIX, and s_rank, where
// each subgroup has a run of RADIX words: how many keys of a digit it has met so far.
#ifndef SORT_PASS_GLSL
#define SORT_PASS_GLSL
#include "sort.glsl"

// Rank of this lane's key among the keys of the same digit that the subgroup met so far, in key order.
uint subgroup_rank(uint digit, uint bits, bool valid) {
    uvec4 same = subgroupBallot(valid);
    for (uint b = 0u; b < bits; b++) {
        bool bit = ((digit >> b) & 1u) != 0u;
        uvec4 ones = subgroupBallot(valid && bit);
        same &= bit ? ones : ~ones;
    }
    uint leader = subgroupBallotFindLSB(same);
    uint at = gl_SubgroupID * RADIX + digit;
    uint before = 0u;
    if (valid && gl_SubgroupInvocationID == leader) {
        before = s_rank[at];
        s_rank[at] = before + subgroupBallotBitCount(same);
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    before = subgroupShuffle(before, valid ? leader : 0u);
    return before + subgroupBallotExclusiveBitCount(same);
}

// After the depth sort's first pass: n keys are left.
void set_visible(uint n) {
    counters[N_VISIBLE] = n;
    dispatch_args[ARGS_SORT_VISIBLE] = fold_groups(div_up(n, SORT_BLOCK));
    dispatch_args[ARGS_VISIBLE] = fold_groups(div_up(n, GROUP));
    dispatch_args[ARGS_REDUCE] = fold_groups(div_up(n, REDUCE_RANKS));
    dispatch_args[ARGS_SCAN_VISIBLE] = fold_groups(div_up(n, SCAN_BLOCK));
}

#endif
