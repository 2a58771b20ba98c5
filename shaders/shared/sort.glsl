// What the three kernels of a radix sort pass share (reduce-then-scan: no workgroup waits for another, so no forward-progress guarantee is
// needed; Harada and Howes 2011, Merrill and Grimshaw 2011). A pass sorts by `bits` bits from `shift` on and is stable.
// Keys lie in blocks of SORT_BLOCK, one block a workgroup.
#ifndef SORT_GLSL
#define SORT_GLSL
#include "const.glsl"
#include "dispatch.glsl"

uint sort_digit(uint key, uint shift, uint bits) {
    return bitfieldExtract(key, int(shift), int(bits));
}

#endif
