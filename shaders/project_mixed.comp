#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_mixed is project for a chunk in mixed precision.
//   reads params counters chunk; writes projected extents depth_keys
// One invocation a splat. What is written is the chunk's part of larger buffers.
#include "camera.glsl"
#include "sh.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"
#include "mixed.glsl"

layout(local_size_x = 128) in;  // SPLATS

layout(push_constant, scalar) uniform Push {
    uint first_id;      // id of the chunk's first splat
    uint chunk_splats;  // capacity of the chunk
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Chunk { uint chunk[]; };                // [rows][chunk_splats]: mixed.glsl
layout(binding = 3, scalar) writeonly buffer ProjectedB { float projected[]; };     // [chunk_splats][9], a Projected
layout(binding = 4, scalar) writeonly buffer Extents { float extents[]; };          // [chunk_splats][3] px
layout(binding = 5, scalar) writeonly buffer DepthKeys { uint depth_keys[]; };      // [chunk_splats]
#include "mixed_rows.glsl"
#include "project.glsl"
