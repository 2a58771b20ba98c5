// Sums over the 256 invocations of a workgroup, three vectors at a time, by a fixed binary tree.
shared vec4 s_sum[3 * 256];     // [3][256]

// Leaves the sums of x[0..2] in s_sum[0], s_sum[256] and s_sum[512]. Every invocation calls it.
void sum_lanes(vec4 x[3]) {
    uint lid = gl_LocalInvocationID.x;
    barrier();  // what was summed before has been read
    for (uint i = 0u; i < 3u; i++) s_sum[256u * i + lid] = x[i];
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size)
            for (uint i = 0u; i < 3u; i++) s_sum[256u * i + lid] += s_sum[256u * i + lid + half_size];
    }
    barrier();
}
