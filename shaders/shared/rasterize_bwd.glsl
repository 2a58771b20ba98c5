// What a workgroup of rasterize_bwd does; with DEPTH it also takes back the gradient by the sum of weight / depth. The
// includer declares the kernel's interface and the constants that raster.glsl and patch_sum.glsl ask for.
#ifndef RASTERIZE_BWD_GLSL
#define RASTERIZE_BWD_GLSL
#include "fetch.glsl"
#include "states.glsl"

#ifdef DEPTH
#define BESIDES(sums) vec3(sums.abs_mean2d, sums.color.a)
#else
#define BESIDES(sums) sums.abs_mean2d
#endif

const uint GRADS = 9u;

shared uint s_slot[BATCH];
shared uint s_touched[BATCH];   // patches that a splat touches in front of the last one that changes any pixel of them
shared uint s_last[PATCHES];    // isects up to that one
const bool LAST_OF_MANY = CLUSTER < LIST_LANES || !SPREAD;  // which several clusters or pixels decide

struct Pixel {
    COLOR v;                // dL/d(rgb), with DEPTH also by the sum of weight / depth
    float transmittance;
    float behind;           // what lies behind, dotted with v
    uint last;              // isects up to the last one that changes it
};

vec4 load_state(uint i) {
    if (PACKED_STATES) return unpack_state(states[i]);
    return vec4(uintBitsToFloat(states[2u * i]), uintBitsToFloat(states[2u * i + 1u]));
}

// A pixel of the tile at the start of bucket b.
Pixel load_pixel(View v, uvec2 corner, uvec2 place, uint b, uint begin) {
    uvec2 at = corner + place;
    Pixel p = Pixel(COLOR(0.0), 0.0, 0.0, 0u);
    if (at.x >= v.width || at.y >= v.height) return p;
    uint i = at.y * v.width + at.x;
    p.last = last_ids[i];
    vec4 out_color = render[i];
    vec4 g = v_render[i];
    // Before any splat: nothing blended, all light passes.
    vec4 state = vec4(0.0, 0.0, 0.0, 1.0);
    if (b > 0u && p.last > b * BUCKET_SIZE)
        state = load_state((begin / BUCKET_SIZE + b - 1u) * TILE_PIXELS + place.y * TILE_SIZE + place.x);
#ifdef DEPTH
    float inverse = 0.0;
    if (b > 0u && p.last > b * BUCKET_SIZE)
        inverse = depths[first_depth_state() + (begin / BUCKET_SIZE + b - 1u) * TILE_PIXELS +
                         place.y * TILE_SIZE + place.x];
    p.v = vec4(g.rgb, depths[2u * i + 1u]);
#else
    p.v = g.rgb;
#endif
    p.transmittance = state.w;
    p.behind = dot(out_color.rgb - state.rgb, g.rgb) - out_color.w * g.a;
#ifdef DEPTH
    p.behind += (depths[2u * i] - inverse) * p.v.a;
#endif
    return p;
}

// dL/dmean2d, given dL/dsigma times d.
vec2 mean_gradient(vec3 form, vec2 qd) {
    return 0.6931471805599453 * fma(2.0 * form.xz, qd, form.y * qd.yx);    // ln 2
}

// Sums of a splat over the pixels of a column, q being dL/dsigma and d = mean2d - pixel centre.
struct ColumnSums {
    float q;
    float y;        // q dy
    float yy;       // q dy dy
    COLOR color;
    vec2 abs_mean2d;
};

// Moves a pixel's state past a splat that may hit it with this alpha before the ceiling, and adds to the sums.
void pass_splat(inout Pixel p, Splat s, bool hit, float raw, vec2 d, inout ColumnSums sums) {
    float alpha = hit ? min(MAX_ALPHA, raw) : 0.0;
    float weight, next;
    absorb(alpha, p.transmittance, weight, next);   // as in the forward pass, but for the rounding of packed states
    float cv = fma(s.color.r, p.v.r, fma(s.color.g, p.v.g, s.color.b * p.v.b));
#ifdef DEPTH
    cv = fma(s.color.a, p.v.a, cv);
#endif
    p.behind = fma(-weight, cv, p.behind);
    float passes = 1.0 - alpha;
    // dC/dalpha = T c - (what lies behind) / (1 - alpha); none flows where the ceiling holds, and alpha is 0 where
    // nothing is hit.
    float q = raw <= MAX_ALPHA ? alpha * fma(-p.transmittance, cv, p.behind / passes) : 0.0;
    p.transmittance = next;
    float qy = q * d.y;
    sums.q += q;
    sums.y += qy;
    sums.yy = fma(qy, d.y, sums.yy);
    sums.color = fma(COLOR(weight), p.v, sums.color);
    if (ABSGRAD) sums.abs_mean2d += abs(mean_gradient(s.form, vec2(q * d.x, qy)));
}

