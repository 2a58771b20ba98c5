// What a workgroup of project does, whatever the storage of the model. The includer declares the kernel's interface,
// what rows.glsl reads with.
#ifndef PROJECT_GLSL
#define PROJECT_GLSL

// A shape's two words of four numbers lie side by side. They are gathered here, so that neighbours write neighbouring
// words: were each invocation to write its own splat's, the words of a subgroup would go to twice the sectors.
const uint SPLATS = 128u;       // of a workgroup
shared vec4 s_shapes[SPLATS * 2u];
shared bool s_seen[SPLATS];

// Adds four coefficients times their basis values to c, one after the other.
void add_sh4(inout vec3 c, vec4 basis, mat4x3 x) {
    c += basis.x * x[0];
    c += basis.y * x[1];
    c += basis.z * x[2];
    c += basis.w * x[3];
}

// As many coefficients as possible are on their way from memory at a time.
vec3 sh_color(vec3 dir, uint degree, uint i) {
    vec3 c = vec3(0.5);
    uint n = (degree + 1u) * (degree + 1u);
    uint k = 0u;
    for (; k + 8u <= n; k += 8u) {
        Sh4 a = load_sh4(k, i, true), b = load_sh4(k + 4u, i, true);
        add_sh4(c, sh_basis4(dir, k), values(a));
        add_sh4(c, sh_basis4(dir, k + 4u), values(b));
    }
    if (k + 4u <= n) {
        add_sh4(c, sh_basis4(dir, k), values(load_sh4(k, i, true)));
        k += 4u;
    }
    if (k < n) c += sh_basis4(dir, k).x * values(load_sh4(k, i, false))[0];
    return c;
}

// Returns true where the view can see splat i, and keeps what is to be written. Every guard is phrased so that a NaN
// fails it. All parameters but the mean and the colour are loaded and judged together: one after the other, each would
// wait for memory.
bool visible(View v, uint i, out float depth, out vec4 paint) {
    mat3 w = view_rotation(v);
    vec3 mean = row3(ROW_MEANS, i);
    vec3 point = w * mean + v.trans;
#ifdef LENS
    // What is seen is judged by the pose of the row, too. Colours are those from the middle pose.
    mat2 shear;
    if (SHUTTER) {
        Row r = row_of(v, point);
        w = r.turn * w;
        point = r.point;
        shear = r.shear;
    }
    depth = lens_depth(point, v.near);
    if (!(depth > 0.0 && depth < 3.4e38) || !lens_sees(v, point)) return false;
#else
    depth = point.z;
    if (!(depth > v.near && depth < 3.4e38)) return false;
#endif
    vec4 q = vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i));
    vec3 log_scales = row3(ROW_LOG_SCALES, i);
    float opacity = sigmoid(row(ROW_LOGIT_OPACITIES, i));
    float norm = length(q);
    bool turned = norm > 0.0 && norm < 3.4e38;
#ifdef LENS
    mat3x2 jacobian = lens_jacobian(v, point);
    if (SHUTTER) jacobian = shear * jacobian;
    Footprint f = footprint(jacobian * w, quat_rotation(q / norm), exp(log_scales));
#else
    Footprint f = footprint(projection_jacobian(v, point) * w, quat_rotation(q / norm), exp(log_scales));
#endif
    if (v.widen > 0.0) {
        f.det += v.widen * (f.cov.x + f.cov.z) + v.widen * v.widen;
        f.cov.xz += v.widen;
    }
    bool flat_enough = f.det > 0.0 && f.det < 3.4e38;
    vec3 conic = vec3(f.cov.z, -f.cov.y, f.cov.x) / f.det;
#ifdef LENS
    vec2 mean2d = lens_point(v, point);
#else
    vec2 mean2d = project_point(v, point);
#endif
    if (v.antialiased != 0u) opacity *= sqrt(f.det_raw / f.det);
    bool opaque = opacity >= ALPHA_THRESHOLD;
    float t = 2.0 * log(255.0 * opacity) + EXTENT_SLACK;
    vec3 e = vec3(sqrt(t * f.cov.x), sqrt(t * f.cov.z), sqrt(t * f.det / f.cov.z));
    ivec2 rows = tile_rows(mean2d, e, v.tile_height);
    ivec2 columns = tile_interval(mean2d.x - e.x, mean2d.x + e.x, v.tile_width);
    bool on_image = rows.y > rows.x && columns.y > columns.x;
    if (!(turned && flat_enough && opaque && on_image)) return false;
    uint lid = gl_LocalInvocationID.x;
    vec4 words[2] = shape_words(Shape(mean2d, conic, e));
    s_shapes[2u * lid] = words[0];
    s_shapes[2u * lid + 1u] = words[1];
    vec3 origin = -(v.trans * view_rotation(v));    // camera centre: -R^T t; with SHUTTER of the middle pose
    vec3 color = sh_color(normalize(mean - origin), v.sh_degree, i);
    paint = vec4(opacity, max(color, 0.0));
    // Judged before max(), which may swallow a NaN.
    return abs(color.x) < 3.4e38 && abs(color.y) < 3.4e38 && abs(color.z) < 3.4e38;
}

// Projects what a workgroup has: the splats from `first` on of the n that there are. from is where its first one stands
// in the rows of the chunk.
void project_group(uint first, uint n, uint from) {
    uint lid = gl_LocalInvocationID.x;
    bool exists = first + lid < n;
    float depth = 0.0;
    bool seen = false;
    vec4 paint = vec4(0.0);
    if (exists) seen = visible(params[0].view, from + lid, depth, paint);
    // depth > 0: the bits of positive floats order as the floats do
    if (exists) depth_keys[first + lid] = seen ? floatBitsToUint(depth) : CULLED;
    if (seen) paints[first + lid] = paint;
    s_seen[lid] = seen;
    barrier();
    for (uint at = lid; at < SPLATS * 2u; at += SPLATS)
        if (s_seen[at / 2u]) shapes[first * 2u + at] = s_shapes[at];
}

#endif
