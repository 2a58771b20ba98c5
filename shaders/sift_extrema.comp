#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
// sift_extrema finds the extrema of differences between neighbouring levels of an octave, to a fraction of a pixel and
// of a level, and drops those of little contrast and those on edges (Lowe 2004, sections 3 and 4).
//   reads levels; writes points counts
// variant processor: an invocation walks down 4 columns, for processors, on which every access to memory is dear
// A workgroup a tile. Its extrema are in the order of their pixels, level by level.
#include "dispatch.glsl"
#include "sift.glsl"

#ifdef PROCESSOR
layout(local_size_x = 8) in;
#else
layout(local_size_x = 256) in;
#endif

layout(push_constant, scalar) uniform Push {
    SiftBand band;
    uint begin;         // row of the octave where the tiles begin
    uint end;           // and end
    uint first;         // tile of points and counts that is the first here
    float peak;         // least absolute difference
    float edge;         // greatest ratio of the principal curvatures
} pc;
layout(binding = 0, scalar) readonly buffer Levels { float levels[]; };         // [SIFT_LEVELS][rows][pitch]
layout(binding = 1, scalar) writeonly buffer Points { SiftPoint points[]; };    // [tiles][SIFT_SLOTS]
layout(binding = 2, scalar) writeonly buffer Counts { uint counts[]; };         // [tiles]

const uint DIFFERENCES = SIFT_LEVELS - 1u;
const uint SCALES = DIFFERENCES - 2u;
const uint SIDE_X = SIFT_TILE_X + 2u;
const uint SIDE_Y = SIFT_TILE_Y + 2u;
const uint TILE = SIFT_TILE_X * SIFT_TILE_Y;
const uint WORDS = SCALES * TILE / 32u;
const uint LISTED = 256u;   // extrema of a tile that are looked at, an invocation each
const uint STEPS = 5u;      // to where the difference is extremal
const float STEP = 0.6;     // px from a pixel from where on its neighbour is closer

#ifndef PROCESSOR
shared float s_difference[DIFFERENCES * SIDE_Y * SIDE_X];
#endif
shared uint s_found[WORDS];     // a bit for each pixel and level
shared uint s_listed[LISTED];   // those that have one
#ifndef PROCESSOR
shared uint s_good[LISTED / 32u];   // a bit for each that counts
#endif

// The difference of levels l + 1 and l at a pixel of the octave.
float difference(int l, ivec2 at) {
    at = clamp(at, ivec2(0, int(pc.band.first)), ivec2(pc.band.width, pc.band.first + pc.band.rows) - 1);
    uint i = (uint(l) * pc.band.rows + uint(at.y) - pc.band.first) * pc.band.pitch + uint(at.x);
    return levels[i + pc.band.rows * pc.band.pitch] - levels[i];
}

#ifndef PROCESSOR
// Whether a pixel of the tile is greater than its 26 neighbours, or smaller than all of them.
bool is_extremum(uint i) {
    float v = s_difference[i], least = v, most = v;
    if (abs(v) < 0.8 * pc.peak) return false;
    uint equal = 0u;
    for (uint l = 0u; l < 3u; l++)
        for (uint y = 0u; y < 3u; y++)
            for (uint x = 0u; x < 3u; x++) {
                float w = s_difference[i + (l * SIDE_Y + y) * SIDE_X + x - (SIDE_Y + 1u) * SIDE_X - 1u];
                least = min(least, w);
                most = max(most, w);
                equal += uint(w == v);
            }
    return equal == 1u && v == (v > 0.0 ? most : least);
}
#endif

// Where the parabola through a pixel's neighbours is extremal, from the pixel. What it has there more, and the ratio
// of its curvature's trace squared to its determinant, which is negative on a saddle.
vec3 offset_of(ivec2 p, int l, out float rise, out float ratio) {
    ivec2 ex = ivec2(1, 0), ey = ivec2(0, 1), exy = ivec2(1, 1), eyx = ivec2(1, -1);
    float v = difference(l, p), up = difference(l + 1, p), down = difference(l - 1, p);
    float right = difference(l, p + ex), left = difference(l, p - ex);
    float below = difference(l, p + ey), above = difference(l, p - ey);
    vec3 d = 0.5 * vec3(right - left, below - above, up - down);
    float xx = right + left - 2.0 * v, yy = below + above - 2.0 * v, ss = up + down - 2.0 * v;
    float xy = 0.25 * (difference(l, p + exy) + difference(l, p - exy) - difference(l, p + eyx) -
        difference(l, p - eyx));
    float xs = 0.25 * (difference(l + 1, p + ex) + difference(l - 1, p - ex) - difference(l + 1, p - ex) -
        difference(l - 1, p + ex));
    float ys = 0.25 * (difference(l + 1, p + ey) + difference(l - 1, p - ey) - difference(l + 1, p - ey) -
        difference(l - 1, p + ey));
    vec3 a = vec3(xx, xy, xs), b = vec3(xy, yy, ys), c = vec3(xs, ys, ss), bc = cross(b, c);
    float determinant = dot(a, bc);
    vec3 offset = determinant == 0.0 ? vec3(0.0) :
        -vec3(dot(d, bc), dot(d, cross(c, a)), dot(d, cross(a, b))) / determinant;
    rise = v + 0.5 * dot(d, offset);
    ratio = (xx + yy) * (xx + yy) / (xx * yy - xy * xy);
    return offset;
}

