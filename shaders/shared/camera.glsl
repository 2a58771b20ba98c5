// Projection of a splat: world -> camera -> image, its Jacobian, and the 2D covariance (EWA, Zwicker et al. 2001), with
// derivatives.
#ifndef CAMERA_GLSL
#define CAMERA_GLSL
#include "params.glsl"

mat3 view_rotation(View v) {
    // GLSL matrices are built from columns, `rot` is row-major.
    return mat3(v.rot[0], v.rot[3], v.rot[6], v.rot[1], v.rot[4], v.rot[7], v.rot[2], v.rot[5], v.rot[8]);
}

// Rotation of the unit quaternion q = (w, x, y, z).
mat3 quat_rotation(vec4 q) {
    float w = q.x, x = q.y, y = q.z, z = q.w;
    return mat3(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y),
                2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x),
                2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y));
}

// Equidistant fisheye: theta / r and the factors of its Jacobian, with r^2 = x^2 + y^2.
struct FisheyeTerms {
    float s;    // theta / r
    float h;    // 1 / (r^2 + z^2)
    float k;    // 2 ds / d(r^2)
    float dk;   // dk / d(r^2)
};

// atan2(r, z) for r >= 0 to 2 ulp. GLSL's own atan may be 4096 ulp off, which shows in fisheye pictures. Range
// reduction at tan(pi/8) and the minimax polynomial of the Cephes library's atanf (Moshier 1989).
float angle_off_axis(float r, float z) {
    bool steep = r > abs(z);
    float x = steep ? abs(z) / r : r / abs(z);
    bool upper = x > 0.41421356;
    float t = upper ? (x - 1.0) / (x + 1.0) : x;
    float q = t * t;
    float a = ((8.05374449538e-2 * q - 1.38776856032e-1) * q + 1.99777106478e-1) * q - 3.33329491539e-1;
    a = (upper ? 0.7853981633974483 : 0.0) + (a * q * t + t);
    if (steep) a = 1.5707963267948966 - a;
    return z < 0.0 ? 3.141592653589793 - a : a;
}

FisheyeTerms fisheye_terms(vec3 p) {
    FisheyeTerms f;
    float r2 = dot(p.xy, p.xy);
    f.h = 1.0 / (r2 + p.z * p.z);
    float q = r2 / (p.z * p.z);
    if (p.z > 0.0 && q < 0.01) {
        // The closed forms below are 0/0 on the axis; these are their power series in q.
        float iz = 1.0 / p.z;
        float iz3 = iz * iz * iz;
        f.s = iz * (1.0 + q * (-1.0 / 3.0 + q * (1.0 / 5.0 + q * (-1.0 / 7.0 + q / 9.0))));
        f.k = iz3 * (-2.0 / 3.0 + q * (4.0 / 5.0 + q * (-6.0 / 7.0 + q * (8.0 / 9.0))));
        f.dk = iz3 * iz * iz * (4.0 / 5.0 + q * (-12.0 / 7.0 + q * (8.0 / 3.0 + q * (-40.0 / 11.0))));
        return f;
    }
    float r = sqrt(r2);
    f.s = angle_off_axis(r, p.z) / r;
    f.k = (p.z * f.h - f.s) / r2;
    f.dk = (-p.z * f.h * f.h - 1.5 * f.k) / r2;
    return f;
}

// x/z and y/z limited to the image plus a margin, where the pinhole Jacobian is evaluated.
vec2 jacobian_point(View v, vec3 p) {
#ifdef LENS
    return clamp(p.xy / p.z, lens[0].lo - lens[0].margin, lens[0].hi + lens[0].margin);
#endif
    vec2 size = vec2(v.width, v.height);
    vec2 margin = JACOBIAN_MARGIN * 0.5 * size / v.focal;
    vec2 hi = (size - v.center) / v.focal + margin;
    vec2 lo = v.center / v.focal + margin;
    return clamp(p.xy / p.z, -lo, hi);
}

vec2 project_point(View v, vec3 p) {
    if (v.camera_model == CAMERA_FISHEYE) return v.focal * fisheye_terms(p).s * p.xy + v.center;
    return v.focal * p.xy / p.z + v.center;
}