Pixel pixels[LANE_PIXELS];      // the lane's
vec2 centre;                    // of the first of them, px

// Moves the lane's pixels past splat number k of the tile, and leaves its cluster's part of the sums as that of splat
// j of the round, if `keep`. Bit PATCH_COLUMNS p of `touches` is the patch of the lane's pixel p.
void sum_splat(Splat s, uint touches, uint k, uint j, bool keep) {
    float dx = to_mean(s.mean2d.x, centre.x);
    Column c = column_of(s, dx);
    ColumnSums sums = ColumnSums(0.0, 0.0, 0.0, COLOR(0.0), vec2(0.0));
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        if (SPREAD && (touches >> PATCH_COLUMNS * p & 1u) == 0u) continue;
        vec2 d = vec2(dx, to_mean_y(s.mean2d.y, centre, p));
        float raw;
        bool hit = covers(s, c, d.y, raw) && k < pixels[p].last;
        pass_splat(pixels[p], s, hit, raw, d, sums);
    }
    float x = dx * sums.q;
    vec2 mean2d = mean_gradient(s.form, vec2(x, sums.y));
    store_sums(float[9](mean2d.x, mean2d.y, dx * x, dx * sums.y, sums.yy, sums.q,
                        sums.color.r, sums.color.g, sums.color.b), BESIDES(sums), j, keep);
}

// The lane's list of a round of n isects, from number `first` of the batch and number k of the tile on: bit j is splat
// `first` + j. `word` is the batch's first in `touched`.
uint list_of(uint first, uint n, uint k, uint word) {
    uint list = list_number(), todo = 0u;
    if (!SPREAD) {
        uint last = s_last[list];
        if (k >= last) return 0u;
        n = min(n, last - k);
        todo = touched[word + list] >> first;
        return n < 32u ? todo & (1u << n) - 1u : todo;
    }
    for (uint g = 0u; g < ROUND; g += PIECE) {
        uint j = g + gl_SubgroupInvocationID % LIST_LANES;
        uvec4 who = subgroupBallot(j < n && (s_touched[first + min(j, ROUND - 1u)] & COLUMN_PATCHES << list) != 0u);
        todo |= (ONE_LIST || list == 0u ? who.x : who.y) << g;
    }
    return todo;
}

// The sums of such a round's splats.
void sum_round(uint first, uint n, uint k, uint word) {
    uint todo = list_of(first, n, k, word);
    if (gl_SubgroupInvocationID % CLUSTER == 0u) s_summed[cluster_number()] = todo;
    if (ONE_LIST && !HAND_ROUND) {
        // The same walk; NVIDIA's compiler makes fewer instructions of this form.
        while (todo != 0u) {
            uint j = uint(findLSB(todo));
            todo &= todo - 1u;
            sum_splat(batch_splat(first + j), s_touched[first + j] >> list_number(), k + j, j, true);
        }
        return;
    }
    for (uint g = 0u;;) {
        Walk walk = walk_of(first + g, PIECE < 32u ? todo >> g & (1u << PIECE % 32u) - 1u : todo);
        uint length = walk_length(walk);
        for (uint i = 0u; length != 0u;) {
            uint at;
            bool more;
            Splat s = walk_next(walk, at, more);
            uint touches = SPREAD && more ? s_touched[first + g + at] >> list_number() : 0u;
            sum_splat(s, touches, k + g + at, g + at, more);
            i++;
            if (i == length) break;
        }
        g += PIECE;
        if (g >= n) break;
    }
}

// From the sums to the gradients of n splats of a batch, from number `first` on, a lane a component.
void store_round(uint first, uint n) {
    for (uint i = raster_lane(); i < n * GRADS; i += LANES) {
        uint j = i / GRADS, part = i % GRADS;
        float sum = tile_sum(j, part);
        // The conic's gradient has q dx dx / 2, q dx dy, q dy dy / 2. q = -alpha dL/dalpha, and alpha is the opacity
        // times what opacity's gradient is made of.
        float scale = part == 2u || part == 4u ? 0.5 : part == 5u ? -exp2(-s_mean[first + j].z) : 1.0;
        v_slots[s_slot[first + j] * GRADS + part] = sum == 0.0 ? 0.0 : sum * scale;
    }
#ifdef DEPTH
    for (uint j = raster_lane(); j < n; j += LANES)
        v_beside_slots[s_slot[first + j]] = vec3(tile_sum(j, 9u), tile_sum(j, 10u), tile_sum(j, 11u));
#else
    if (!ABSGRAD) return;
    for (uint j = raster_lane(); j < n; j += LANES)
        v_abs_slots[s_slot[first + j]] = vec2(tile_sum(j, 9u), tile_sum(j, 10u));
#endif
}