// Goes from an extremum to where it is; false if it is none that counts.
bool refine(ivec2 p, uint level, out SiftPoint found) {
    int l = int(level);
    ivec2 size = ivec2(pc.band.width, pc.band.height);
    float value, ratio;
    vec3 offset;
    for (uint i = 0u; i < STEPS; i++) {
        offset = offset_of(p, l, value, ratio);
        ivec2 go = ivec2(greaterThan(offset.xy, vec2(STEP))) - ivec2(lessThan(offset.xy, vec2(-STEP)));
        go = clamp(p + go, ivec2(1), size - 2) - p;
        if (go == ivec2(0) || i + 1u == STEPS) break;
        p += go;
    }
    vec3 at = vec3(p, l) + offset;
    found = SiftPoint(at.x, at.y, at.z, level);
    float most = (pc.edge + 1.0) * (pc.edge + 1.0) / pc.edge;
    return abs(value) > pc.peak && ratio >= 0.0 && ratio < most && all(lessThan(abs(offset), vec3(1.5))) &&
        all(greaterThanEqual(at, vec3(0.0))) && all(lessThanEqual(at.xy, vec2(size - 1)));
}

#ifdef PROCESSOR

const uint OWN = SIFT_TILE_X / gl_WorkGroupSize.x;  // columns of an invocation

shared uint s_n;
shared SiftPoint s_point[LISTED];
shared bool s_good[LISTED];

// A row of the differences of OWN columns.
struct Row {
    float v[SCALES * OWN];      // [SCALES][OWN]
    vec2 beside[SCALES * OWN];  // least and largest of its neighbours in the row: left, right, and in scales next to it
    vec2 all[SCALES * OWN];     // and of v
};

vec2 widen(vec2 range, vec2 other) {
    return vec2(min(range.x, other.x), max(range.y, other.y));
}

Row row_at(uint column[OWN + 2u], uint offset) {
    Row r;
    float d[DIFFERENCES][OWN + 2u];
    [[unroll]] for (uint c = 0u; c < OWN + 2u; c++) {
        float level[SIFT_LEVELS];
        [[unroll]] for (uint l = 0u; l < SIFT_LEVELS; l++)
            level[l] = levels[l * pc.band.rows * pc.band.pitch + offset + column[c]];
        [[unroll]] for (uint l = 0u; l < DIFFERENCES; l++) d[l][c] = level[l + 1u] - level[l];
    }
    [[unroll]] for (uint c = 0u; c < OWN; c++) {
        vec2 three[DIFFERENCES];
        [[unroll]] for (uint l = 0u; l < DIFFERENCES; l++)
            three[l] = vec2(min(min(d[l][c], d[l][c + 1u]), d[l][c + 2u]),
                max(max(d[l][c], d[l][c + 1u]), d[l][c + 2u]));
        [[unroll]] for (uint s = 0u; s < SCALES; s++) {
            uint i = s * OWN + c;
            r.v[i] = d[s + 1u][c + 1u];
            vec2 next = widen(three[s], three[s + 2u]);
            r.beside[i] = widen(next, vec2(min(d[s + 1u][c], d[s + 1u][c + 2u]), max(d[s + 1u][c], d[s + 1u][c + 2u])));
            r.all[i] = widen(next, three[s + 1u]);
        }
    }
    return r;
}

// Sets the bits of pixels that are greater than their 26 neighbours, or smaller than all of them.
void mark_extrema(ivec2 corner, ivec2 end) {
    ivec2 first = corner + ivec2(gl_LocalInvocationID.x * OWN, 0);
    uint column[OWN + 2u];
    [[unroll]] for (uint c = 0u; c < OWN + 2u; c++)
        column[c] = uint(clamp(first.x + int(c) - 1, 0, int(pc.band.width) - 1));
    Row above, here;
    for (int y = -1; y <= int(SIFT_TILE_Y); y++) {
        int row = clamp(first.y + y - int(pc.band.first), 0, int(pc.band.rows) - 1);
        Row below = row_at(column, uint(row) * pc.band.pitch);
        uint found = 0u;
        [[unroll]] for (uint i = 0u; i < SCALES * OWN; i++) {
            int x = first.x + int(i % OWN);
            vec2 others = widen(here.beside[i], widen(above.all[i], below.all[i]));
            bool extremal = abs(here.v[i]) >= 0.8 * pc.peak &&
                (here.v[i] > 0.0 ? here.v[i] > others.y : here.v[i] < others.x);
            found |= extremal && x > 0 && x < end.x ? 1u << i : 0u;
        }
        if (y < 1 || first.y + y - 1 <= 0 || first.y + y - 1 >= end.y) found = 0u;
        for (; found != 0u; found &= found - 1u) {
            uint i = findLSB(found);
            atomicOr(s_found[i / OWN * SIFT_TILE_Y + uint(y) - 1u],
                1u << gl_LocalInvocationID.x * OWN + i % OWN);
        }
        above = here;
        here = below;
    }
}

