#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// carve makes the floaters of one chunk invisible. A floater is a splat that lies where half of the views that can
// tell, or more, know space to be empty, because their points begin farther away, or one that is larger than `reach`
// times its distance to the nearest camera. A view can tell if it shows the splat no deeper than half of its points:
// one that looks at it through the scene must not outvote those that stand before it. The refinement that follows
// removes what is invisible.
//   reads counters voters; reads and writes chunk
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"
#include "camera.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_voters;
    uint first_moments;     // row of the opacity's first moment
    uint second_moments;    // of its second; the same row where both lie in one word
    float reach;            // distances to the nearest camera that a splat may be large
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Voters { Voter voters[]; };     // [n_voters] training views
layout(binding = 2, scalar) buffer Chunk { float chunk[]; };                // [rows][chunk_splats]

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }

// Whether a point in the camera's axes lies in the picture of v.
bool shows(View v, vec3 p) {
    if (!(p.z > 0.0)) return false;
    vec2 at = project_point(v, p);
    return at.x >= 0.0 && at.y >= 0.0 && at.x < float(v.width) && at.y < float(v.height);
}

bool is_floater(vec3 mean, float scale) {
    uint votes = 0u, empty = 0u;
    float nearest = 3.4e38;
    for (uint k = 0u; k < pc.n_voters; k++) {
        Voter c = voters[k];
        View v = c.view;
        vec3 p = view_rotation(v) * mean + v.trans;
        nearest = min(nearest, length(p));
        if (p.z > c.median || !shows(v, p)) continue;
        votes++;
        if (p.z < c.empty) empty++;
    }
    return empty > 0u && 2u * empty >= votes || scale > pc.reach * nearest;
}

void main() {
    uint i = global_index();
    if (i >= pc.chunk_splats || pc.first_id + i >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    vec3 mean = vec3(row(ROW_MEANS, i), row(ROW_MEANS + 1u, i), row(ROW_MEANS + 2u, i));
    float scale = exp(max(row(ROW_LOG_SCALES, i), max(row(ROW_LOG_SCALES + 1u, i), row(ROW_LOG_SCALES + 2u, i))));
    if (!is_floater(mean, scale)) return;
    chunk[ROW_LOGIT_OPACITIES * pc.chunk_splats + i] = INVISIBLE_LOGIT;
    chunk[pc.first_moments * pc.chunk_splats + i] = 0.0;
    chunk[pc.second_moments * pc.chunk_splats + i] = 0.0;
}
