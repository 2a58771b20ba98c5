// What a workgroup of rasterize does; with DEPTH it blends the inverse of the splats' depths, too. The includer
// declares the kernel's interface and the constants that raster.glsl asks for.
#ifndef RASTERIZE_GLSL
#define RASTERIZE_GLSL
#include "fetch.glsl"
#include "states.glsl"

// Splats whose alphas are computed together: where a subgroup has one list and lanes read for themselves; by a Walk.
const uint AT_ONCE = 4u;
const uint WALK_AT_ONCE = 2u;

shared uint s_lists[BATCH / PIECE * PATCHES];   // a bit a splat of the piece: it may touch the patch
shared uint s_active[2];        // of this batch and the next: some pixel is not done

struct Pixel {
    COLOR color;
    float light;    // transmittance; below zero once the pixel is done
    uint last;
};

// Buckets are numbered so that no prefix sum is needed: tile t has the numbers from offset[t] / BUCKET_SIZE + t up to
// the next tile's, at least as many as it has buckets. Saved states skip each tile's first bucket, so theirs start at
// offset[t] / BUCKET_SIZE. Words of `touched` are numbered alike.
void name_buckets(uint tile, uint begin, uint end) {
    uint last = end / BUCKET_SIZE + tile + 1u;
    for (uint b = begin / BUCKET_SIZE + tile + raster_lane(); b < last; b += LANES) tile_from_bucket[b] = tile;
}

// Blends a splat into a pixel that it covers with this alpha, `behind` being 1 + its number. Alpha 0 changes nothing.
// Without branches: subgroups rarely agree.
void blend(inout Pixel p, float alpha, COLOR color, uint behind) {
    float weight, next;
    absorb(alpha, p.light, weight, next);
    bool goes_on = next > TRANSMITTANCE_THRESHOLD;
    float w = goes_on ? weight : 0.0;
    // Written as fma, so that no compiler chooses: with and without KEEP_STATES, in one band or many, the same bytes.
    p.color = fma(color, COLOR(w), p.color);
    p.light = goes_on ? next : -abs(p.light);
    p.last = goes_on ? behind : p.last;
}

bool all_done(Pixel pixels[LANE_PIXELS]) {
    bool done = true;
    for (uint p = 0u; p < LANE_PIXELS; p++) done = done && !(pixels[p].light > 0.0);
    return done;
}

// The alpha by which a splat covers pixel p of the lane, 0 if it does not.
float alpha_at(Splat s, Column c, vec2 centre, uint p) {
    float raw;
    bool hit = covers(s, c, to_mean_y(s.mean2d.y, centre, p), raw);
    return hit ? min(MAX_ALPHA, raw) : 0.0;
}

// Blends the next n splats of a list that is the whole subgroup's, n being 1 or AT_ONCE.
void blend_next(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, inout uint todo, uint k, const uint n) {
    float alpha[AT_ONCE][LANE_PIXELS];
    COLOR color[AT_ONCE];
    uint after[AT_ONCE];
    for (uint a = 0u; a < n; a++) {
        uint j = uint(findLSB(todo));
        todo &= todo - 1u;
        after[a] = k + j + 1u;
        Splat s = batch_splat(first + j);
        color[a] = s.color;
        Column c = column_of(s, to_mean(s.mean2d.x, centre.x));
        for (uint p = 0u; p < LANE_PIXELS; p++) alpha[a][p] = alpha_at(s, c, centre, p);
    }
    for (uint a = 0u; a < n; a++)
        for (uint p = 0u; p < LANE_PIXELS; p++) blend(pixels[p], alpha[a][p], color[a], after[a]);
}

// Blends the splats of a list, several at a time, because one alone is a chain of dependent operations; a Walk keeps in
// `behind` 1 + the last one's number. Splat 0 of the piece is number k of the tile.
void blend_piece(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint todo, uint k, inout uint behind) {
    if (ONE_LIST && !HAND_ROUND) {
        todo = subgroupBroadcastFirst(todo);    // so that the compiler knows that it is uniform
        for (uint n = uint(bitCount(todo)) % AT_ONCE; n > 0u; n--) blend_next(pixels, centre, first, todo, k, 1u);
        while (todo != 0u) blend_next(pixels, centre, first, todo, k, AT_ONCE);
        return;
    }
    Walk walk = walk_of(first, todo);
    uint n = walk_length(walk);
    if (n == 0u) return;
    for (uint i = 0u;;) {
        float alpha[WALK_AT_ONCE][LANE_PIXELS];
        COLOR color[WALK_AT_ONCE];
        uint after[WALK_AT_ONCE];
        for (uint a = 0u; a < WALK_AT_ONCE; a++) {
            uint j;
            bool more;
            Splat s = walk_next(walk, j, more);
            if (more) behind = k + j + 1u;
            after[a] = behind;
            color[a] = s.color;
            Column c = column_of(s, to_mean(s.mean2d.x, centre.x));
            for (uint p = 0u; p < LANE_PIXELS; p++) alpha[a][p] = alpha_at(s, c, centre, p);
        }
        for (uint a = 0u; a < WALK_AT_ONCE; a++)
            for (uint p = 0u; p < LANE_PIXELS; p++) blend(pixels[p], alpha[a][p], color[a], after[a]);
        i += WALK_AT_ONCE;
        if (i >= n) break;
    }
}

