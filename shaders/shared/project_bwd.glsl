// The chain rule from the projections of a splat to its parameters, for one view or several. The includer declares
// params, and before this file
//   NOISE                                   whether splats may be of the far shell: it is MCMC's, too
//   row(r, i), row3(r, i), put(r, i, x)     what row r of the chunk holds for splat i; sets it, or where the result
//   belongs
//   struct Four                             what it needs of four SH coefficients, or of one
//   load_four(k, i, all), values(four)      those from coefficient k on, or that one alone; their values
// and after it step_four() and step_geometry(), which receive the gradients, and coefficients_bwd(). Rows are loaded
// many at a time, in front of what is stored: no compiler may move a load over a store to the same buffer, and an
// invocation that waits for memory row by row leaves it idle.
#ifndef PROJECT_BWD_GLSL
#define PROJECT_BWD_GLSL
#include "camera.glsl"
#include "sh.glsl"
#include "blend.glsl"
#include "geometry.glsl"

// Receives the gradients of SH coefficients k to k + 3, or of k alone, and the learning rates of the first and the
// others.
void step_four(uint k, uint i, bool all, Four four, mat4x3 g, float lr_first, float lr);

// Receives the gradient g of splat i's geometry x.
void step_geometry(uint i, Geometry x, Geometry g);

// Gradient of the normalised quaternion's source q through R, given the columns of dL/dR.
vec4 quat_rotation_vjp(vec4 unit, float norm, mat3 v_r) {
    float w = unit.x, x = unit.y, y = unit.z, z = unit.w;
    // v_r[c][r] = dL/dR_rc
    vec4 v;
    v.x = 2.0 * (x * (v_r[1][2] - v_r[2][1]) + y * (v_r[2][0] - v_r[0][2]) + z * (v_r[0][1] - v_r[1][0]));
    v.y = 2.0 * (-2.0 * x * (v_r[1][1] + v_r[2][2]) + y * (v_r[0][1] + v_r[1][0]) +
               z * (v_r[0][2] + v_r[2][0]) + w * (v_r[1][2] - v_r[2][1]));
    v.z = 2.0 * (x * (v_r[0][1] + v_r[1][0]) - 2.0 * y * (v_r[0][0] + v_r[2][2]) +
               z * (v_r[1][2] + v_r[2][1]) + w * (v_r[2][0] - v_r[0][2]));
    v.w = 2.0 * (x * (v_r[0][2] + v_r[2][0]) + y * (v_r[1][2] + v_r[2][1]) -
               2.0 * z * (v_r[0][0] + v_r[1][1]) + w * (v_r[0][1] - v_r[1][0]));
    return (v - dot(v, unit) * unit) / norm;
}

// Where the camera sees a splat.
struct Ray {
    vec3 dir;       // from the camera centre, of length 1
    float dist;
};

Ray ray_to(uint view_id, vec3 mean) {
    View v = params[view_id].view;
    vec3 offset = mean + v.trans * view_rotation(v);
    float dist = length(offset);
    return Ray(offset / dist, dist);
}

// Gradient of the mean through the ray's direction, given that of the direction, not normalised away.
vec3 direction_vjp(Ray ray, vec3 v_dir) { return (v_dir - ray.dir * dot(ray.dir, v_dir)) / ray.dist; }

// Adds to dL/d(direction) what SH coefficients x, k to k + 3 or k alone, have in it.
void add_v_dir(inout vec3 v_dir, mat4x3 x, uint k, bool all, vec3 dir, vec3 v_color) {
    mat4x3 slope = sh_basis_grad4(dir, k);
    v_dir += slope[0] * dot(x[0], v_color);
    if (!all) return;
    v_dir += slope[1] * dot(x[1], v_color);
    v_dir += slope[2] * dot(x[2], v_color);
    v_dir += slope[3] * dot(x[3], v_color);
}

// Hands the gradients of SH coefficients k to k + 3, or of k alone, to step_four() with the learning rates of the first
// and the others.
void coefficients_bwd(uint k, uint i, bool all, float lr_first, float lr);

// All SH coefficients that are trained.
void color_bwd(uint i) {
    uint degree = params[0].view.sh_degree;
    float lr_sh0 = params[0].lr_sh0, lr_shn = params[0].lr_shn;
    uint n = (degree + 1u) * (degree + 1u);
    uint k = 0u;
    for (; k + 4u <= n; k += 4u) coefficients_bwd(k, i, true, k == 0u ? lr_sh0 : lr_shn, lr_shn);
    if (k < n) coefficients_bwd(k, i, false, k == 0u ? lr_sh0 : lr_shn, lr_shn);
}

