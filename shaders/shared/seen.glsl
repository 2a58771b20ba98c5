// Which of two kernels steps a splat: project_bwd_adam those of a workgroup that the view sees any of, adam_unseen the
// others. Splats lie in order of space, so most workgroups are seen as a whole or not at all.
#ifndef SEEN_GLSL
#define SEEN_GLSL

shared uint s_seen;

// Whether the view sees a splat of the workgroup. All of it must call this, once.
bool group_sees(bool seen) {
    if (gl_LocalInvocationID.x == 0u) s_seen = 0u;
    barrier();
    if (seen) s_seen = 1u;
    barrier();
    return s_seen != 0u;
}

#endif
