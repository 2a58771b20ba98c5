#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// normal_loss compares the tilt of the surface that a picture shows with what is known of the photo's normals. The line
// between the points of two pixels, beside or below each other, should be at right angles to the normal there. The loss
// is the sum over such pairs of a smooth |sine| of the angle that is missing, divided by the number of pixels. A point
// is ray / inverse depth, so the direction of that line follows from the inverse depths alone, whatever their unit.
// Where depths jump, the sine hardly changes with them: edges do not pull. A pair counts as far as its pixels are
// opaque.
//   reads params table target render; reads and writes depths v_render
// One workgroup a tile. Each pixel works out the pairs that it is in; a pixel that a mask leaves out is in none.
#include "params.glsl"
#include "dispatch.glsl"
#include "ray.glsl"

layout(local_size_x = 256) in;  // TILE_PIXELS
layout(constant_id = 0) const bool TARGET_FLOAT = false;
layout(constant_id = 1) const bool MASKED = false;
layout(constant_id = 2) const bool PACKED = false;
layout(constant_id = 3) const bool SHRUNK = false;

layout(push_constant, scalar) uniform Push {
    uint n_heads;       // of a view in the table
    float weight;       // of the mean in the loss before the first step
    float log2_final;   // of the share of the weight that is left after decay_steps
    float decay_steps;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
// [n_views][n_heads] the last one: where a view's known normals begin, 0: none are known. There: s; columns;
// [rows][columns] those of cells of 2^s x 2^s pixels of the photo, away from the camera, 0: not known
layout(binding = 1, scalar) readonly buffer Table { uint table[]; };
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };          // the photo, see target.glsl
layout(binding = 3, scalar) readonly buffer Render { vec4 render[]; };          // [P]
// [P][2] sum of weight / depth, dL/d(it)
layout(binding = 4, scalar) buffer Depths { float depths[]; };
layout(binding = 5, scalar) buffer VRender { vec4 v_render[]; };                // [P] dL/d(rgb, alpha)
#include "target.glsl"

const int REACH = 1;                // px between the pixels of a pair
const float LEAST_ALIKE = 0.9;      // cosine between the normals of a pair: else there is an edge
const float LEAST_ALPHA = 0.01;
const float SOFT_SINE = 0.05;       // below it the loss is about quadratic

struct Pixel {
    float sum;      // of weight / depth
    float alpha;
    vec3 ray;
    vec3 normal;    // 0: not known
};

// The normal of a word, by octahedral mapping.
vec3 unpack_normal(uint word) {
    vec2 e = unpackSnorm2x16(word);
    vec3 n = vec3(e, 1.0 - abs(e.x) - abs(e.y));
    if (n.z < 0.0) n.xy = (1.0 - abs(n.yx)) * mix(vec2(-1.0), vec2(1.0), greaterThanEqual(n.xy, vec2(0.0)));
    return word == 0u ? vec3(0.0) : normalize(n);
}

// The normal that is known of a pixel, or 0.
vec3 known_normal(ivec2 p) {
    uint at = table[(params[0].view_id + 1u) * pc.n_heads - 1u];
    if (at == 0u) return vec3(0.0);
    uint level = params[0].level;
    uvec2 cell = ((uvec2(p) << level) + (1u << level >> 1u)) >> table[at];
    return unpack_normal(table[at + 2u + cell.y * table[at + 1u] + cell.x]);
}

Pixel pixel_at(View v, ivec2 p) {
    Pixel x = Pixel(0.0, 0.0, vec3(0.0), vec3(0.0));
    if (p.x < 0 || p.y < 0 || p.x >= int(v.width) || p.y >= int(v.height)) return x;
    uint i = uint(p.y) * v.width + uint(p.x);
    if (MASKED && !photo_counts(p, i, v.width * v.height)) return x;
    return Pixel(depths[2u * i], 1.0 - render[i].w, ray_of(v, vec2(p) + 0.5), known_normal(p));
}

// The gradient of a pair's loss by the logarithm of a's inverse depth. The gradient by that of b's is its negative.
float pull(Pixel a, Pixel b) {
    if (!(dot(a.normal, b.normal) > LEAST_ALIKE) || !(min(a.alpha, b.alpha) > LEAST_ALPHA) ||
        !(min(a.sum, b.sum) > 0.0)) return 0.0;
    vec3 n = normalize(a.normal + b.normal);
    float of_a = a.sum * b.alpha;
    vec3 between = of_a * b.ray - b.sum * a.alpha * a.ray;      // from a to b, times both inverse depths and alphas
    float size = length(between);
    if (!(size > 0.0)) return 0.0;
    between /= size;
    float sine = dot(n, between);
    float slope = of_a / size * dot(n - sine * between, b.ray);
    return a.alpha * b.alpha * sine * inversesqrt(sine * sine + SOFT_SINE * SOFT_SINE) * slope;
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint lid = gl_LocalInvocationID.x;
    ivec2 p = ivec2(uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE +
                    uvec2(lid % TILE_SIZE, lid / TILE_SIZE));
    if (p.x >= int(v.width) || p.y >= int(v.height)) return;
    Pixel x = pixel_at(v, p);
    if (x.normal == vec3(0.0) || !(x.sum > 0.0 && x.alpha > 0.0)) return;
    float g = pull(x, pixel_at(v, p + ivec2(REACH, 0))) + pull(x, pixel_at(v, p - ivec2(REACH, 0))) +
        pull(x, pixel_at(v, p + ivec2(0, REACH))) + pull(x, pixel_at(v, p - ivec2(0, REACH)));
    float progress = min(1.0, float(params[0].step) / pc.decay_steps);
    g *= pc.weight * exp2(pc.log2_final * progress) / float(v.width * v.height);
    uint i = uint(p.y) * v.width + uint(p.x);
    depths[2u * i + 1u] += g / x.sum;
    v_render[i].a -= g / x.alpha;
}