// Finds the patches that the lanes' splats of a batch touch, and makes the lists.
void make_lists(uint bits) {
    for (uint p = 0u; p < PATCHES; p++) {
        uvec4 who = subgroupBallot((bits >> p & 1u) != 0u);
        if (gl_SubgroupInvocationID == 0u) {
            uint at = raster_lane() / PIECE * PATCHES + p;
            s_lists[at] = who.x;
            if (SUBGROUP_SIZE > 32u) s_lists[at + PATCHES] = who.y;
        }
    }
}

// Keeps a batch's lists for the backward pass, 32 splats a word. The batch's first isect is number k of the tile, which
// has n.
void keep_lists(uint tile, uint begin, uint k, uint n) {
    uint lane = raster_lane(), word = lane / PATCHES, patch_id = lane % PATCHES;
    if (word >= BATCH / TOUCH_BITS || k + word * TOUCH_BITS >= n) return;
    uint bits = 0u;
    for (uint i = 0u; i < TOUCH_BITS / PIECE; i++)
        bits |= s_lists[(word * (TOUCH_BITS / PIECE) + i) * PATCHES + patch_id] << (i * PIECE);
    touched[(begin / TOUCH_BITS + tile + k / TOUCH_BITS + word) * PATCHES + patch_id] = bits;
}

void store_state(uint i, vec4 state) {
    if (PACKED_STATES) {
        states[i] = pack_state(state);
    } else {
        states[2u * i] = floatBitsToUint(state.rg);
        states[2u * i + 1u] = floatBitsToUint(state.ba);
    }
}

// Keeps the pixels' states before isect k of the tile, the first of a bucket, for the backward pass.
void keep_states(Pixel pixels[LANE_PIXELS], uint begin, uint k) {
    if (k == 0u) return;
    uint state = (begin / BUCKET_SIZE + k / BUCKET_SIZE - 1u) * TILE_PIXELS;
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        uvec2 at = lane_pixel(raster_lane(), p);
        store_state(state + at.y * TILE_SIZE + at.x, vec4(pixels[p].color.rgb, abs(pixels[p].light)));
#ifdef DEPTH
        depths[first_depth_state() + state + at.y * TILE_SIZE + at.x] = pixels[p].color.a;
#endif
    }
}

void main() {
    View v = params[0].view;
    if (group_index() >= v.tile_width * v.tile_height) return;
    uint tile = tile_order[group_index()];
    uint lane = raster_lane();
    uint begin = tile_offsets[tile], end = tile_offsets[tile + 1u];
    if (KEEP_STATES) name_buckets(tile, begin, end);
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    uvec2 corner = tile_xy * TILE_SIZE;
    Pixel pixels[LANE_PIXELS];
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        uvec2 at = corner + lane_pixel(lane, p);
        pixels[p] = Pixel(COLOR(0.0), at.x < v.width && at.y < v.height ? 1.0 : 0.0, 0u);
    }
    vec2 centre = vec2(corner + lane_pixel(lane, 0u)) + 0.5;
    uint patch_id = lane / PATCH_LANES;
    if (lane < 2u) s_active[lane] = 0u;
    store_none();
    Blended next;
    if (begin + lane < end) next = blended_splat(splat_from_slot[slot_from_isect[begin + lane]]);
    uint parity = 0u, behind = 0u;
    for (uint first = begin; begin < end;) {
        barrier();  // the batch before has been blended
        uint bits = 0u;
        if (first + lane < end) {
            store_splat(lane, next);
            bits = touched_patches(next, vec2(corner));
        }
        // Always true. NVIDIA's compiler makes the whole kernel an eighth faster with it (driver 580).
        if (gl_SubgroupID * SUBGROUP_SIZE < BATCH) make_lists(bits);
        if (!all_done(pixels)) s_active[parity] = 1u;
        barrier();
        if (s_active[parity] == 0u) break;
        parity ^= 1u;
        if (lane == 0u) s_active[parity] = 0u;
        if (first + BATCH + lane < end)
            next = blended_splat(splat_from_slot[slot_from_isect[first + BATCH + lane]]);
        uint k = first - begin;
        if (KEEP_STATES) keep_lists(tile, begin, k, end - begin);
        for (uint g = 0u;;) {
            if (KEEP_STATES && (k + g) % BUCKET_SIZE == 0u) keep_states(pixels, begin, k + g);
            uint todo = all_done(pixels) ? 0u : s_lists[g / PIECE * PATCHES + patch_id];
            if (ONE_LIST) todo = subgroupOr(todo);  // while any lane of the patch goes on
            blend_piece(pixels, centre, g, todo, k + g, behind);
            g += PIECE;
            if (g >= min(BATCH, end - first)) break;
        }
        first += BATCH;
        if (first >= end) break;
    }
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        uvec2 pixel = corner + lane_pixel(lane, p);
        if (pixel.x >= v.width || pixel.y >= v.height) continue;
        uint at = (BAND_ALONE ? pixel.y - uint(rows.x) * TILE_SIZE : pixel.y) * v.width + pixel.x;
        float transmittance = abs(pixels[p].light);
        render[at] = vec4(pixels[p].color.rgb + transmittance * v.background, transmittance);
        if (KEEP_STATES) last_ids[at] = pixels[p].last;
#ifdef DEPTH
        depths[2u * at] = pixels[p].color.a;
#endif
    }
}

#endif
