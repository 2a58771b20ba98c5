#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// rasterize_bwd: gradients of each (tile, splat) pair, summed over the tile's pixels, without atomics (see
// patch_sum.glsl for the order).
//   reads params tile_offsets slot_from_isect splat_from_slot shapes paints render last_ids states touched
//   v_render tile_from_bucket
//   writes v_slots v_abs_slots
// One workgroup takes a bucket (see raster.glsl). Lanes keep their pixels' state in registers and go through the splats
// from front to back, as in the forward pass, past those that miss the list.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x_id = 0, local_size_x = 64) in;
layout(constant_id = 1) const uint SUBGROUP_SIZE = 32u;
// Also sum the absolute values of the mean's gradient over pixels, each component by itself (Ye et al. 2024).
layout(constant_id = 2) const bool ABSGRAD = false;
layout(constant_id = 3) const bool HAND_ROUND = false;
layout(constant_id = 4) const uint BUCKET_SIZE = 64u;
layout(constant_id = 5) const bool PACKED_STATES = false;
const bool SPREAD = HAND_ROUND ? false : true;     // tools/shadergen knows no negation
const bool ALL_PATCHES = false;
// Splats in shared memory at once: as many as a word of `touched` has bits.
const uint BATCH = TOUCH_BITS;
// Splats whose sums are there at once. The less memory, the more workgroups a GPU runs side by side, and their number
// decides how fast this kernel is; on processors barriers cost more. Narrow subgroups leave more parts.
const uint ROUND = (HAND_ROUND ? 32u : 16u) / (SUBGROUP_SIZE < 8u ? 2u : 1u);
const uint PIECE = SUBGROUP_SIZE < ROUND ? SUBGROUP_SIZE : ROUND;
#include "raster.glsl"
#include "patch_sum.glsl"

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
layout(binding = 5, scalar) readonly buffer Paints { vec4 paints[]; };                  // [N] opacity, colour
layout(binding = 6, scalar) readonly buffer Render { vec4 render[]; };                  // [P]
layout(binding = 7, scalar) readonly buffer LastIds { uint last_ids[]; };               // [P]
// [isects / BUCKET_SIZE][TILE_PIXELS][2], [1] with PACKED_STATES
layout(binding = 8, scalar) readonly buffer States { uvec2 states[]; };
// [isects / TOUCH_BITS + n_tiles][PATCHES]
layout(binding = 9, scalar) readonly buffer Touched { uint touched[]; };
layout(binding = 10, scalar) readonly buffer VRender { vec4 v_render[]; };              // [P] dL/d(rgb, alpha)
layout(binding = 11, scalar) readonly buffer Buckets { uint tile_from_bucket[]; };
// [n_isects][9], a ProjectedGrad
layout(binding = 12, scalar) writeonly buffer VSlots { float v_slots[]; };
// [n_isects] with ABSGRAD; else not written
layout(binding = 13, scalar) writeonly buffer VAbs { vec2 v_abs_slots[]; };
#include "rasterize_bwd.glsl"
