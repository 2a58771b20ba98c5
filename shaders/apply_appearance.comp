#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// apply_appearance makes of the rendering what the camera of the step's photo would have made of it: exposure, then
// vignetting, then white balance.
//   reads params correction render; writes seen
// One invocation a pixel.
#include "appearance.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Correct { Correction correction[]; };   // [1]
layout(binding = 2, scalar) readonly buffer Render { vec4 render[]; };              // [P]
layout(binding = 3, scalar) writeonly buffer Seen { vec4 seen[]; };                 // [P] colour, final transmittance
#include "corrected.glsl"

void main() {
    uint at = global_index();
    uint width = params[0].view.width;
    if (at >= width * params[0].view.height) return;
    vec4 c = render[at];
    seen[at] = vec4(corrected(uvec2(at % width, at / width), c.rgb).colour, c.a);
}
