// The chain rule from one splat's projection to its parameters. The includer declares row(), row3(), and put(row, i, gradient, learning rate),
// which receives every gradient once: project_bwd_adam steps the optimiser there, project_bwd stores the gradient.
#ifndef PROJECT_BWD_GLSL
#define PROJECT_BWD_GLSL
#include "camera.glsl"
#include "sh.glsl"
#include "blend.glsl"

// Gradient of the normalised quaternion's source q through R, given the columns of dL/dR.
vec4 quat_rotation_vjp(vec4 unit, float norm, mat3 v_r) {
    float w = unit.x, x = unit.y, y = unit.z, z = unit.w;
    // v_r[c][r] = dL/dR_rc
    vec4 v;
    v.x = 2.0 * (x * (v_r[1][2] - v_r[2][1]) + y * (v_r[2][0] - v_r[0][2]) + z * (v_r[0][1] - v_r[1][0]));
    v.y = 2.0 * (-2.0 * x * (v_r[1][1] + v_r[2][2]) + y * (v_r[0][1] + v_r[1][0]) + z * (v_r[0][2] + v_r[2][0]) + w * (v_r[1][2] - v_r[2][1]));
    v.z = 2.0 * (x * (v_r[0][1] + v_r[1][0]) - 2.0 * y * (v_r[0][0] + v_r[2][2]) + z * (v_r[1][2] + v_r[2][1]) + w * (v_r[2][0] - v_r[0][2]));
    v.w = 2.0 * (x * (v_r[0][2] + v_r[2][0]) + y * (v_r[1][2] + v_r[2][1]) - 2.0 * z * (v_r[0][0] + v_r[1][1]) + w * (v_r[0][1] - v_r[1][0]));
    return (v - dot(v, unit) * unit) / norm;
}

// Colour: SH rows get their gradients; returns dL/d(direction), not normalised away.
vec3 color_bwd(StepParams p, uint i, vec3 dir, vec3 v_color) {
    uint degree = p.view.sh_degree;
    uint n = (degree + 1u) * (degree + 1u);
    float basis[16];
    sh_basis(dir, degree, basis);
    vec3 v_dir = vec3(0.0);
    for (uint k = 0u; k < n; k++) {
        uint r = ROW_SH + 3u * k;
        v_dir += sh_basis_grad(dir, k) * dot(row3(r, i), v_color);
        float lr = k == 0u ? p.lr_sh0 : p.lr_shn;
        vec3 g = basis[k] * v_color;
        put(r, i, g.x, lr);
        put(r + 1u, i, g.y, lr);
        put(r + 2u, i, g.z, lr);
    }
    return v_dir;
}

// dL/d(2D covariance) as a symmetric matrix (xx, xy, yy), xy counted once per triangle, from dL/d(conic) and dL/d(opacity).
vec3 covariance_vjp(View v, Footprint f, ProjectedGrad g, float opacity_raw, out float v_opacity_raw) {
    vec3 conic = vec3(f.cov.z, -f.cov.y, f.cov.x) / f.det;
    // -C V C with V the symmetric matrix of v_conic (its xy entry is shared by two elements).
    float vxy = 0.5 * g.conic.y;
    vec2 row0 = vec2(conic.x * g.conic.x + conic.y * vxy, conic.x * vxy + conic.y * g.conic.z);
    vec2 row1 = vec2(conic.y * g.conic.x + conic.z * vxy, conic.y * vxy + conic.z * g.conic.z);
    vec3 v_cov = -vec3(row0.x * conic.x + row0.y * conic.y, row0.x * conic.y + row0.y * conic.z, row1.x * conic.y + row1.y * conic.z);
    v_opacity_raw = g.opacity;
    if (v.antialiased != 0u) {
        // compensation^2 = det_raw / det; d/dcov = (1 - c^2) conic - EPS2D / det.
        float c2 = f.det_raw / f.det;
        float c = sqrt(c2);
        v_opacity_raw = g.opacity * c;
        float v_c2 = g.opacity * opacity_raw * 0.5 / (c + 1e-6);
        v_cov += v_c2 * ((1.0 - c2) * conic - vec3(EPS2D / f.det, 0.0, EPS2D / f.det));
    }
    return v_cov;
}

// Weights of one splat's opacity and of each of its scales in the loss; 0 where the loss has no such term.
struct Penalty {
    float opacity;
    float scale;
};

