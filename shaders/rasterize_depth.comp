#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// rasterize_depth is rasterize that also blends the inverse of the splats' depths, for steps that compare depth.
//   reads params tile_offsets tile_order slot_from_isect splat_from_slot shapes paints depth_keys; writes render
//   last_ids states touched tile_from_bucket depths
// One workgroup a tile (see raster.glsl). The next batch of splats is fetched while one is blended.
// variant handed: for processors, lanes hand splats round (raster.glsl)
#define DEPTH
#include "tiles.glsl"
#include "dispatch.glsl"

layout(local_size_x_id = 0, local_size_x = 256) in;
// False for pictures alone: nothing is kept for a backward pass.
layout(constant_id = 1) const bool KEEP_STATES = false;
layout(constant_id = 2) const uint SUBGROUP_SIZE = 32u;
// Not a specialization constant: NVIDIA's compiler makes the kernel 4 to 9 % faster if it sees no shuffles (580.159).
#ifdef HANDED
const bool HAND_ROUND = true;
#else
const bool HAND_ROUND = false;
#endif
// Splats go to all patches, whether they touch them or not: for tests, since it must change no byte.
layout(constant_id = 3) const bool ALL_PATCHES = false;
// Of pictures that are larger than memory: `render` holds the band's rows alone.
layout(constant_id = 4) const bool BAND_ALONE = false;
layout(constant_id = 5) const uint BUCKET_SIZE = 64u;
layout(constant_id = 6) const bool PACKED_STATES = false;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
const uint BATCH = gl_WorkGroupSize.x;                          // a splat a lane
const bool SPREAD = false;
const uint PIECE = SUBGROUP_SIZE < TOUCH_BITS ? SUBGROUP_SIZE : TOUCH_BITS;
#include "raster.glsl"
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
layout(binding = 5, scalar) readonly buffer Paints { vec4 paints[]; };                  // [N] opacity, colour
// [P] colour with background, final transmittance
layout(binding = 6, scalar) writeonly buffer Render { vec4 render[]; };
// [P] a number of isects of the tile: those in front of it that cover the pixel are blended, those from it on are not
layout(binding = 7, scalar) writeonly buffer LastIds { uint last_ids[]; };
// [isects / BUCKET_SIZE][TILE_PIXELS][2] colour so far, transmittance; [1] with PACKED_STATES (states.glsl)
layout(binding = 8, scalar) writeonly buffer States { uvec2 states[]; };
// [isects / TOUCH_BITS + n_tiles][PATCHES] bit k: that patch is touched by isect k of 32
layout(binding = 9, scalar) writeonly buffer Touched { uint touched[]; };
// [isects / BUCKET_SIZE + n_tiles]
layout(binding = 10, scalar) writeonly buffer Buckets { uint tile_from_bucket[]; };
layout(binding = 11, scalar) readonly buffer Order { uint tile_order[]; };              // [n_tiles]
layout(binding = 12, scalar) readonly buffer DepthKeys { uint depth_keys[]; };          // [N] bits of camera z
// [P][2] sum of weight / depth, not written; then [isects / BUCKET_SIZE][TILE_PIXELS] the former so far
layout(binding = 13, scalar) writeonly buffer Depths { float depths[]; };
#include "rasterize.glsl"
