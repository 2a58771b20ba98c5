// Reading of shapes (tiles.glsl), each as two words of four numbers. A scattered load of 16 bytes costs a GPU the same
// as one of 4. The includer declares `shapes`.
#ifndef SHAPE_GLSL
#define SHAPE_GLSL
#include "tiles.glsl"

Shape load_shape(uint id) {
    vec4 a = shapes[2u * id], b = shapes[2u * id + 1u];
    return Shape(a.xy, vec3(a.zw, b.x), b.yzw);
}

#endif
