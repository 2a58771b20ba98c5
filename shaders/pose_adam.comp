#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// pose_adam sums the gradients by the step's camera in a fixed order, adds what holds the camera, and steps Adam. What
// holds it is where the photo's points of the reconstruction should be seen (Huber's function of the distance in
// pixels), or else, where none are known, the distance from the given pose, in pixels at the median camera's distance.
// A photo is trained on once an epoch, so each counts its own steps; of the lens, which the photos of a camera step one
// after another, a step's size is by the second moment of all of them, as with vignetting.
//   reads params counters refined lens pose partials anchors; reads and writes poses
// One workgroup.
#define LENS
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n_views;       // with anchors
    uint first_step;    // the rate rises from there on, for warm_up steps
    uint warm_up;
    uint decay_steps;   // over which the rate falls
    float rate;         // of turns (radians) and shifts (world units)
    float lens_rate;
    float log2_final;   // of the share of the rates that is left at the end
    float beta1;
    float beta2;
    float anchor;       // weight of what holds the camera
    // Steps between opacity resets, 0: there is none; the step from which on there is none; and for how many steps
    // after one poses rest, because pictures are too dim to say anything of them.
    uint reset_every;
    uint reset_stop;
    uint rest;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Refined { StepParams refined[]; };  // [1]
layout(binding = 3, scalar) readonly buffer LensB { Lens lens[]; };             // [1]
layout(binding = 4, scalar) readonly buffer Found { PoseOfStep pose[]; };       // [1]
layout(binding = 5, scalar) readonly buffer Partials { vec4 partials[]; };      // [N / POSE_SPLATS][4]
// [n_views + 1] word at which a view's points begin, then ANCHOR_WORDS words each
layout(binding = 6, scalar) readonly buffer Anchors { uint anchors[]; };
layout(binding = 7, scalar) buffer Poses { Pose poses[]; };                     // [n_views + 1]
const bool SHUTTER = false; // cameras that move are not refined
#include "lane_sum.glsl"
#include "camera.glsl"

shared float s_g[POSE_NUMBERS];     // dL/d(own)
shared float s_bias[2];             // Adam's bias corrections
shared float s_was;                 // the second one before the step

float word(uint i) { return uintBitsToFloat(anchors[i]); }

// Adds this invocation's share of what holds the camera by the photo's points.
void hold_points(View taken, uint first, uint end, inout vec4 x[3], inout vec4 y[3]) {
    View v = plane_view(taken);
    float share = 1.0 / float(1u << params[0].level);
    float weight = pc.anchor * float(ANCHOR_WORDS) / float(end - first);
    for (uint at = first + ANCHOR_WORDS * gl_LocalInvocationID.x; at < end; at += ANCHOR_WORDS * 256u) {
        vec3 point = view_rotation(v) * vec3(word(at), word(at + 1u), word(at + 2u)) + v.trans;
        if (!(point.z > v.near)) continue;
        vec2 off = lens_point(taken, point) - share * vec2(word(at + 3u), word(at + 4u));
        vec2 g = weight / max(length(off), 1.0) * off, u = project_point(v, point);
        vec2 v_plane = bend_vjp(u, bend(u).slope, g * lens_focal(taken), mat2(0.0));
        vec3 v_point = v_plane * jacobian_at_mean(v, point, projection_jacobian(v, point));
        float v_lens[LENS_NUMBERS];
        lens_vjp(taken, u, g, mat2(0.0), v_lens);
        x[0] += vec4(cross(point, v_point), v_point.x);
        x[1] += vec4(v_point.yz, v_lens[0], v_lens[1]);
        x[2] += vec4(v_lens[2], v_lens[3], v_lens[4], v_lens[5]);
        y[0].x += v_lens[6];
    }
}

// The gradient of Huber's function of the length of x, in px.
vec3 pull(vec3 x, float length_px, float focal) {
    return pc.anchor * focal * focal / max(length_px, 1.0) * x;
}

