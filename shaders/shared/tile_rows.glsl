// The rows of tiles of up to GROUP splats, dealt to a workgroup's invocations. An invocation that walked all rows of
// one large splat would hold up its subgroup, and each tile that looked for its row would compute the rows above it
// again. The includer declares pc.band, pc.n_bands, params, splat_from_rank and shapes.
#ifndef TILE_ROWS_GLSL
#define TILE_ROWS_GLSL
#include "shape.glsl"
#include "scan_group.glsl"

shared uint s_id[GROUP];            // of each invocation's splat
shared float s_shape[8u * GROUP];   // [8][GROUP] its mean2d, conic, extents
shared int s_top[GROUP];            // its first row of tiles in the band
shared uint s_rows_before[GROUP];   // rows of the splats of lower invocations

// The last of GROUP ascending values that is at most x; the first one is.
#define LAST_UP_TO(name, values) uint name(uint x) { \
        uint k = 0u; \
        for (uint step = GROUP / 2u; step > 0u; step >>= 1u) k += values[k + step] <= x ? step : 0u; \
        return k; \
    }
LAST_UP_TO(splat_of_row, s_rows_before)

// Takes splat `rank` for this invocation if it exists, and returns the number of rows of all of them. Every invocation
// must call it.
uint take_splat(uint rank, bool exists) {
    uint lid = gl_LocalInvocationID.x;
    uint n = 0u;
    if (exists) {
        uint id = splat_from_rank[rank];
        Shape s = load_shape(id);
        uint tile_height = params[0].view.tile_height;
        ivec2 rows = clip_rows(tile_rows(s.mean2d, s.extents, tile_height),
                               band_rows(tile_height, pc.band, pc.n_bands));
        n = uint(max(rows.y - rows.x, 0));
        s_id[lid] = id;
        s_top[lid] = rows.x;
        s_shape[lid] = s.mean2d.x;
        s_shape[GROUP + lid] = s.mean2d.y;
        for (uint k = 0u; k < 3u; k++) {
            s_shape[(2u + k) * GROUP + lid] = s.conic[k];
            s_shape[(5u + k) * GROUP + lid] = s.extents[k];
        }
    }
    uint n_rows;
    s_rows_before[lid] = group_exclusive_sum(n, n_rows);
    barrier();
    return n_rows;
}

// Row j of those of all splats: the invocation whose splat's it is, and its tiles.
struct TileRow {
    uint k;
    uint first_tile;
    uint n_tiles;
};

TileRow tile_row(uint j) {
    TileRow r;
    r.k = splat_of_row(j);
    int y = s_top[r.k] + int(j - s_rows_before[r.k]);
    Shape s = Shape(vec2(s_shape[r.k], s_shape[GROUP + r.k]),
                    vec3(s_shape[2u * GROUP + r.k], s_shape[3u * GROUP + r.k], s_shape[4u * GROUP + r.k]),
                    vec3(s_shape[5u * GROUP + r.k], s_shape[6u * GROUP + r.k], s_shape[7u * GROUP + r.k]));
    uint tile_width = params[0].view.tile_width;
    ivec2 columns = tile_columns(s, y, tile_width);
    r.first_tile = uint(y) * tile_width + uint(columns.x);
    r.n_tiles = uint(columns.y - columns.x);
    return r;
}

#endif
