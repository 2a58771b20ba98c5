// Colour maps of the training photos. The includer declares `exposures`.

// Row i of the map: what multiplies (r, g, b, 1).
vec4 affine_row(uint id, uint i) {
    return vec4(exposures[id].affine[4u * i], exposures[id].affine[4u * i + 1u],
                exposures[id].affine[4u * i + 2u], exposures[id].affine[4u * i + 3u]);
}