// Leaves the gradient by what is learnt in s_g, given that by the camera's motion and lens.
void chain(View given, vec3 v_turn, vec3 v_shift, float v_lens[LENS_NUMBERS], bool held) {
    vec3 turn = turn_of(pose[0].own), shift = shift_of(pose[0].own);
    vec3 g_turn = -(turn_jacobian(turn) * v_turn);
    vec3 g_shift = -(turn_matrix(turn) * v_shift);
    if (!held) {
        float focal = sqrt(given.focal.x * given.focal.y);
        float off = focal * sqrt(dot(turn, turn) + dot(shift, shift));
        g_turn += pull(turn, off, focal);
        g_shift += pull(shift, off, focal);
    }
    for (uint k = 0u; k < 3u; k++) {
        s_g[k] = g_turn[k];
        s_g[3u + k] = g_shift[k];
    }
    for (uint k = 0u; k < LENS_NUMBERS; k++) {
        float g = v_lens[k], unit = k == 0u ? 0.5 * float(given.width) : sqrt(given.focal.x * given.focal.y);
        if (k == 1u || k == 2u) g *= given.focal[k - 1u];
        if (k >= 3u) g /= bend_unit(given, k - 3u);
        if (!held) g += pull(vec3(pose[0].own[POSE_LENS + k]), unit * abs(pose[0].own[POSE_LENS + k]), unit).x;
        s_g[POSE_LENS + k] = g;
    }
}

// Whether number k is learnt.
bool changes(uint k) {
    uint flags = lens[0].flags;
    return k < POSE_LENS || (flags & LENS_HELD) == 0u && (k < POSE_LENS + 3u || (flags & LENS_LEARNT) != 0u);
}

bool rests(uint step) {
    return pc.reset_every != 0u && step >= pc.reset_every && step % pc.reset_every < pc.rest &&
           step < pc.reset_stop + pc.rest;
}

void main() {
    if (counters[FAILED] != 0u || rests(params[0].step)) return;
    uint lid = gl_LocalInvocationID.x;
    uint id = params[0].view_id;
    View v = refined[0].view;
    vec4 x[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0)), y[3] = x;
    for (uint i = lid; i < div_up(counters[N_ACTIVE], POSE_SPLATS); i += 256u) {
        for (uint k = 0u; k < 3u; k++) x[k] += partials[4u * i + k];
        y[0] += partials[4u * i + 3u];
    }
    uint first = 0u, end = 0u;
    if (id < pc.n_views) {
        first = anchors[id];
        end = anchors[id + 1u];
    }
    if (end > first) hold_points(v, first, end, x, y);
    sum_lanes(x);
    vec4 a = s_sum[0], b = s_sum[256], c = s_sum[512];
    sum_lanes(y);
    if (lid == 0u) {
        float v_lens[LENS_NUMBERS] = float[](b.z, b.w, c.x, c.y, c.z, c.w, s_sum[0].x);
        chain(params[0].view, a.xyz, vec3(a.w, b.xy), v_lens, end > first);
        // 1 - beta^t from 1 - beta^(t-1): no power, and exact where t is small.
        s_bias[0] = pc.beta1 * poses[id].bias1 + (1.0 - pc.beta1);
        s_was = poses[id].bias2;
        s_bias[1] = pc.beta2 * s_was + (1.0 - pc.beta2);
        poses[id].bias1 = s_bias[0];
        poses[id].bias2 = s_bias[1];
    }
    barrier();
    float m = 0.0, second = 0.0;
    if (lid < POSE_NUMBERS && changes(lid)) {
        float g = s_g[lid];
        m = pc.beta1 * poses[id].m[lid] + (1.0 - pc.beta1) * g;
        float s = pc.beta2 * poses[id].v[lid] + (1.0 - pc.beta2) * (g * g);
        second = s / s_bias[1];
        bool optics = lid >= POSE_LENS;
        if (optics)
            second = (pose[0].seconds[lid - POSE_LENS] - poses[id].v[lid] + s) / (pose[0].bias2 - s_was + s_bias[1]);
        poses[id].m[lid] = m;
        poses[id].v[lid] = s;
        float past = float(params[0].step - pc.first_step);
        float rate = (optics ? pc.lens_rate : pc.rate) *
            exp2(pc.log2_final * min(past / float(pc.decay_steps), 1.0)) * min((past + 1.0) / float(pc.warm_up), 1.0);
        poses[id].own[lid] -= rate * (m / s_bias[0]) / (sqrt(second) + ADAM_EPS);
    }
}
