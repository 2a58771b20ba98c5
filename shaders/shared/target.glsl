// The photo, read in one place. The includer declares `target` and TARGET_FLOAT.
// RGBA8: straight alpha over the background; an opaque photo is read exactly.
float target_channel(uint pixel, uint channel, vec3 background) {
    if (TARGET_FLOAT) return uintBitsToFloat(target[3u * pixel + channel]);
    vec4 c = unpackUnorm4x8(target[pixel]);
    return c.a == 1.0 ? c[channel] : c[channel] * c.a + background[channel] * (1.0 - c.a);
}
