#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_lens is project for a camera whose lens bends its picture, or that moves while its rows are read out.
//   reads params counters chunk lens; writes shapes paints depth_keys
// One invocation a splat. What is written is the chunk's part of larger buffers.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#define LENS
#include "params.glsl"
#include "dispatch.glsl"
#include "word.glsl"

layout(local_size_x = 128) in;  // SPLATS
// The camera moves while its rows are read out.
layout(constant_id = 3) const bool SHUTTER = false;

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
layout(binding = 6, scalar) readonly buffer LensB { Lens lens[]; };                 // [1]
#include "camera.glsl"
#include "sh.glsl"
#include "tiles.glsl"
#include "rows.glsl"
#include "project_chunk.glsl"