// All gradients of splat i, given those of its projection. Colour first: it reads rows that put() may change.
void splat_bwd(StepParams p, uint i, ProjectedGrad g, Penalty penalty) {
    View v = p.view;
    mat3 w = view_rotation(v);
    vec3 mean = row3(ROW_MEANS, i);
    vec3 point = w * mean + v.trans;
    vec4 quat = vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i));
    vec3 scales = exp(row3(ROW_LOG_SCALES, i));
    float opacity = sigmoid(row(ROW_LOGIT_OPACITY, i));

    vec3 offset = mean + v.trans * w;   // from the camera centre
    float dist = length(offset);
    vec3 dir = offset / dist;
    // max(SH + 0.5, 0): where it clamps, colour does not move.
    float basis[16];
    sh_basis(dir, v.sh_degree, basis);
    vec3 color = vec3(0.5);
    for (uint k = 0u; k < (v.sh_degree + 1u) * (v.sh_degree + 1u); k++) color += basis[k] * row3(ROW_SH + 3u * k, i);
    vec3 v_dir = color_bwd(p, i, dir, g.color * vec3(greaterThan(color, vec3(0.0))));
    vec3 v_mean = (v_dir - dir * dot(dir, v_dir)) / dist;

    float norm = length(quat);
    vec4 unit = quat / norm;
    mat3 rotation = quat_rotation(unit);
    mat3x2 jacobian = projection_jacobian(v, point);
    mat3x2 jw = jacobian * w;
    Footprint f = footprint(jw, rotation, scales);
    float v_opacity;
    vec3 v_cov = covariance_vjp(v, f, g, opacity, v_opacity);
    mat2 v_cov2 = mat2(v_cov.x, v_cov.y, v_cov.y, v_cov.z);
    // cov = sum b_k b_k^T, b_k = s_k J W R_k.
    vec2 v_b[3] = vec2[](2.0 * v_cov2 * f.b0, 2.0 * v_cov2 * f.b1, 2.0 * v_cov2 * f.b2);
    mat3 v_rotation;
    mat3x2 v_jacobian = mat3x2(0.0);
    vec3 v_log_scales;
    for (int k = 0; k < 3; k++) {
        vec3 axis = w * rotation[k];
        v_log_scales[k] = scales[k] * dot(v_b[k], jacobian * axis);
        v_rotation[k] = scales[k] * (v_b[k] * jw);
        v_jacobian += scales[k] * outerProduct(v_b[k], axis);
    }
    vec3 v_point = g.mean2d * jacobian_at_mean(v, point, jacobian) + jacobian_vjp(v, point, v_jacobian);
    v_mean += v_point * w;
    vec4 v_quat = quat_rotation_vjp(unit, norm, v_rotation);
    if (penalty.opacity != 0.0) v_opacity += penalty.opacity;
    if (penalty.scale != 0.0) v_log_scales += penalty.scale * scales;

    for (uint k = 0u; k < 3u; k++) put(ROW_MEANS + k, i, v_mean[k], p.lr_means);
    for (uint k = 0u; k < 4u; k++) put(ROW_QUATS + k, i, v_quat[k], p.lr_quats);
    for (uint k = 0u; k < 3u; k++) put(ROW_LOG_SCALES + k, i, v_log_scales[k], p.lr_log_scales);
    put(ROW_LOGIT_OPACITY, i, v_opacity * opacity * (1.0 - opacity), p.lr_logit_opacity);
}

// What a view that does not see the splat does to it: the gradients of the penalties alone; those that are zero still decay the moments.
void splat_unseen(StepParams p, uint i, Penalty penalty) {
    float v_logit = 0.0;
    vec3 v_log_scales = vec3(0.0);
    if (penalty.opacity != 0.0) {
        float opacity = sigmoid(row(ROW_LOGIT_OPACITY, i));
        v_logit = penalty.opacity * opacity * (1.0 - opacity);
    }
    if (penalty.scale != 0.0) v_log_scales = penalty.scale * exp(row3(ROW_LOG_SCALES, i));
    for (uint k = 0u; k < 3u; k++) put(ROW_MEANS + k, i, 0.0, p.lr_means);
    for (uint k = 0u; k < 4u; k++) put(ROW_QUATS + k, i, 0.0, p.lr_quats);
    for (uint k = 0u; k < 3u; k++) put(ROW_LOG_SCALES + k, i, v_log_scales[k], p.lr_log_scales);
    put(ROW_LOGIT_OPACITY, i, v_logit, p.lr_logit_opacity);
    uint n = 3u * (p.view.sh_degree + 1u) * (p.view.sh_degree + 1u);
    for (uint k = 0u; k < n; k++) put(ROW_SH + k, i, 0.0, k < 3u ? p.lr_sh0 : p.lr_shn);
}

#endif
