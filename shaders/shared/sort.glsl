// What the kernels of a radix sort share. A pass sorts by one digit and is stable; keys lie in blocks of SORT_BLOCK,
// one block a workgroup. There are two ways, with the same result:
// - sort_histogram, sort_scan and sort_scatter for each digit (reduce-then-scan: no workgroup waits for another, so no
//   forward-progress guarantee is
//   needed; Harada and Howes 2011, Merrill and Grimshaw 2011);
// - sort_count for all digits at once, then sort_sweep for each (Adinets and Merrill 2022), where workgroups may wait
//   for each other.
#ifndef SORT_GLSL
#define SORT_GLSL
#include "const.glsl"
#include "dispatch.glsl"

uint sort_digit(uint key, uint shift, uint bits) {
    return (key >> shift) & ((1u << bits) - 1u);
}

// What a depth key is sorted by; see LEAST_DEPTH.
uint depth_order(uint key) {
    return min((max(key, LEAST_DEPTH) - LEAST_DEPTH) >> DEPTH_DROPPED, (1u << DEPTH_BITS) - 1u);
}

#endif