// d(image) / d(camera point), 2 rows, 3 columns.
mat3x2 projection_jacobian(View v, vec3 p) {
    if (v.camera_model == CAMERA_FISHEYE) {
        FisheyeTerms f = fisheye_terms(p);
        return mat3x2(v.focal.x * (f.s + p.x * p.x * f.k), v.focal.y * p.x * p.y * f.k,
                      v.focal.x * p.x * p.y * f.k, v.focal.y * (f.s + p.y * p.y * f.k),
                      -v.focal.x * p.x * f.h, -v.focal.y * p.y * f.h);
    }
    float rz = 1.0 / p.z;
    vec2 t = jacobian_point(v, p);
    return mat3x2(v.focal.x * rz, 0.0, 0.0, v.focal.y * rz, -v.focal.x * t.x * rz, -v.focal.y * t.y * rz);
}

// d(mean2d) / d(camera point): the projection's own Jacobian, without the limit on where the covariance's is taken.
mat3x2 jacobian_at_mean(View v, vec3 p, mat3x2 jacobian) {
    if (v.camera_model == CAMERA_FISHEYE) return jacobian;
    jacobian[2] = -v.focal * p.xy / (p.z * p.z);
    return jacobian;
}

// Gradient of the camera point p through the Jacobian, given v_j = dL/dJ.
vec3 jacobian_vjp(View v, vec3 p, mat3x2 v_j) {
    if (v.camera_model == CAMERA_FISHEYE) {
        FisheyeTerms f = fisheye_terms(p);
        float x = p.x, y = p.y, xx = x * x, yy = y * y, xy = x * y, hh = f.h * f.h;
        vec3 d00 = vec3(3.0 * x * f.k + 2.0 * xx * x * f.dk, y * f.k + 2.0 * xx * y * f.dk, -f.h + 2.0 * xx * hh);
        vec3 d11 = vec3(x * f.k + 2.0 * yy * x * f.dk, 3.0 * y * f.k + 2.0 * yy * y * f.dk, -f.h + 2.0 * yy * hh);
        vec3 dxy = vec3(y * f.k + 2.0 * xx * y * f.dk, x * f.k + 2.0 * yy * x * f.dk, 2.0 * xy * hh);
        vec3 d02 = vec3(-f.h + 2.0 * xx * hh, 2.0 * xy * hh, 2.0 * x * p.z * hh);
        vec3 d12 = vec3(2.0 * xy * hh, -f.h + 2.0 * yy * hh, 2.0 * y * p.z * hh);
        return v.focal.x * (v_j[0].x * d00 + v_j[1].x * dxy + v_j[2].x * d02) +
               v.focal.y * (v_j[0].y * dxy + v_j[1].y * d11 + v_j[2].y * d12);
    }
    float rz = 1.0 / p.z;
    vec2 t = jacobian_point(v, p);
    vec2 free = vec2(equal(t, p.xy / p.z));   // 0 where the limit holds: t does not move with p
    vec2 v_t = -v.focal * v_j[2] * rz;        // dL/dt
    vec3 g;
    g.xy = free * v_t * rz;
    g.z = -rz * rz * (v.focal.x * v_j[0].x + v.focal.y * v_j[1].y) + rz * rz * dot(v.focal * v_j[2], t) -
        dot(free * v_t, t) * rz;
    return g;
}

#ifdef LENS
#include "lens.glsl"
#include "shutter.glsl"
#endif

// The 2D covariance before the low-pass filter as three columns b_k = J W R_k s_k: cov = sum b_k b_k^T.
struct Footprint {
    vec2 b0, b1, b2;
    vec3 cov;       // xx, xy, yy with EPS2D added to the diagonal
    float det;      // of cov; from sums of squares, so it never cancels below zero
    float det_raw;  // before the filter
};

Footprint footprint(mat3x2 jw, mat3 rotation, vec3 scales) {
    Footprint f;
    f.b0 = scales.x * (jw * rotation[0]);
    f.b1 = scales.y * (jw * rotation[1]);
    f.b2 = scales.z * (jw * rotation[2]);
    vec3 u = vec3(f.b0.x, f.b1.x, f.b2.x);
    vec3 w = vec3(f.b0.y, f.b1.y, f.b2.y);
    vec3 c = cross(u, w);
    f.det_raw = dot(c, c);
    float xx = dot(u, u), yy = dot(w, w);
    f.cov = vec3(xx + EPS2D, dot(u, w), yy + EPS2D);
    f.det = f.det_raw + EPS2D * (xx + yy) + EPS2D * EPS2D;
    return f;
}

float sigmoid(float x) {
    return 1.0 / (1.0 + exp(-x));
}

#endif
