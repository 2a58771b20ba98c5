#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// expose applies the colour map of the step's photo to the rendering, so that the loss compares what the camera would
// have made of it (the affine exposure model of Kerbl et al. 2024, A Hierarchical 3D Gaussian Representation).
//   reads params exposures render; writes exposed
// One invocation a pixel.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Exposures { Exposure exposures[]; };    // [n_views]
layout(binding = 2, scalar) readonly buffer Render { vec4 render[]; };              // [P]
// [P] mapped colour, final transmittance
layout(binding = 3, scalar) writeonly buffer Exposed { vec4 exposed[]; };
#include "exposure.glsl"

void main() {
    uint at = global_index();
    if (at >= params[0].view.width * params[0].view.height) return;
    vec4 c = render[at];
    vec4 x = vec4(c.rgb, 1.0);
    uint id = params[0].view_id;
    exposed[at] = vec4(dot(affine_row(id, 0u), x), dot(affine_row(id, 1u), x), dot(affine_row(id, 2u), x), c.w);
}
