// How kernels read and write shapes, each as two words of four numbers: fetched from places without order, every number
// alone would take a GPU as long. The includer declares `shapes`.
#ifndef SHAPE_GLSL
#define SHAPE_GLSL
#include "tiles.glsl"

Shape load_shape(uint id) {
    vec4 a = shapes[2u * id], b = shapes[2u * id + 1u];
    return Shape(a.xy, vec3(a.zw, b.x), b.yzw);
}

#endif
