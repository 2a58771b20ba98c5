// A camera whose lens bends its picture. Splats are projected as without the lens, to a plane of focal length 1: by the
// camera model's EWA, with its limits. The lens then moves each splat's place, and its own Jacobian shapes the
// covariance, so that what other programs draw without a lens is what was trained. Outside of what the photo shows,
// where a lens may do anything, it goes on as at the border: large splats there reach into the picture. The includer
// declares
//   lens[0]     the lens
//   SHUTTER     whether cameras move while they take their photos: shutter.glsl
#ifndef LENS_GLSL
#define LENS_GLSL

// Where the lens takes a place of the plane, in focal lengths from the principal point, and its Jacobian there.
struct Bent {
    vec2 at;
    mat2 slope;
};

// F = (1 + num[0] s + num[1] s^2 ...) / (1 + den[0] s ...) and its first two derivatives by s = r^2.
vec3 radial(float s) {
    vec3 n = vec3(0.0), d = vec3(0.0);      // value, derivative, half the second one: Horner's scheme for all three
    for (int i = 5; i >= 0; i--) n = vec3(n.x * s + lens[0].num[i], n.y * s + n.x, n.z * s + n.y);
    for (int i = 2; i >= 0; i--) d = vec3(d.x * s + lens[0].den[i], d.y * s + d.x, d.z * s + d.y);
    n = vec3(n.x * s + 1.0, n.y * s + n.x, 2.0 * (n.z * s + n.y));
    d = vec3(d.x * s + 1.0, d.y * s + d.x, 2.0 * (d.z * s + d.y));
    float f = n.x / d.x;
    float f1 = (n.y - f * d.y) / d.x;
    return vec3(f, f1, (n.z - 2.0 * f1 * d.y - f * d.z) / d.x);
}

mat2 radial_slope(vec2 u, vec3 f) { return mat2(f.x) + 2.0 * f.y * outerProduct(u, u); }

// Tangential and prism terms (Brown 1966).
vec2 shift_of_lens(vec2 w) {
    float s = dot(w, w), p1 = lens[0].p1, p2 = lens[0].p2, xy = 2.0 * w.x * w.y;
    return vec2(p1 * xy + p2 * (s + 2.0 * w.x * w.x), p2 * xy + p1 * (s + 2.0 * w.y * w.y)) +
           s * (lens[0].prism + s * lens[0].prism4);
}

mat2 shift_slope(vec2 w) {
    float p1 = lens[0].p1, p2 = lens[0].p2;
    vec2 q = 2.0 * (lens[0].prism + 2.0 * dot(w, w) * lens[0].prism4);
    float mixed = 2.0 * (p1 * w.x + p2 * w.y);
    // By columns: what changes with w.x, then with w.y.
    return mat2(2.0 * p1 * w.y + 6.0 * p2 * w.x + q.x * w.x, mixed + q.y * w.x,
                mixed + q.x * w.y, 2.0 * p2 * w.x + 6.0 * p1 * w.y + q.y * w.y);
}

// The place of the photo's plane that is nearest to u.
vec2 shown(vec2 u) { return clamp(u, lens[0].lo, lens[0].hi); }

Bent bend(vec2 u) {
    vec2 c = shown(u);
    vec3 f = radial(dot(c, c));
    vec2 a = f.x * c;
    mat2 slope = radial_slope(c, f);
    bool after = (lens[0].flags & LENS_AFTER) != 0u;
    mat2 more = shift_slope(after ? a : c);
    slope += after ? more * slope : more;
    return Bent(a + shift_of_lens(after ? a : c) + slope * (u - c), slope);
}

// Gradient of u, which the photo shows, through bend(u).slope, given that of the Jacobian's elements.
vec2 slope_vjp(vec2 u, mat2 g) {
    vec3 f = radial(dot(u, u));
    mat2 slope = radial_slope(u, f);
    bool after = (lens[0].flags & LENS_AFTER) != 0u;
    vec2 w = after ? f.x * u : u;
    mat2 v_shift = after ? g * transpose(slope) : g;
    mat2 v_radial = after ? g + transpose(shift_slope(w)) * g : g;
    // Rows of v_shift: of what the lens adds to x, and to y.
    vec2 gx = vec2(v_shift[0].x, v_shift[1].x), gy = vec2(v_shift[0].y, v_shift[1].y);
    float p1 = lens[0].p1, p2 = lens[0].p2, s = dot(w, w), mixed = gx.y + gy.x;
    vec2 q = 2.0 * (lens[0].prism + 2.0 * s * lens[0].prism4);
    vec2 v_w = 2.0 * vec2(3.0 * p2 * gx.x + p1 * mixed + p2 * gy.y, p1 * gx.x + p2 * mixed + 3.0 * p1 * gy.y) +
               q.x * gx + q.y * gy +
               8.0 * (lens[0].prism4.x * dot(gx, w) + lens[0].prism4.y * dot(gy, w)) * w;
    vec2 v_u = after ? transpose(slope) * v_w : v_w;
    vec2 gu = v_radial * u;
    float along = dot(u, gu);
    return v_u + (2.0 * f.y * (v_radial[0].x + v_radial[1].y) + 4.0 * f.z * along) * u +
           2.0 * f.y * (gu + u * v_radial);
}

