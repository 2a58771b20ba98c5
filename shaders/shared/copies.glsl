// The copies of a round of an MCMC refinement. The includer declares counters and hole_list.
#ifndef COPIES_GLSL
#define COPIES_GLSL
#include "const.glsl"

uint n_copies(uint round) { return round == ROUND_RELOCATE ? counters[N_HOLES] : counters[N_NEW_ALLOWED]; }

// Where copy k goes: in the place of a dead splat, or behind the last.
uint copy_home(uint round, uint k) { return round == ROUND_RELOCATE ? hole_list[k] : counters[N_ACTIVE] + k; }

#endif
