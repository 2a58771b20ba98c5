#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#ifdef PACKED
#extension GL_EXT_spirv_intrinsics : require
#endif
// match_tiles compares a tile of one photo's descriptors with a tile of another's: for each descriptor of either it
// finds the two largest dot products with those of the other.
//   reads jobs descriptors places; writes nearest_keys
// variant packed: products of four bytes at a time, where the device has them
// A matrix product in shared memory, of which an invocation makes 8x8, on processors 16x16. Products are whole numbers
// below 2^24, exact in float. With GUIDED, only descriptors count whose places agree with the job's guide.
#include "match.glsl"

layout(local_size_x_id = 0, local_size_x = 256) in;     // 256 or 64
layout(constant_id = 1) const bool GUIDED = false;

layout(binding = 0, scalar) readonly buffer Jobs { MatchJob jobs[]; };                  // [pairs]
layout(binding = 1, scalar) readonly buffer Descriptors { uvec4 descriptors[]; };       // [tiles][8][MATCH_TILE]
layout(binding = 2, scalar) readonly buffer Places { vec2 places[]; };                  // [tiles][MATCH_TILE] pixels
// By pair: [tiles_b][tiles_a][MATCH_TILE] of the first photo's, [tiles_a][tiles_b][MATCH_TILE] of the second's: the two
// largest keys.
layout(binding = 3, scalar) writeonly buffer Keys { uvec2 nearest_keys[]; };

// What is multiplied at a time: bytes as floats, or four bytes.
#ifdef PACKED
#define Term uint
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4451)
uint packed_dot(uint a, uint b, spirv_literal uint format);
#define ADD_PRODUCT(sum, a, b) sum += packed_dot(a, b, 0)
#define TERMS_OF(v) v
#else
#define Term float
#define ADD_PRODUCT(sum, a, b) sum = fma(a, b, sum)
#define TERMS_OF(v) uintBitsToFloat(v)
#endif

const uint TERMS = 16u;             // in shared memory at a time
#ifdef PACKED
const uint LOADS = 4u;              // vectors of 16 bytes that these are
#else
const uint LOADS = 1u;
#endif
const uint SIDE = TERMS * MATCH_TILE / 4u;
const uint LANES = gl_WorkGroupSize.x;
const uint OWN = LANES == 64u ? 16u : 8u;   // descriptors of either side that an invocation has
const uint SIDE_LANES = MATCH_TILE / OWN;

shared uvec4 s_words[2u * SIDE];    // 16 KiB; first [side][TERMS][MATCH_TILE], then [16][MATCH_TILE] pairs of keys

void load_terms(uint side, uint row, uint tile, uint step) {
    [[unroll]] for (uint l = 0u; l < LOADS; l++) {
        uvec4 v = descriptors[(tile * 8u + step * LOADS + l) * MATCH_TILE + row];
        [[unroll]] for (uint w = 0u; w < 4u; w++) {
#ifdef PACKED
            s_words[side * SIDE + (4u * l + w) * (MATCH_TILE / 4u) + row / 4u][row % 4u] = v[w];
#else
            [[unroll]] for (uint b = 0u; b < 4u; b++)
                s_words[side * SIDE + (4u * w + b) * (MATCH_TILE / 4u) + row / 4u][row % 4u] =
                    floatBitsToUint(float(v[w] >> 8u * b & 255u));
#endif
        }
    }
}

// The place in its tile of an invocation's i-th descriptor.
uint place_of(uint lane, uint i) {
    return i / 4u * (4u * SIDE_LANES) + 4u * lane + i % 4u;
}

// A point in homogeneous coordinates, times the guide or its transpose. No decision may depend on how a compiler
// contracts, so what guides compute is precise.
vec3 times(MatchJob job, vec2 p, bool transposed) {
    precise vec3 r;
    [[unroll]] for (uint k = 0u; k < 3u; k++) {
        uint at = transposed ? k : 3u * k, next = transposed ? 3u : 1u;
        precise float v = job.guide[at] * p.x + job.guide[at + next] * p.y + job.guide[at + 2u * next];
        r[k] = v;
    }
    return r;
}

float square_of(vec2 v) {
    precise float s = v.x * v.x + v.y * v.y;
    return s;
}

// Whether the second photo's point agrees with the guide: Sampson's distance from an epipolar line, or the distance
// from where a homography takes the first's, without divisions.
bool agrees(MatchJob job, vec3 at, float square_a, vec2 p, float square_b) {
    if (job.planar != 0u) {
        precise vec2 off = at.xy - at.z * p;
        precise float most = job.limit * (at.z * at.z);
        return square_of(off) <= most;
    }
    precise float residual = at.x * p.x + at.y * p.y + at.z;
    precise float most = job.limit * (square_a + square_b);
    precise float square = residual * residual;
    return square <= most;
}