// From focal lengths to pixels.
mat2 lens_focal(View v) { return mat2(v.focal.x, 0.0, v.focal.x * lens[0].skew, v.focal.y); }

// The view that projects to the plane.
View plane_view(View v) {
    v.focal = vec2(1.0);
    v.center = vec2(0.0);
    return v;
}

// What splats are in front of each other by: camera z, or to the sides and behind, where z says nothing, a share of the
// distance that goes on from z. 0 where a splat is too near to be seen: by z, or, where the lens is wide, by the
// distance at every angle. By z, splats just off the side would vanish between others as near that are seen.
float lens_depth(vec3 p, float near) {
    if ((lens[0].flags & LENS_WIDE) == 0u) return p.z > near ? p.z : 0.0;
    float distance = length(p);
    return distance > near ? max(p.z, LENS_SIDE * distance) : 0.0;
}

// Whether the lens sees camera point p.
bool lens_sees(View v, vec3 p) {
    vec2 u = project_point(plane_view(v), p);
    return dot(u, u) <= lens[0].limit2;
}

vec2 lens_point(View v, vec3 p) { return lens_focal(v) * bend(project_point(plane_view(v), p)).at + v.center; }

// d(image) / d(camera point) of what is splatted.
mat3x2 lens_jacobian(View v, vec3 p) {
    View plane = plane_view(v);
    return lens_focal(v) * bend(project_point(plane, p)).slope * projection_jacobian(plane, p);
}

// Gradient of u through where the lens takes it and through the Jacobian there, given those of both. Outside of what
// the photo shows, the place follows the Jacobian, which moves along the border alone.
vec2 bend_vjp(vec2 u, mat2 slope, vec2 v_at, mat2 v_slope) {
    vec2 c = shown(u);
    return v_at * slope + vec2(equal(c, u)) * slope_vjp(c, v_slope + outerProduct(v_at, u - c));
}

// Gradient by coefficient i of the radial factor's numerator, given those of the place that the lens takes c to and of
// its Jacobian there: F u and F I + 2 F' u u^T, with F changing by s^(i + 1) / D.
float radial_vjp(uint i, vec2 c, vec2 v_at, mat2 v_slope) {
    float s = dot(c, c), power = 1.0, d = 0.0, d1 = 0.0;
    for (int k = 2; k >= 0; k--) {
        d1 = d1 * s + d;
        d = d * s + lens[0].den[k];
    }
    d1 = d1 * s + d;
    d = d * s + 1.0;
    for (uint k = 0u; k < i; k++) power *= s;
    float h = s * power / d, h1 = (float(i + 1u) * power - h * d1) / d;
    return h * (dot(c, v_at) + v_slope[0].x + v_slope[1].y) + 2.0 * h1 * dot(c, v_slope * c);
}

// Likewise by p1 and p2, where the shift is a function of c.
vec2 tangential_vjp(vec2 c, vec2 v_at, mat2 v_slope) {
    vec2 xy = vec2(2.0 * c.x * c.y), own = vec2(dot(c, c)) + 2.0 * c.yx * c.yx;
    vec2 mixed = 2.0 * c * (v_slope[0].y + v_slope[1].x);
    return v_at * xy + v_at.yx * own + mixed +
           c.yx * (vec2(2.0, 6.0) * v_slope[0].x + vec2(6.0, 2.0) * v_slope[1].y);
}

// Gradient by what is learnt of the lens (pose.glsl): by the logarithm of the focal lengths, by the principal point in
// pixels, and by the coefficients as they are. Given are where the plane has a point, and the gradients of the image
// of that and of the Jacobian from the plane to the image.
void lens_vjp(View v, vec2 u, vec2 v_mean, mat2 v_to_image, out float g[LENS_NUMBERS]) {
    mat2 focal = lens_focal(v);
    Bent b = bend(u);
    mat2 to_image = focal * b.slope;
    g[0] = dot(v_mean, focal * b.at) + dot(v_to_image[0], to_image[0]) + dot(v_to_image[1], to_image[1]);
    g[1] = v_mean.x;
    g[2] = v_mean.y;
    // Outside of what the photo shows, places follow the Jacobian.
    vec2 c = shown(u), v_at = v_mean * focal;
    mat2 v_slope = transpose(focal) * v_to_image + outerProduct(v_at, u - c);
    bool fisheye = v.camera_model == CAMERA_FISHEYE;
    for (uint k = 0u; k < 4u; k++) g[3u + k] = k < 2u || fisheye ? radial_vjp(k, c, v_at, v_slope) : 0.0;
    if (fisheye) return;
    vec2 p = tangential_vjp(c, v_at, v_slope);
    g[5] = p.x;
    g[6] = p.y;
}

// By how much coefficient k of the four that are learnt moves what lies at the corner of the photo, in focal lengths,
// per unit: numbers are learnt in focal lengths there, as turns are.
float bend_unit(View v, uint k) {
    float r = lens[0].radius;
    if (v.camera_model != CAMERA_FISHEYE && k >= 2u) return r * r;
    float unit = r * r * r;
    for (uint i = 0u; i < k; i++) unit *= r * r;
    return unit;
}

#endif
