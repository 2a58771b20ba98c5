// Decoupled look-back (Merrill and Garland 2016): workgroups take numbered blocks of the data from a ticket, so that
// the blocks before one's own are done or being worked on; each publishes its block's sum, then the sum of all blocks
// up to its own, and adds up what the blocks before it have published. This waits for other workgroups and needs a
// device on which a workgroup that has begun goes on whatever the others do.
//
// A published word is its state in the upper two bits and a sum below, so that no order of memory accesses matters: 0
// is nothing yet.
#ifndef LOOKBACK_GLSL
#define LOOKBACK_GLSL

const uint LOOK_VALUE = 0x3FFFFFFFu;    // the bits of the sum; larger sums stay at this
const uint LOOK_OWN = 0x40000000u;      // the sum of the block alone
const uint LOOK_ALL = 0x80000000u;      // the sum of the block and all before it

bool look_is_empty(uint word) { return word < LOOK_OWN; }
bool look_is_all(uint word) { return word >= LOOK_ALL; }

#endif
