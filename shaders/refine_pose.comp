#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_pose makes the parameters of a step whose view is where training has moved it. Cameras that all turn, move or
// grow apart alike show the same pictures of a scene that does so as well: what they share is taken out by least
// squares, so that refined cameras have no such motion against the given ones after any step. Focal lengths belong to a
// camera: their factor is the product of what the camera's photos have learnt of it.
//   reads params poses; writes refined pose
// One workgroup.
#include "pose.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n_views;       // rows from there on stand alone
    float n_inverse;    // 1 / n_views
    // Inverse of the sum over views of 1 - [center]^2: xx, xy, xz, yy, yz, zz; and of the sum of squared centers.
    float turn_inverse[6];
    float size_inverse;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Poses { Pose poses[]; };            // [n_views + 1]
layout(binding = 2, scalar) writeonly buffer Refined { StepParams refined[]; }; // [1]
layout(binding = 3, scalar) writeonly buffer Found { PoseOfStep pose[]; };      // [1]
#include "lane_sum.glsl"

mat3 given_rotation(uint i) {
    return transpose(mat3(poses[i].rot[0], poses[i].rot[1], poses[i].rot[2], poses[i].rot[3], poses[i].rot[4],
                          poses[i].rot[5], poses[i].rot[6], poses[i].rot[7], poses[i].rot[8]));
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    uint id = params[0].view_id;
    bool alone = id >= pc.n_views;
    float camera = poses[id].camera;
    // About the mean centre: the common turn, the common shift; how far centres move outwards, and of the camera the
    // focal share, its second moment and that one's bias.
    vec4 x[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0));
    for (uint i = lid; i < pc.n_views; i += 256u) {
        mat3 rot = given_rotation(i);
        vec3 turn = turn_of(poses[i].own) * rot, shift = shift_of(poses[i].own) * rot, c = poses[i].center;
        x[0] += vec4(turn + cross(c, shift), 0.0);
        x[1] += vec4(shift, dot(c, shift));
        if (poses[i].camera == camera)
            x[2] += vec4(poses[i].own[POSE_FOCAL], poses[i].v[POSE_FOCAL], poses[i].bias2, 0.0);
    }
    sum_lanes(x);
    if (lid != 0u) return;
    vec3 turn = turn_of(poses[id].own), shift = shift_of(poses[id].own);
    vec4 rest = s_sum[512];
    if (alone) {
        rest = vec4(poses[id].own[POSE_FOCAL], poses[id].v[POSE_FOCAL], poses[id].bias2, 0.0);
    } else {
        float a[6] = pc.turn_inverse;
        vec3 common_turn = mat3(a[0], a[1], a[2], a[1], a[3], a[4], a[2], a[4], a[5]) * s_sum[0].xyz;
        vec3 common_shift = pc.n_inverse * s_sum[256].xyz;
        float growth = pc.size_inverse * s_sum[256].w;
        mat3 rot = given_rotation(id);
        vec3 c = poses[id].center;
        turn -= rot * common_turn;
        shift -= rot * (cross(common_turn, c) + common_shift + growth * c);
    }
    for (uint k = 0u; k < 3u; k++) {
        pose[0].own[k] = turn[k];
        pose[0].own[3u + k] = shift[k];
    }
    pose[0].own[POSE_FOCAL] = rest.x;
    pose[0].second = rest.y;
    pose[0].bias2 = rest.z;
    StepParams p = params[0];
    mat3 rot = turn_matrix(-turn);
    mat3 given = transpose(mat3(p.view.rot[0], p.view.rot[1], p.view.rot[2], p.view.rot[3], p.view.rot[4],
                                p.view.rot[5], p.view.rot[6], p.view.rot[7], p.view.rot[8]));
    mat3 whole = rot * given;
    for (uint r = 0u; r < 3u; r++)
        for (uint k = 0u; k < 3u; k++) p.view.rot[3u * r + k] = whole[k][r];
    p.view.trans = rot * (p.view.trans - shift);
    p.view.focal *= exp(rest.x);
    refined[0] = p;
}
