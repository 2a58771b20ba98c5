// How a unit fails: something did not fit. The includer declares params and counters, which one invocation alone writes
// here.
#ifndef FAIL_GLSL
#define FAIL_GLSL
#include "params.glsl"

// Fails the unit; needed is what there was no room for, 0 where that is not the reason.
void fail(uint reason, uint needed) {
    if (counters[FAILED] == 0u) counters[FAILED_UNIT] = params[0].unit;
    counters[FAILED] |= reason;
    counters[NEEDED] = max(counters[NEEDED], needed);
}

#endif
