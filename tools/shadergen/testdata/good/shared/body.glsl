#ifndef BODY_GLSL
#define BODY_GLSL
// A moving body.
struct Body {
    vec3 pos;      // world
    float mass;    // kg
    // Set by the host.
    uvec2 cells[2];
    int kind;
};
#endif
