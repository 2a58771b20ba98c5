// Where the packets of several devices begin, one behind the other. The includer declares params, counters, headers and
// first_of, and includes fail.glsl.
#ifndef PREFIX_GLSL
#define PREFIX_GLSL
#include "fail.glsl"

// Fails the unit if the sender of a packet failed or has not come to this unit.
void check_headers(uint n) {
    bool peer = false;
    for (uint i = 0u; i < n; i++) peer = peer || headers[i].failed != 0u || headers[i].unit != params[0].unit;
    if (peer) fail(FAILED_PEER, 0u);
}

// The records of n packets. A sum beyond 2^32 - 1 is that.
uint count_records(uint n) {
    uint total = 0u;
    for (uint i = 0u; i < n; i++) total = headers[i].n > 0xFFFFFFFFu - total ? 0xFFFFFFFFu : total + headers[i].n;
    return total;
}

// Sets first_of, [n + 1]; to zeros after a failure.
void set_first_of(uint n) {
    bool failed = counters[FAILED] != 0u;
    uint at = 0u;
    for (uint i = 0u; i <= n; i++) {
        first_of[i] = at;
        if (i < n && !failed) at += headers[i].n;
    }
}

#endif
