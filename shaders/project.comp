#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project culls every splat of one chunk and projects the rest to the image (Kerbl et al. 2023, section 4;
// antialiasing: Yu et al. 2024).
//   reads params counters chunk; writes shapes paints depth_keys
// One invocation a splat. What is written is the chunk's part of larger buffers.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#include "camera.glsl"
#include "sh.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"
#include "word.glsl"

layout(local_size_x = 128) in;  // SPLATS

layout(push_constant, scalar) uniform Push {
    uint first_id;      // id of the chunk's first splat
    uint chunk_splats;  // capacity of the chunk
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Chunk { WORD chunk[]; };                // [rows][chunk_splats]
layout(binding = 3, scalar) writeonly buffer Shapes { vec4 shapes[]; };             // [chunk_splats][2], a Shape
layout(binding = 4, scalar) writeonly buffer Paints { vec4 paints[]; };             // [chunk_splats] opacity, colour
layout(binding = 5, scalar) writeonly buffer DepthKeys { uint depth_keys[]; };      // [chunk_splats]
#include "rows.glsl"
#include "project_chunk.glsl"
