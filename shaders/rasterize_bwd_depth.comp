#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// rasterize_bwd_depth is rasterize_bwd that also takes back the gradient by the sum of weight / depth: to what it takes
// the others to, and to the inverse of each splat's depth.
//   reads params tile_offsets slot_from_isect splat_from_slot shapes paints render last_ids states touched
//   v_render tile_from_bucket depth_keys depths
//   writes v_slots v_beside_slots
// One workgroup takes a bucket (see raster.glsl). Lanes keep their pixels' state in registers and go through the splats
// from front to back, as in the forward pass, past those that miss the list.
#define DEPTH
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
// [n_isects][3] absolute gradients of the mean, 0 without ABSGRAD; dL/d(1 / depth)
layout(binding = 13, scalar) writeonly buffer VBeside { vec3 v_beside_slots[]; };
layout(binding = 14, scalar) readonly buffer DepthKeys { uint depth_keys[]; };          // [N] bits of camera z
// [P][2] sum of weight / depth, dL/d(it); then [isects / BUCKET_SIZE][TILE_PIXELS] the former so far
layout(binding = 15, scalar) readonly buffer Depths { float depths[]; };
#include "rasterize_bwd.glsl"
