// The way of a pixel through the corrections. The includer declares `params` and `correction`.

// What the backward pass needs of a pixel.
struct Corrected {
    vec3 exposed;   // after exposure
    vec3 factor;    // of vignetting
    vec3 seen;      // after vignetting
    vec3 turned;    // after the matrix of white balance
    float scale;    // which restores the brightness; 0: the pixel has no chromaticity and stays as it is
    vec3 colour;    // after all
};

float vignetting(uint channel, uint k) { return correction[0].own[VIGNETTING + 5u * channel + k]; }

// Where pixel (x, y) lies from the centre of a channel's vignetting.
vec2 from_centre(uvec2 p, uint channel) {
    vec2 size = vec2(params[0].view.width, params[0].view.height);
    vec2 uv = (vec2(p) + 0.5 - 0.5 * size) / max(size.x, size.y);
    return uv - vec2(vignetting(channel, 0u), vignetting(channel, 1u));
}

mat3 colour_matrix() {
    mat3 m;
    for (uint k = 0u; k < 9u; k++) m[k / 3u][k % 3u] = correction[0].colour[k];
    return m;
}

Corrected corrected(uvec2 p, vec3 rgb) {
    Corrected c;
    c.exposed = rgb * correction[0].gain;
    c.factor = vec3(1.0);
    if (params[0].vignetting != 0u)
        for (uint i = 0u; i < 3u; i++) {
            vec2 d = from_centre(p, i);
            float q = dot(d, d);
            c.factor[i] = max(1.0 + q * (vignetting(i, 2u) + q * (vignetting(i, 3u) + q * vignetting(i, 4u))), 0.0);
        }
    c.seen = c.exposed * c.factor;
    c.turned = c.seen;
    c.colour = c.seen;
    c.scale = 0.0;
    if (params[0].white_balance != 0u) {
        vec3 turned = colour_matrix() * c.seen;
        float brightness = turned.r + turned.g + turned.b;
        if (brightness > LEAST_BRIGHTNESS) {
            c.turned = turned;
            c.scale = (c.seen.r + c.seen.g + c.seen.b) / brightness;
            c.colour = turned * c.scale;
        }
    }
    return c;
}
