#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// pose_adam sums the gradients by the step's camera in a fixed order, adds what holds the camera, and steps Adam. What
// holds it is where the photo's points of the reconstruction should be seen (Huber's function of the distance in
// pixels), or else, where none are known, the distance from the given pose, in pixels at the median camera's distance.
// A photo is trained on once an epoch, so each counts its own steps; of the focal lengths, which the photos of a camera
// step one after another, a step's size is by the second moment of all of them, as with vignetting.
//   reads params counters refined pose partials anchors; reads and writes poses
// One workgroup.
#include "camera.glsl"
#include "pose.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n_views;       // with anchors
    uint first_step;    // the rate rises from there on, for warm_up steps
    uint warm_up;
    uint decay_steps;   // over which the rate falls
    float rate;         // of turns (radians) and shifts (world units)
    float focal_rate;
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
layout(binding = 3, scalar) readonly buffer Found { PoseOfStep pose[]; };       // [1]
layout(binding = 4, scalar) readonly buffer Partials { vec4 partials[]; };      // [N / POSE_SPLATS][2]
// [n_views + 1] word at which a view's points begin, then ANCHOR_WORDS words each
layout(binding = 5, scalar) readonly buffer Anchors { uint anchors[]; };
layout(binding = 6, scalar) buffer Poses { Pose poses[]; };                     // [n_views + 1]
#include "lane_sum.glsl"

shared float s_g[POSE_NUMBERS];     // dL/d(own)
shared float s_bias[2];             // Adam's bias corrections
shared float s_was;                 // the second one before the step

float word(uint i) { return uintBitsToFloat(anchors[i]); }

// Adds this invocation's share of what holds the camera by the photo's points.
void hold_points(View v, uint first, uint end, inout vec4 x[3]) {
    float share = 1.0 / float(1u << params[0].level);
    float weight = pc.anchor * float(ANCHOR_WORDS) / float(end - first);
    for (uint at = first + ANCHOR_WORDS * gl_LocalInvocationID.x; at < end; at += ANCHOR_WORDS * 256u) {
        vec3 point = view_rotation(v) * vec3(word(at), word(at + 1u), word(at + 2u)) + v.trans;
        if (!(point.z > v.near)) continue;
        vec2 seen = project_point(v, point);
        vec2 off = seen - share * vec2(word(at + 3u), word(at + 4u));
        vec2 g = weight / max(length(off), 1.0) * off;
        vec3 v_point = g * jacobian_at_mean(v, point, projection_jacobian(v, point));
        vec3 v_turn = cross(point, v_point);
        x[0] += vec4(v_turn, v_point.x);
        x[1] += vec4(v_point.yz, dot(g, seen - v.center), 0.0);
    }
}

// The gradient of Huber's function of the length of x, in px.
vec3 pull(vec3 x, float length_px, float focal) {
    return pc.anchor * focal * focal / max(length_px, 1.0) * x;
}

// Leaves the gradient by what is learnt in s_g, given that by the camera's motion.
void chain(View given, vec3 v_turn, vec3 v_shift, float v_focal, bool held) {
    vec3 turn = turn_of(pose[0].own), shift = shift_of(pose[0].own);
    vec3 g_turn = -(turn_jacobian(turn) * v_turn);
    vec3 g_shift = -(turn_matrix(turn) * v_shift);
    if (!held) {
        float focal = sqrt(given.focal.x * given.focal.y), side = 0.5 * float(given.width);
        float grown = pose[0].own[POSE_FOCAL];
        float off = focal * sqrt(dot(turn, turn) + dot(shift, shift));
        g_turn += pull(turn, off, focal);
        g_shift += pull(shift, off, focal);
        v_focal += pull(vec3(grown), side * abs(grown), side).x;
    }
    for (uint k = 0u; k < 3u; k++) {
        s_g[k] = g_turn[k];
        s_g[3u + k] = g_shift[k];
    }
    s_g[POSE_FOCAL] = v_focal;
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
    vec4 x[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0));
    for (uint i = lid; i < div_up(counters[N_ACTIVE], POSE_SPLATS); i += 256u) {
        x[0] += partials[2u * i];
        x[1] += partials[2u * i + 1u];
    }
    uint first = 0u, end = 0u;
    if (id < pc.n_views) {
        first = anchors[id];
        end = anchors[id + 1u];
    }
    if (end > first) hold_points(v, first, end, x);
    sum_lanes(x);
    if (lid == 0u) {
        chain(params[0].view, s_sum[0].xyz, vec3(s_sum[0].w, s_sum[256].xy), s_sum[256].z, end > first);
        // 1 - beta^t from 1 - beta^(t-1): no power, and exact where t is small.
        s_bias[0] = pc.beta1 * poses[id].bias1 + (1.0 - pc.beta1);
        s_was = poses[id].bias2;
        s_bias[1] = pc.beta2 * s_was + (1.0 - pc.beta2);
        poses[id].bias1 = s_bias[0];
        poses[id].bias2 = s_bias[1];
    }
    barrier();
    float m = 0.0, second = 0.0;
    if (lid < POSE_NUMBERS) {
        float g = s_g[lid];
        m = pc.beta1 * poses[id].m[lid] + (1.0 - pc.beta1) * g;
        float s = pc.beta2 * poses[id].v[lid] + (1.0 - pc.beta2) * (g * g);
        second = s / s_bias[1];
        if (lid == POSE_FOCAL) second = (pose[0].second - poses[id].v[lid] + s) / (pose[0].bias2 - s_was + s_bias[1]);
        poses[id].m[lid] = m;
        poses[id].v[lid] = s;
        float past = float(params[0].step - pc.first_step);
        float rate = (lid == POSE_FOCAL ? pc.focal_rate : pc.rate) *
            exp2(pc.log2_final * min(past / float(pc.decay_steps), 1.0)) * min((past + 1.0) / float(pc.warm_up), 1.0);
        poses[id].own[lid] -= rate * (m / s_bias[0]) / (sqrt(second) + ADAM_EPS);
    }
}
