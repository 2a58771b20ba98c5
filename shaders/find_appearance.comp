#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// find_appearance finds what the step's photo has of exposure, white balance and vignetting. A colour that all photos
// share belongs to the scene: exposure and white balance are the photo's own less the mean over all photos, so that
// their mean is zero after every step of the optimiser. Vignetting belongs to a camera: it is the sum of what the
// camera's photos have learnt of it, in steps that its second moments over all of them scale.
//   reads params appearances; writes correction
// One workgroup.
#include "appearance.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Appearances { Appearance appearances[]; };  // [n_views]
layout(binding = 2, scalar) writeonly buffer Correct { Correction correction[]; };      // [1]
layout(push_constant, scalar) uniform Push { uint n_views; };
#include "lane_sum.glsl"

shared float s_found[APPEARANCE_NUMBERS];

// What is summed of photo i: its numbers, vignetting's second moments, their bias.
float number_of(uint i, uint k) {
    if (k < APPEARANCE_NUMBERS) return appearances[i].own[k];
    k -= APPEARANCE_NUMBERS;
    return k + 1u < SECONDS ? appearances[i].v[VIGNETTING + k] : k + 1u == SECONDS ? appearances[i].bias2 : 0.0;
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    uint id = params[0].view_id;
    float camera = appearances[id].camera;
    // Twelve numbers at a time: Intel's registers have no room for all.
    for (uint part = 0u; part < (params[0].vignetting != 0u ? 4u : 2u); part++) {
        vec4 x[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0));
        for (uint i = lid; i < n_views; i += 256u) {
            bool same = appearances[i].camera == camera;
            [[unroll]] for (uint n = 0u; n < 12u; n++)
                if (12u * part + n < VIGNETTING || same) x[n / 4u][n % 4u] += number_of(i, 12u * part + n);
        }
        sum_lanes(x);
        uint k = 12u * part + lid;
        float total = lid < 12u ? s_sum[256u * (lid / 4u)][lid % 4u] : 0.0;
        if (lid < 12u && k < APPEARANCE_NUMBERS) {
            s_found[k] = k < VIGNETTING ? appearances[id].own[k] - total / float(n_views) : total;
            correction[0].own[k] = s_found[k];
        } else if (lid < 12u && k < APPEARANCE_NUMBERS + SECONDS) {
            correction[0].seconds[k - APPEARANCE_NUMBERS] = total;
        }
    }
    barrier();
    if (lid != 0u) return;
    correction[0].gain = exp2(s_found[0]);
    float latents[8];
    for (uint k = 0u; k < 8u; k++) latents[k] = s_found[WHITE_BALANCE + k];
    mat3 colour, tangent;
    colour_of(latents, 0u, colour, tangent);
    for (uint k = 0u; k < 9u; k++) correction[0].colour[k] = colour[k / 3u][k % 3u];
}
