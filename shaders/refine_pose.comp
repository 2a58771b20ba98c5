#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_pose makes the parameters of a step whose view is where training has moved it, and its lens. Cameras that all
// turn, move or grow apart alike show the same pictures of a scene that does so as well: what they share is taken out
// by least squares, so that refined cameras have no such motion against the given ones after any step. Lenses belong to
// a camera: what its photos have learnt of them is added up.
//   reads params given_lens poses; writes refined lens pose
// One workgroup.
#define LENS
#include "params.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n_views;       // rows from there on stand alone
    float n_inverse;    // 1 / n_views
    // Inverse of the sum over views of 1 - [center]^2: xx, xy, xz, yy, yz, zz; and of the sum of squared centers.
    float turn_inverse[6];
    float size_inverse;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer GivenLens { Lens lens[]; };         // [1]
layout(binding = 2, scalar) readonly buffer Poses { Pose poses[]; };            // [n_views + 1]
layout(binding = 3, scalar) writeonly buffer Refined { StepParams refined[]; }; // [1]
layout(binding = 4, scalar) writeonly buffer LensB { Lens refined_lens[]; };    // [1]
layout(binding = 5, scalar) writeonly buffer Found { PoseOfStep pose[]; };      // [1]
const bool SHUTTER = false; // cameras that move are not refined
#include "lane_sum.glsl"
#include "camera.glsl"

mat3 given_rotation(uint i) {
    return transpose(mat3(poses[i].rot[0], poses[i].rot[1], poses[i].rot[2], poses[i].rot[3], poses[i].rot[4],
                          poses[i].rot[5], poses[i].rot[6], poses[i].rot[7], poses[i].rot[8]));
}

// Adds what photo i has learnt of its lens.
void add_lens(uint i, inout vec4 x, inout vec4 y[3]) {
    for (uint k = 0u; k < LENS_NUMBERS; k++) {
        float own = poses[i].own[POSE_LENS + k], second = poses[i].v[POSE_LENS + k];
        if (k < 4u) {
            x[k] += own;
            y[1][k] += second;
        } else {
            y[0][k - 4u] += own;
            y[2][k - 4u] += second;
        }
    }
    y[0].w += poses[i].bias2;
}

// The lens with what was learnt of its distortion.
Lens lens_with(View v, float optics[LENS_NUMBERS]) {
    Lens l = lens[0];
    if ((l.flags & LENS_LEARNT) == 0u) return l;
    float more[4];
    for (uint k = 0u; k < 4u; k++) more[k] = optics[3u + k] / bend_unit(v, k);
    l.num[0] += more[0];
    l.num[1] += more[1];
    if (v.camera_model == CAMERA_FISHEYE) {
        l.num[2] += more[2];
        l.num[3] += more[3];
    } else {
        l.p1 += more[2];
        l.p2 += more[3];
    }
    return l;
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    uint id = params[0].view_id;
    bool alone = id >= pc.n_views;
    float camera = poses[id].camera;
    // About the mean centre: the common turn, the common shift, and how far centres move outwards. Of the camera: the
    // numbers of the lens with the second moments' bias, and the second moments.
    vec4 x[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0)), y[3] = x;
    for (uint i = lid; i < pc.n_views; i += 256u) {
        mat3 rot = given_rotation(i);
        vec3 turn = turn_of(poses[i].own) * rot, shift = shift_of(poses[i].own) * rot, c = poses[i].center;
        x[0] += vec4(turn + cross(c, shift), 0.0);
        x[1] += vec4(shift, dot(c, shift));
        if (poses[i].camera == camera) add_lens(i, x[2], y);
    }
    if (alone && lid == 0u) add_lens(id, x[2], y);
    sum_lanes(x);
    vec4 moves[3] = vec4[](s_sum[0], s_sum[256], s_sum[512]);
    sum_lanes(y);
    if (lid != 0u) return;
    vec3 turn = turn_of(poses[id].own), shift = shift_of(poses[id].own);
    if (!alone) {
        float a[6] = pc.turn_inverse;
        vec3 common_turn = mat3(a[0], a[1], a[2], a[1], a[3], a[4], a[2], a[4], a[5]) * moves[0].xyz;
        vec3 common_shift = pc.n_inverse * moves[1].xyz;
        float growth = pc.size_inverse * moves[1].w;
        mat3 rot = given_rotation(id);
        vec3 c = poses[id].center;
        turn -= rot * common_turn;
        shift -= rot * (cross(common_turn, c) + common_shift + growth * c);
    }
    for (uint k = 0u; k < 3u; k++) {
        pose[0].own[k] = turn[k];
        pose[0].own[3u + k] = shift[k];
    }
    float optics[LENS_NUMBERS];
    for (uint k = 0u; k < LENS_NUMBERS; k++) {
        optics[k] = k < 4u ? moves[2][k] : s_sum[0][k - 4u];
        pose[0].own[POSE_LENS + k] = optics[k];
        pose[0].seconds[k] = k < 4u ? s_sum[256][k] : s_sum[512][k - 4u];
    }
    pose[0].bias2 = s_sum[0].w;
    StepParams p = params[0];
    mat3 rot = turn_matrix(-turn);
    mat3 given = transpose(mat3(p.view.rot[0], p.view.rot[1], p.view.rot[2], p.view.rot[3], p.view.rot[4],
                                p.view.rot[5], p.view.rot[6], p.view.rot[7], p.view.rot[8]));
    mat3 whole = rot * given;
    for (uint r = 0u; r < 3u; r++)
        for (uint k = 0u; k < 3u; k++) p.view.rot[3u * r + k] = whole[k][r];
    p.view.trans = rot * (p.view.trans - shift);
    p.view.center += p.view.focal * vec2(optics[1], optics[2]);
    p.view.focal *= exp(optics[0]);
    refined[0] = p;
    refined_lens[0] = lens_with(p.view, optics);
}
