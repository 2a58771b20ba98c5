#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// pose_grad takes the gradients of splats' projections to the camera: how the loss changes where every point p of the
// camera's frame becomes p + w x p + v, and with what is learnt of the lens. It runs before the splats are stepped.
// Cameras without distortion have a lens that bends nothing.
//   reads params counters depth_keys v_projected paints chunk lens; writes partials
// One invocation a splat of one chunk. A workgroup sums its splats by a fixed binary tree.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#define LENS
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
layout(binding = 6, scalar) readonly buffer LensB { Lens lens[]; };                         // [1]
// [N / POSE_SPLATS][4] w and v.x; v.yz and the lens's first two; the next four; the last, 0 0 0
layout(binding = 7, scalar) writeonly buffer Partials { vec4 partials[]; };

const bool NOISE = false;   // there is no penalty
const bool SHUTTER = false; // cameras that move are not refined
#include "rows.glsl"
void put(uint r, uint i, float x);
struct Four {
    mat4x3 x;
};
Four load_four(uint k, uint i, bool all) { return Four(values(load_sh4(k, i, all))); }
mat4x3 values(Four four) { return four.x; }
#include "project_bwd.glsl"

shared vec4 s_sum[4 * 64];

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
void splat_pose(uint i, uint id, out vec3 v_turn, out vec3 v_shift, out float v_lens[LENS_NUMBERS]) {
    View taken = params[0].view, v = plane_view(taken);
    ProjectedGrad g = v_projected[id];
    mat3 w = view_rotation(v);
    vec3 mean = row3(ROW_MEANS, i);
    vec3 point = w * mean + v.trans;
    vec4 q = vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i));
    vec3 scales = exp(row3(ROW_LOG_SCALES, i));
    mat3 rotation = quat_rotation(q / length(q));
    // Up to the lens everything goes on in its plane, as in geometry_bwd.
    mat2 focal = lens_focal(taken);
    vec2 u = project_point(v, point);
    mat2 slope = bend(u).slope, to_image = focal * slope;
    mat3x2 jacobian = projection_jacobian(v, point);
    mat3x2 jw = jacobian * w;
    Footprint f = footprint(to_image * jw, rotation, scales);
    float v_opacity;
    vec3 v_cov = covariance_vjp(v, f, g, sigmoid(row(ROW_LOGIT_OPACITIES, i)), v_opacity);
    mat2 v_cov2 = mat2(v_cov.x, v_cov.y, v_cov.y, v_cov.z);
    vec2 v_b[3] = vec2[](2.0 * v_cov2 * f.b0, 2.0 * v_cov2 * f.b1, 2.0 * v_cov2 * f.b2);
    mat3x2 v_jacobian = mat3x2(0.0);
    mat2 v_to_image = mat2(0.0);
    v_turn = vec3(0.0);
    for (int k = 0; k < 3; k++) {
        v_to_image += scales[k] * outerProduct(v_b[k], jw * rotation[k]);
        v_b[k] = v_b[k] * to_image;
        // A turn of the camera turns the splat's axes in its frame.
        vec3 axis = w * rotation[k];
        v_jacobian += scales[k] * outerProduct(v_b[k], axis);
        v_turn += cross(axis, scales[k] * (v_b[k] * jacobian));
    }
    lens_vjp(taken, u, g.mean2d, v_to_image, v_lens);
    vec2 v_plane = bend_vjp(u, slope, g.mean2d * focal, transpose(focal) * v_to_image);
    vec3 v_point = v_plane * jacobian_at_mean(v, point, jacobian) + jacobian_vjp(v, point, v_jacobian);
    v_turn += cross(point, v_point);
    vec3 v_color = g.color * vec3(greaterThan(paints[id].yzw, vec3(0.0)));
    v_shift = v_point - w * center_through_color(i, mean, v_color);
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    uint i = global_index();
    uint id = pc.first_id + i;
    vec3 v_turn = vec3(0.0), v_shift = vec3(0.0);
    float v_lens[LENS_NUMBERS] = float[](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    if (i < pc.chunk_splats && id < counters[N_ACTIVE] && counters[FAILED] == 0u && depth_keys[id] != CULLED)
        splat_pose(i, id, v_turn, v_shift, v_lens);
    s_sum[lid] = vec4(v_turn, v_shift.x);
    s_sum[64u + lid] = vec4(v_shift.yz, v_lens[0], v_lens[1]);
    s_sum[128u + lid] = vec4(v_lens[2], v_lens[3], v_lens[4], v_lens[5]);
    s_sum[192u + lid] = vec4(v_lens[6], 0.0, 0.0, 0.0);
    for (uint half_size = POSE_SPLATS / 2u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size)
            for (uint k = 0u; k < 4u; k++) s_sum[64u * k + lid] += s_sum[64u * k + lid + half_size];
    }
    if (lid >= 4u || i - lid >= pc.chunk_splats) return;
    partials[4u * ((id - lid) / POSE_SPLATS) + lid] = s_sum[64u * lid];
}