// Lists what has a bit in s_found, and returns how much that is.
uint list_found() {
    uint n = 0u;
    for (uint w = 0u; w < WORDS; w++)
        for (uint bits = s_found[w]; bits != 0u && n < LISTED; bits &= bits - 1u)
            s_listed[n++] = w * 32u + findLSB(bits);
    return n;
}

void main() {
    uint lid = gl_LocalInvocationID.x, across = div_up(pc.band.width, SIFT_TILE_X), tile = pc.first + group_index();
    ivec2 corner = ivec2(group_index() % across * SIFT_TILE_X, pc.begin + group_index() / across * SIFT_TILE_Y);
    ivec2 end = ivec2(min(pc.band.width - 1u, corner.x + SIFT_TILE_X), min(pc.band.height - 1u, pc.end));
    if (corner.y >= int(pc.end)) return;
    for (uint w = lid; w < WORDS; w += gl_WorkGroupSize.x) s_found[w] = 0u;
    barrier();
    mark_extrema(corner, end);
    barrier();
    if (lid == 0u) s_n = list_found();
    barrier();
    for (uint k = lid; k < s_n; k += gl_WorkGroupSize.x) {
        uint i = s_listed[k];
        SiftPoint found;
        s_good[k] = refine(corner + ivec2(i % SIFT_TILE_X, i / SIFT_TILE_X % SIFT_TILE_Y), i / TILE + 1u, found);
        s_point[k] = found;
    }
    barrier();
    if (lid > 0u) return;
    uint n = 0u;
    for (uint k = 0u; k < s_n && n < SIFT_SLOTS; k++)
        if (s_good[k]) points[tile * SIFT_SLOTS + n++] = s_point[k];
    counts[tile] = n;
}

#else

// Lists what has a bit in s_found, and returns how much that is.
uint list_found() {
    uint lid = gl_LocalInvocationID.x, before = 0u, total = 0u;
    for (uint w = 0u; w < WORDS; w++) {
        uint n = bitCount(s_found[w]);
        before += w < lid ? n : 0u;
        total += n;
    }
    if (lid < WORDS)
        for (uint bits = s_found[lid]; bits != 0u && before < LISTED; bits &= bits - 1u)
            s_listed[before++] = lid * 32u + findLSB(bits);
    barrier();
    return min(total, LISTED);
}

void main() {
    uint lid = gl_LocalInvocationID.x, across = div_up(pc.band.width, SIFT_TILE_X), tile = pc.first + group_index();
    ivec2 corner = ivec2(group_index() % across * SIFT_TILE_X, pc.begin + group_index() / across * SIFT_TILE_Y);
    ivec2 end = ivec2(min(pc.band.width - 1u, corner.x + SIFT_TILE_X), min(pc.band.height - 1u, pc.end));
    if (corner.y >= int(pc.end)) return;
    for (uint i = lid; i < DIFFERENCES * SIDE_Y * SIDE_X; i += 256u)
        s_difference[i] = difference(int(i / (SIDE_X * SIDE_Y)),
            corner - 1 + ivec2(i % SIDE_X, i / SIDE_X % SIDE_Y));
    if (lid < WORDS) s_found[lid] = 0u;
    if (lid < LISTED / 32u) s_good[lid] = 0u;
    barrier();
    for (uint i = lid; i < SCALES * TILE; i += 256u) {
        uvec3 q = uvec3(i % SIFT_TILE_X, i / SIFT_TILE_X % SIFT_TILE_Y, i / TILE + 1u);
        ivec2 p = corner + ivec2(q.xy);
        if (all(greaterThan(p, ivec2(0))) && all(lessThan(p, end)) &&
            is_extremum((q.z * SIDE_Y + q.y + 1u) * SIDE_X + q.x + 1u))
            atomicOr(s_found[i / 32u], 1u << i % 32u);
    }
    barrier();
    uint n = list_found();
    SiftPoint found;
    bool good = false;
    if (lid < n) {
        uint i = s_listed[lid];
        good = refine(corner + ivec2(i % SIFT_TILE_X, i / SIFT_TILE_X % SIFT_TILE_Y), i / TILE + 1u, found);
        if (good) atomicOr(s_good[lid / 32u], 1u << lid % 32u);
    }
    barrier();
    uint rank = bitCount(s_good[lid / 32u] & (1u << lid % 32u) - 1u), total = 0u;
    for (uint w = 0u; w < LISTED / 32u; w++) {
        uint more = bitCount(s_good[w]);
        rank += w < lid / 32u ? more : 0u;
        total += more;
    }
    if (good && rank < SIFT_SLOTS) points[tile * SIFT_SLOTS + rank] = found;
    if (lid == 0u) counts[tile] = min(total, SIFT_SLOTS);
}

#endif