// With as many lanes as a bucket has isects, each lane asks for one before anything else, so that no batch waits for
// loads that follow each other: the isect's slot, its splat's id, the splat.
const bool LANE_AN_ISECT = LANES == BUCKET_SIZE;
uint own_slot, own_id;

void prefetch(uint begin, uint b, uint end) {
    uint isect = begin + b * BUCKET_SIZE + raster_lane();
    if (!LANE_AN_ISECT || isect >= end) return;
    own_slot = slot_from_isect[isect];
    own_id = splat_from_slot[own_slot];
}

// Patches that isect `at` of a batch touches in front of their last one, the batch being n from number k of the tile
// on; `word` is its first in `touched`.
uint patches_of(uint at, uint word, uint k) {
    uint bits = 0u;
    for (uint p = 0u; p < PATCHES; p++)
        if (k + at < s_last[p]) bits |= (touched[word + p] >> at & 1u) << p;
    return bits;
}

// Puts the isects of such a batch into shared memory.
void load_batch(uint word, uint begin, uint k, uint n) {
    uint at = raster_lane();
    if (LANE_AN_ISECT) {
        if (at / BATCH != k % BUCKET_SIZE / BATCH) return;
        at %= BATCH;
    }
    if (at >= n) return;
    uint touches = 0u;
    if (SPREAD) s_touched[at] = touches = patches_of(at, word, k);
    uint slot = LANE_AN_ISECT ? own_slot : slot_from_isect[begin + k + at];
    s_slot[at] = slot;
    if (!SPREAD || touches != 0u) store_splat(at, blended_splat(LANE_AN_ISECT ? own_id : splat_from_slot[slot]));
}

// The largest of the cluster's lanes.
uint cluster_max(uint x) {
    for (uint distance = 1u; distance < CLUSTER; distance *= 2u) x = max(x, subgroupShuffleXor(x, distance));
    return x;
}

void main() {
    uint bucket = group_index();
    View v = params[0].view;
    uint n_tiles = v.tile_width * v.tile_height;
    if (bucket >= tile_offsets[n_tiles] / BUCKET_SIZE + n_tiles) return;
    uint tile = tile_from_bucket[bucket];
    uint begin = tile_offsets[tile], end = tile_offsets[tile + 1u];
    uint b = bucket - (begin / BUCKET_SIZE + tile);
    if (b * BUCKET_SIZE >= end - begin) return;
    uint lane = raster_lane();
    uvec2 corner = uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE;
    prefetch(begin, b, end);
    if (LAST_OF_MANY) {
        if (lane < PATCHES) s_last[lane] = 0u;
        barrier();
    }
    if (HAND_ROUND || !ONE_LIST) store_none();
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        pixels[p] = load_pixel(v, corner, lane_pixel(lane, p), b, begin);
        uint last = cluster_max(pixels[p].last);
        uint patch_id = list_number() + (SPREAD ? PATCH_COLUMNS * p : 0u);
        if (gl_SubgroupInvocationID % CLUSTER != 0u) continue;
        if (LAST_OF_MANY) atomicMax(s_last[patch_id], last);    // of integers: the order does not matter
        else s_last[patch_id] = last;
    }
    barrier();
    centre = vec2(corner + lane_pixel(lane, 0u)) + 0.5;
    uint stop = min(end - begin, (b + 1u) * BUCKET_SIZE);
    for (uint batch = b * BUCKET_SIZE;;) {
        uint n = min(BATCH, stop - batch);
        uint word = (begin / TOUCH_BITS + tile + batch / TOUCH_BITS) * PATCHES;
        load_batch(word, begin, batch, n);
        barrier();
        for (uint first = 0u;;) {
            uint n_round = min(ROUND, n - first);
            sum_round(first, n_round, batch + first, word);
            barrier();
            store_round(first, n_round);
            barrier();
            first += ROUND;
            if (first >= n) break;
        }
        batch += BATCH;
        if (batch >= stop) break;
    }
}

#endif