// dL/d(2D covariance) as a symmetric matrix (xx, xy, yy), xy counted once per triangle, from dL/d(conic) and
// dL/d(opacity).
vec3 covariance_vjp(View v, Footprint f, ProjectedGrad g, float opacity_raw, out float v_opacity_raw) {
    vec3 conic = vec3(f.cov.z, -f.cov.y, f.cov.x) / f.det;
    // -C V C with V the symmetric matrix of v_conic (its xy entry is shared by two elements).
    float vxy = 0.5 * g.conic.y;
    vec2 row0 = vec2(conic.x * g.conic.x + conic.y * vxy, conic.x * vxy + conic.y * g.conic.z);
    vec2 row1 = vec2(conic.y * g.conic.x + conic.z * vxy, conic.y * vxy + conic.z * g.conic.z);
    vec3 v_cov = -vec3(row0.x * conic.x + row0.y * conic.y, row0.x * conic.y + row0.y * conic.z,
                      row1.x * conic.y + row1.y * conic.z);
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

// Gradient of the geometry x of a splat that the view sees, before activation of opacity: logit_opacity is
// dL/d(opacity). v_mean is what the mean has through colour.
Geometry geometry_bwd(uint view_id, Geometry x, ProjectedGrad g, vec3 v_mean) {
    View v = params[view_id].view;
    mat3 w = view_rotation(v);
    vec3 point = w * x.mean + v.trans;
    vec3 scales = exp(x.log_scales);
    float norm = length(x.quat);
    vec4 unit = x.quat / norm;
    mat3 rotation = quat_rotation(unit);
#ifdef LENS
    // Up to the lens everything goes on in its plane, where focal lengths are 1.
    mat2 focal = lens_focal(v);
    if (SHUTTER) { // the row's pose and the shear are held: see shutter.glsl
        Row r = row_of(v, point);
        w = r.turn * w;
        point = r.point;
        focal = r.shear * focal;
    }
    v = plane_view(v);
    vec2 u = project_point(v, point);
    mat2 slope = bend(u).slope, to_image = focal * slope;
#endif
    mat3x2 jacobian = projection_jacobian(v, point);
    mat3x2 jw = jacobian * w;
#ifdef LENS
    Footprint f = footprint(to_image * jw, rotation, scales);
#else
    Footprint f = footprint(jw, rotation, scales);
#endif
    float v_opacity;
    vec3 v_cov = covariance_vjp(v, f, g, sigmoid(x.logit_opacity), v_opacity);
    mat2 v_cov2 = mat2(v_cov.x, v_cov.y, v_cov.y, v_cov.z);
    // cov = sum b_k b_k^T, b_k = s_k J W R_k.
    vec2 v_b[3] = vec2[](2.0 * v_cov2 * f.b0, 2.0 * v_cov2 * f.b1, 2.0 * v_cov2 * f.b2);
#ifdef LENS
    // b_k = A a_k, with A the lens's Jacobian, which has no inverse where the lens folds, and a_k in the plane.
    mat2 v_lens = mat2(0.0);
    for (int k = 0; k < 3; k++) {
        v_lens += scales[k] * outerProduct(v_b[k], jw * rotation[k]);
        v_b[k] = v_b[k] * to_image;
    }
#endif
    vec3 v_log_scales;
    mat3 v_rotation;
    mat3x2 v_jacobian = mat3x2(0.0);
    for (int k = 0; k < 3; k++) {
        vec3 axis = w * rotation[k];
        v_log_scales[k] = scales[k] * dot(v_b[k], jacobian * axis);
        v_rotation[k] = scales[k] * (v_b[k] * jw);
        v_jacobian += scales[k] * outerProduct(v_b[k], axis);
    }
#ifdef LENS
    g.mean2d = bend_vjp(u, slope, g.mean2d * focal, transpose(focal) * v_lens);
#endif
    vec3 v_point = g.mean2d * jacobian_at_mean(v, point, jacobian) + jacobian_vjp(v, point, v_jacobian);
    Geometry out_g = no_geometry();
    out_g.mean = v_mean;
    out_g.mean += v_point * w;
    out_g.quat = quat_rotation_vjp(unit, norm, v_rotation);
    out_g.log_scales = v_log_scales;
    out_g.logit_opacity = v_opacity;
    return out_g;
}

// Weights of one splat's opacity and of each of its scales in the loss; 0 where the loss has no such term.
struct Penalty {
    float opacity;
    float scale;
};

#ifdef DEPTH
// Gradient of a mean, given that of 1 / camera z.
vec3 inverse_depth_vjp(uint view_id, vec3 mean, float v_inverse) {
    View v = params[view_id].view;
    vec3 axis = vec3(v.rot[6], v.rot[7], v.rot[8]);
    float depth = dot(axis, mean) + v.trans.z;
    return -v_inverse / (depth * depth) * axis;
}
#endif

// How far away a splat of the far shell is, 1 for all others. What is the same from every camera may as well stand at a
// distance of 1: its size counts as if it did, and it moves as far.
float shell_unit(vec3 mean) {
    float distance = NOISE && params[0].shell > 0.0 ? length(mean) : 0.0;
    return NOISE && distance > params[0].shell ? distance : 1.0;
}

// Adds the penalties' gradients to g, that of the geometry x, takes it through the activation of opacity and hands it
// on.
void penalised_bwd(uint i, Geometry x, Geometry g, Penalty penalty) {
    if (penalty.opacity != 0.0) g.logit_opacity += penalty.opacity;
    if (penalty.scale != 0.0) g.log_scales += penalty.scale / shell_unit(x.mean) * exp(x.log_scales);
    float opacity = sigmoid(x.logit_opacity);
    g.logit_opacity = g.logit_opacity * opacity * (1.0 - opacity);
    step_geometry(i, x, g);
}

#endif
