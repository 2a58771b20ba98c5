// Workgroup numbering for grids folded into x and y, and indirect arguments of the same folding.
#ifndef DISPATCH_GLSL
#define DISPATCH_GLSL

// The linear number of this workgroup. Grids may be a little larger than asked; kernels check the bound.
uint group_index() {
    return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

// The linear number of this invocation, for one-dimensional workgroups. A macro, because gl_WorkGroupSize means
// something only after the kernel's layout declaration; a function included before it would silently see 1.
#define global_index() (group_index() * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

// The grid of at least n workgroups with no side above 65535, the smallest maxComputeWorkGroupCount a device may have.
uvec3 fold_groups(uint n) {
    return n <= 65535u ? uvec3(n, 1u, 1u) : uvec3(32768u, (n + 32767u) / 32768u, 1u);
}

// False for NaN and infinities, whatever a compiler thinks of comparisons with NaN.
bool is_finite(float x) {
    return (floatBitsToUint(x) & 0x7F800000u) != 0x7F800000u;
}

uint div_up(uint n, uint d) {
    return (n + d - 1u) / d;
}

#endif
