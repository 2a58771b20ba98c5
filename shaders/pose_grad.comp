#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// pose_grad takes the gradients of splats' projections to the camera: how the loss changes where every point p of the
// camera's frame becomes p + w x p + v, and with the logarithm of the focal lengths. It runs before the splats are
// stepped.
//   reads params counters depth_keys v_projected paints chunk; writes partials
// One invocation a splat of one chunk. A workgroup sums its splats by a fixed binary tree.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"
#include "word.glsl"

layout(local_size_x = 64) in;   // POSE_SPLATS

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };                // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };               // [N]
layout(binding = 3, scalar) readonly buffer VProjected { ProjectedGrad v_projected[]; };    // [N]
layout(binding = 4, scalar) readonly buffer Paints { vec4 paints[]; };                      // [N] opacity, colour
layout(binding = 5, scalar) readonly buffer Chunk { WORD chunk[]; };                        // [rows][chunk_splats]
// [N / POSE_SPLATS][2] w and v.x; v.yz, focal, 0
layout(binding = 6, scalar) writeonly buffer Partials { vec4 partials[]; };

const bool NOISE = false;   // there is no penalty
#include "rows.glsl"
void put(uint r, uint i, float x);
struct Four {
    mat4x3 x;
};
Four load_four(uint k, uint i, bool all) { return Four(values(load_sh4(k, i, all))); }
mat4x3 values(Four four) { return four.x; }
#include "project_bwd.glsl"

shared vec4 s_sum[2 * 64];

// dL/d(camera centre) through the colour of splat i.
vec3 center_through_color(uint i, vec3 mean, vec3 v_color) {
    Ray ray = ray_to(0u, mean);
    vec3 v_dir = vec3(0.0);
    uint degree = params[0].view.sh_degree, n = (degree + 1u) * (degree + 1u), k = 0u;
    for (; k + 4u <= n; k += 4u) add_v_dir(v_dir, values(load_four(k, i, true)), k, true, ray.dir, v_color);
    if (k < n) add_v_dir(v_dir, values(load_four(k, i, false)), k, false, ray.dir, v_color);
    return -direction_vjp(ray, v_dir);
}

// What splat i, whose id is given, adds to the gradient.
void splat_pose(uint i, uint id, out vec3 v_turn, out vec3 v_shift, out float v_focal) {
    View v = params[0].view;
    ProjectedGrad g = v_projected[id];
    mat3 w = view_rotation(v);
    vec3 mean = row3(ROW_MEANS, i);
    vec3 point = w * mean + v.trans;
    vec4 q = vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i));
    vec3 scales = exp(row3(ROW_LOG_SCALES, i));
    mat3 rotation = quat_rotation(q / length(q));
    mat3x2 jacobian = projection_jacobian(v, point);
    Footprint f = footprint(jacobian * w, rotation, scales);
    float v_opacity;
    vec3 v_cov = covariance_vjp(v, f, g, sigmoid(row(ROW_LOGIT_OPACITIES, i)), v_opacity);
    mat2 v_cov2 = mat2(v_cov.x, v_cov.y, v_cov.y, v_cov.z);
    vec2 v_b[3] = vec2[](2.0 * v_cov2 * f.b0, 2.0 * v_cov2 * f.b1, 2.0 * v_cov2 * f.b2);
    mat3x2 v_jacobian = mat3x2(0.0);
    v_turn = vec3(0.0);
    for (int k = 0; k < 3; k++) {
        // A turn of the camera turns the splat's axes in its frame.
        vec3 axis = w * rotation[k];
        v_jacobian += scales[k] * outerProduct(v_b[k], axis);
        v_turn += cross(axis, scales[k] * (v_b[k] * jacobian));
    }
    vec3 v_point = g.mean2d * jacobian_at_mean(v, point, jacobian) + jacobian_vjp(v, point, v_jacobian);
    v_turn += cross(point, v_point);
    vec3 v_color = g.color * vec3(greaterThan(paints[id].yzw, vec3(0.0)));
    v_shift = v_point - w * center_through_color(i, mean, v_color);
    // Mean and Jacobian are proportional to the focal lengths; but at its limit the Jacobian's last column is not.
    vec2 free = vec2(1.0);
    if (v.camera_model == CAMERA_PINHOLE) free = vec2(equal(jacobian_point(v, point), point.xy / point.z));
    v_focal = dot(g.mean2d, project_point(v, point) - v.center) + dot(v_jacobian[0], jacobian[0]) +
              dot(v_jacobian[1], jacobian[1]) + dot(v_jacobian[2], free * jacobian[2]);
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    uint i = global_index();
    uint id = pc.first_id + i;
    vec3 v_turn = vec3(0.0), v_shift = vec3(0.0);
    float v_focal = 0.0;
    if (i < pc.chunk_splats && id < counters[N_ACTIVE] && counters[FAILED] == 0u && depth_keys[id] != CULLED)
        splat_pose(i, id, v_turn, v_shift, v_focal);
    s_sum[lid] = vec4(v_turn, v_shift.x);
    s_sum[64u + lid] = vec4(v_shift.yz, v_focal, 0.0);
    for (uint half_size = POSE_SPLATS / 2u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) {
            s_sum[lid] += s_sum[lid + half_size];
            s_sum[64u + lid] += s_sum[64u + lid + half_size];
        }
    }
    if (lid >= 2u || i - lid >= pc.chunk_splats) return;
    partials[2u * ((id - lid) / POSE_SPLATS) + lid] = s_sum[64u * lid];
}