// The largest keys of each descriptor over the lanes of the other side, written to nearest_keys from `first` on. An
// invocation has the best of its own descriptors; `lane` tells those apart, `other` the lanes of the other side.
void write_largest(uvec2 top[OWN], uint lane, uint other, uint first) {
    barrier();
    [[unroll]] for (uint i = 0u; i < OWN; i++) {
        uint at = other * MATCH_TILE + (place_of(lane, i) + other) % MATCH_TILE;    // so that lanes use all banks
        s_words[at / 2u][at % 2u * 2u] = top[i].x;
        s_words[at / 2u][at % 2u * 2u + 1u] = top[i].y;
    }
    barrier();
    for (uint place = gl_LocalInvocationID.x; place < MATCH_TILE; place += LANES) {
        uvec2 best = uvec2(0u);
        for (uint o = 0u; o < SIDE_LANES; o++) {
            uint at = o * MATCH_TILE + (place + o) % MATCH_TILE;
            best = larger_two(best, s_words[at / 2u][at % 2u * 2u]);
            best = larger_two(best, s_words[at / 2u][at % 2u * 2u + 1u]);
        }
        nearest_keys[first + place] = best;
    }
}

void main() {
    MatchJob job = jobs[gl_WorkGroupID.z];
    uint tile_a = gl_WorkGroupID.x, tile_b = gl_WorkGroupID.y;
    if (tile_a >= job.tiles_a || tile_b >= job.tiles_b) return;
    uint lid = gl_LocalInvocationID.x, lane_a = lid / SIDE_LANES, lane_b = lid % SIDE_LANES;
    Term sum[OWN][OWN];
    [[unroll]] for (uint i = 0u; i < OWN; i++)
        [[unroll]] for (uint j = 0u; j < OWN; j++) sum[i][j] = Term(0);
    for (uint step = 0u; step < 8u / LOADS; step++) {
        barrier();
        for (uint i = lid; i < 2u * MATCH_TILE; i += LANES)
            load_terms(i / MATCH_TILE, i % MATCH_TILE, i < MATCH_TILE ? job.first_a + tile_a : job.first_b + tile_b,
                step);
        barrier();
        for (uint k = 0u; k < TERMS; k++) {
            uint at = k * (MATCH_TILE / 4u);
            uvec4 a[OWN / 4u], b[OWN / 4u];
            [[unroll]] for (uint i = 0u; i < OWN / 4u; i++) {
                a[i] = s_words[at + i * SIDE_LANES + lane_a];
                b[i] = s_words[SIDE + at + i * SIDE_LANES + lane_b];
            }
            [[unroll]] for (uint i = 0u; i < OWN; i++)
                [[unroll]] for (uint j = 0u; j < OWN; j++)
                    ADD_PRODUCT(sum[i][j], TERMS_OF(a[i / 4u][i % 4u]), TERMS_OF(b[j / 4u][j % 4u]));
        }
    }
    uvec2 top_a[OWN], top_b[OWN];
    vec2 p[OWN];
    float square[OWN];
    [[unroll]] for (uint j = 0u; j < OWN; j++) {
        top_b[j] = uvec2(0u);
        if (GUIDED) {
            p[j] = places[(job.first_b + tile_b) * MATCH_TILE + place_of(lane_b, j)];
            square[j] = square_of(times(job, p[j], true).xy);
        }
    }
    [[unroll]] for (uint i = 0u; i < OWN; i++) {
        top_a[i] = uvec2(0u);
        vec3 at;
        if (GUIDED) at = times(job, places[(job.first_a + tile_a) * MATCH_TILE + place_of(lane_a, i)], false);
        [[unroll]] for (uint j = 0u; j < OWN; j++) {
            uint product = uint(sum[i][j]);
            if (GUIDED && !agrees(job, at, square_of(at.xy), p[j], square[j])) product = 0u;
            top_a[i] = larger_two(top_a[i], match_key(product, place_of(lane_b, j)));
            top_b[j] = larger_two(top_b[j], match_key(product, place_of(lane_a, i)));
        }
    }
    uint first = job.first_keys * 2u * MATCH_TILE;
    write_largest(top_a, lane_a, lane_b, first + (tile_b * job.tiles_a + tile_a) * MATCH_TILE);
    write_largest(top_b, lane_b, lane_a,
        first + (job.tiles_a * job.tiles_b + tile_a * job.tiles_b + tile_b) * MATCH_TILE);
}
