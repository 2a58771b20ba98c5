#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// track_errors takes what a step found of its squares into the history. The photo's earlier opinion of the places that
// it sees is forgotten in a first dispatch, its new one is noted in a second. Whole numbers and bits, so that no order
// changes a byte.
//   reads params counters places errors; reads and writes history
// An invocation a square. A failed unit changes nothing.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint note;  // 0: forget, and add the errors; 1: note
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Places { uint places[]; };          // [n_tiles][TILE_SQUARES]
layout(binding = 3, scalar) readonly buffer Errors { uint errors[]; };          // [n_tiles][TILE_SQUARES]
layout(binding = 4, scalar) buffer History { uint history[]; };                 // [HISTORY_WORDS]

shared uint s_sum, s_n;

void main() {
    View v = params[0].view;
    if (counters[FAILED] != 0u) return;
    uint lid = gl_LocalInvocationID.x, square = global_index();
    bool some = square < v.tile_width * v.tile_height * TILE_SQUARES && errors[square] != NO_SQUARE;
    uint place = some ? places[square] : 0u, e = some ? errors[square] : 0u;
    uint own = 1u << params[0].view_id % PHOTO_BITS;
    if (pc.note != 0u) {
        if (some && (e & SQUARE_AGREES) != 0u) atomicOr(history[place], own);
        if (some && (e & SQUARE_DIFFERS) != 0u) atomicOr(history[place], own << PHOTO_BITS);
        if (square < 2u) history[square] -= history[square] / ERROR_MEMORY;
        return;
    }
    if (lid == 0u) s_sum = s_n = 0u;
    barrier();
    if (some) {
        atomicAnd(history[place], ~(own | own << PHOTO_BITS));
        atomicAdd(s_sum, e & ~(SQUARE_AGREES | SQUARE_DIFFERS));
        atomicAdd(s_n, 1u);
    }
    barrier();
    if (lid == 0u && s_n > 0u) {
        atomicAdd(history[0], s_sum);
        atomicAdd(history[1], s_n);
    }
}
