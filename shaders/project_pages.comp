#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_pages is project for a model of which a picture shows some pages (pipeline/pages.go): the splats are those of
// the pages that a list names, in its order. It runs once for each buffer that pages lie in.
//   reads params counters page_list chunk; writes shapes paints depth_keys
// A workgroup does a page.
#include "camera.glsl"
#include "sh.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"
#include "word.glsl"

layout(local_size_x = 128) in;  // SPLATS, those of a page

layout(push_constant, scalar) uniform Push {
    uint first_page;    // number of the buffer's first page
    uint n_pages;       // of the buffer
    uint page_words;    // of a page: its rows of SPLATS words
    uint chunk_splats;  // SPLATS
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer PageList { uint page_list[]; };         // [splats / SPLATS]
layout(binding = 3, scalar) readonly buffer Chunk { WORD chunk[]; };                // [n_pages][rows][SPLATS]
layout(binding = 4, scalar) writeonly buffer Shapes { vec4 shapes[]; };             // [splats][2], a Shape
layout(binding = 5, scalar) writeonly buffer Paints { vec4 paints[]; };             // [splats] opacity, colour
layout(binding = 6, scalar) writeonly buffer DepthKeys { uint depth_keys[]; };      // [splats]
#include "rows.glsl"
#include "project.glsl"

void main() {
    uint group = group_index(), first = group * SPLATS;
    if (first >= counters[N_ACTIVE]) return;
    uint page = page_list[group] - pc.first_page;
    if (page < pc.n_pages) project_group(first, counters[N_ACTIVE], page * pc.page_words);
}
