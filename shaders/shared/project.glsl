// What an invocation of project does, whatever the storage of the model. The includer declares the kernel's interface, row() and row3().
#ifndef PROJECT_GLSL
#define PROJECT_GLSL

vec3 sh_color(vec3 dir, uint degree, uint i) {
    vec3 c = vec3(0.5);
    uint n = (degree + 1u) * (degree + 1u);
    uint k = 0u;
    for (; k + 4u <= n; k += 4u) {
        vec4 basis = sh_basis4(dir, k);
        uint r = ROW_SH + 3u * k;
        vec3 c0 = row3(r, i), c1 = row3(r + 3u, i), c2 = row3(r + 6u, i), c3 = row3(r + 9u, i);
        c += basis.x * c0;
        c += basis.y * c1;
        c += basis.z * c2;
        c += basis.w * c3;
    }
    if (k < n) c += sh_basis4(dir, k).x * row3(ROW_SH + 3u * k, i);
    return c;
}

// Fills p and e and returns true where the view can see splat i. Every guard is phrased so that a NaN fails it.
bool visible(View v, uint i, out Projected p, out vec3 e, out float depth) {
    mat3 w = view_rotation(v);
    vec3 mean = row3(ROW_MEANS, i);
    vec3 point = w * mean + v.trans;
    depth = point.z;
    if (!(depth > v.near && depth < 3.4e38)) return false;
    vec4 q = vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i));
    float norm = length(q);
    if (!(norm > 0.0 && norm < 3.4e38)) return false;
    Footprint f = footprint(projection_jacobian(v, point) * w, quat_rotation(q / norm), exp(row3(ROW_LOG_SCALES, i)));
    if (!(f.det > 0.0 && f.det < 3.4e38)) return false;
    p.conic = vec3(f.cov.z, -f.cov.y, f.cov.x) / f.det;
    p.mean2d = project_point(v, point);
    p.opacity = sigmoid(row(ROW_LOGIT_OPACITY, i));
    if (v.antialiased != 0u) p.opacity *= sqrt(f.det_raw / f.det);
    if (!(p.opacity >= ALPHA_THRESHOLD)) return false;
    float t = 2.0 * log(255.0 * p.opacity) + EXTENT_SLACK;
    e = vec3(sqrt(t * f.cov.x), sqrt(t * f.cov.z), sqrt(t * f.det / f.cov.z));
    ivec2 rows = tile_rows(p.mean2d, e, v.tile_height);
    ivec2 columns = tile_interval(p.mean2d.x - e.x, p.mean2d.x + e.x, v.tile_width);
    if (rows.y <= rows.x || columns.y <= columns.x) return false;
    vec3 origin = -(v.trans * w);   // camera centre: -R^T t
    vec3 color = sh_color(normalize(mean - origin), v.sh_degree, i);
    p.color = max(color, vec3(0.0));
    // Judged before max(), which may swallow a NaN.
    return abs(color.x) < 3.4e38 && abs(color.y) < 3.4e38 && abs(color.z) < 3.4e38;
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE]) return;
    Projected p;
    vec3 e;
    float depth;
    if (!visible(params[0].view, i, p, e, depth)) {
        depth_keys[id] = CULLED;
        return;
    }
    projected[id] = p;
    extents[id] = e;
    depth_keys[id] = floatBitsToUint(depth);   // depth > 0: the bits of positive floats order as the floats do
}

#endif
