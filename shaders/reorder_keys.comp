#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reorder_keys gives each splat of one chunk its place along a Z-order curve through space (Morton 1966): splats near
// each other on the curve are near each other in space, and mostly in a picture.
//   reads counters chunk; writes reorder_keys
// One invocation a splat. A key has 10 bits an axis, of which bit k is bit 3 k + axis of the key. The training frame
// has the cameras about the origin, half of them within 1 of it, so cells are fine there and coarse beyond.
#include "const.glsl"
#include "dispatch.glsl"
#include "model_rows.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Chunk { float chunk[]; };               // [rows][chunk_splats]
layout(binding = 2, scalar) writeonly buffer ReorderKeys { uint reorder_keys[]; };  // [N] below 2^30

const float NEAR = 2.0;         // up to here cells are 1 / 192 wide, beyond 1 / 4
const float NEAR_CELLS = 192.0; // in 1
const float FAR_CELLS = 4.0;

// The cell of a coordinate, 0 to 1023. Each operation rounds once, and alike on every device: no product enters a sum.
uint cell(float x) {
    if (!is_finite(x)) return 1023u;
    float far = abs(x), near = min(far, NEAR) * NEAR_CELLS;
    far = (far - NEAR) * FAR_CELLS;
    uint cells = uint(near) + uint(clamp(far, 0.0, 511.0 - NEAR * NEAR_CELLS));
    // the sign bit, since a comparison may take a denormal for zero
    return (floatBitsToUint(x) & 0x80000000u) != 0u ? 511u - cells : 512u + cells;
}

// Bit k of a number below 2^10 at bit 3 k.
uint spread(uint x) {
    x = (x | x << 16u) & 0x030000FFu;
    x = (x | x << 8u) & 0x0300F00Fu;
    x = (x | x << 4u) & 0x030C30C3u;
    return (x | x << 2u) & 0x09249249u;
}

void main() {
    uint i = global_index(), id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE]) return;
    uint key = 0u;
    for (uint axis = 0u; axis < 3u; axis++)
        key |= spread(cell(chunk[(ROW_MEANS + axis) * pc.chunk_splats + i])) << axis;
    reorder_keys[id] = key;
}
