#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// verify looks for elements of a buffer that break what later passes rely on, and keeps the number of the first
// (VKSPLAT_VERIFY=1 alone).
//   reads params counters data index; reads and writes marks found
// One invocation an element, in turns.
#include "params.glsl"
#include "sort.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint mode;          // VERIFY_*
    uint count;         // elements: a slot of counters, or COUNT_*
    uint stride;        // words of an element; of rows the splats of a chunk
    // rows: first splat of the chunk; VERIFY_DISTINCT, VERIFY_OFFSETS: slot of counters with the bound or total
    uint bound;
    uint check;         // number of this check in found
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Data { uint data[]; };
// VERIFY_*_AT: [count]; VERIFY_GROUPS: offsets
layout(binding = 3, scalar) readonly buffer Index { uint index[]; };
layout(binding = 4, scalar) buffer Marks { uint marks[]; };                     // VERIFY_DISTINCT: [bound], 0 at first
// [checks] the first element that is wrong, CULLED if none
layout(binding = 5, scalar) buffer Found { uint found[]; };

// What a slot of counters, or COUNT_*, stands for.
uint number(uint what) {
    View v = params[0].view;
    if (what == COUNT_PIXELS) return v.width * v.height;
    if (what == COUNT_TILES) return v.tile_width * v.tile_height;
    return counters[what];
}

bool finite_element(uint e) {
    for (uint k = 0u; k < pc.stride; k++)
        if (!is_finite(uintBitsToFloat(data[e * pc.stride + k]))) return false;
    return true;
}

// A word of a row: a float, or two halves or bfloat16 where the mode says so.
bool finite_word(uint word) {
    if (pc.mode == VERIFY_FINITE_ROWS) return is_finite(uintBitsToFloat(word));
    uint exponent = pc.mode == VERIFY_FINITE_HALVES ? 0x7C00u : 0x7F80u;
    return (word & exponent) != exponent && (word >> 16 & exponent) != exponent;
}

// A row is a parameter or a moment; splat e of the model lies in column e - bound of every row.
bool finite_column(uint e) {
    if (e < pc.bound || e - pc.bound >= pc.stride) return true;
    for (uint at = e - pc.bound; at < data.length(); at += pc.stride)
        if (!finite_word(data[at])) return false;
    return true;
}

bool good(uint e, uint n) {
    switch (pc.mode) {
    case VERIFY_FINITE: return finite_element(e);
    case VERIFY_FINITE_AT: return finite_element(index[e]);
    case VERIFY_FINITE_ROWS:
    case VERIFY_FINITE_HALVES:
    case VERIFY_FINITE_BFLOATS: return finite_column(e);
    case VERIFY_SORTED: return e + 1u == n || data[e] <= data[e + 1u];
    case VERIFY_SORTED_AT:
        return data[index[e]] != CULLED &&
            (e + 1u == n || depth_order(data[index[e]]) <= depth_order(data[index[e + 1u]]));
    case VERIFY_DISTINCT: return data[e] < number(pc.bound) && atomicAdd(marks[data[e]], 1u) == 0u;
    case VERIFY_OFFSETS: return data[e] <= data[e + 1u] && (e > 0u || data[0] == 0u) &&
            (e + 1u < n || data[n] == number(pc.bound));
    case VERIFY_GROUPS: return index[data[e]] <= e && e < index[data[e] + 1u];
    }
    return false;
}

void main() {
    if (counters[FAILED] != 0u) return;
    uint n = number(pc.count);
    uint step_size = gl_NumWorkGroups.x * gl_NumWorkGroups.y * 256u;
    for (uint e = global_index(); e < n; e += step_size)
        if (!good(e, n)) atomicMin(found[pc.check], e);
}
