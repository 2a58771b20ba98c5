// Real spherical harmonics up to degree 3 in the basis and order of 3DGS files (Kerbl et al. 2023), and their
// derivatives: four at a time, so that what multiplies them is loaded at once, and nothing is in arrays, which with an
// index that is no constant lie in memory.
#ifndef SH_GLSL
#define SH_GLSL

// Basis values k to k + 3 for the unit direction d; k = 0, 4, 8 or 12. A degree has 1, 4, 9 or 16 of them: fours, and
// in degrees 0 and 2 one more.
vec4 sh_basis4(vec3 d, uint k) {
    float x = d.x, y = d.y, z = d.z;
    float xx = x * x, yy = y * y, zz = z * z;
    if (k == 0u)
        return vec4(0.28209479177387814, -0.4886025119029199 * y, 0.4886025119029199 * z, -0.4886025119029199 * x);
    if (k == 4u)
        return vec4(1.0925484305920792 * x * y, -1.0925484305920792 * y * z,
                    0.31539156525252005 * (2.0 * zz - xx - yy), -1.0925484305920792 * x * z);
    if (k == 8u)
        return vec4(0.5462742152960396 * (xx - yy), -0.5900435899266435 * y * (3.0 * xx - yy),
                    2.890611442640554 * x * y * z,
                    -0.4570457994644658 * y * (4.0 * zz - xx - yy));
    return vec4(0.3731763325901154 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy),
                -0.4570457994644658 * x * (4.0 * zz - xx - yy),
                1.445305721320277 * z * (xx - yy), -0.5900435899266435 * x * (xx - 3.0 * yy));
}

// Gradients of the same with respect to d, as polynomials (d is treated as free; the caller projects out the radial
// part).
mat4x3 sh_basis_grad4(vec3 d, uint k) {
    float x = d.x, y = d.y, z = d.z;
    if (k == 0u)
        return mat4x3(vec3(0.0), vec3(0.0, -0.4886025119029199, 0.0),
                      vec3(0.0, 0.0, 0.4886025119029199), vec3(-0.4886025119029199, 0.0, 0.0));
    if (k == 4u)
        return mat4x3(1.0925484305920792 * vec3(y, x, 0.0), -1.0925484305920792 * vec3(0.0, z, y),
                      0.31539156525252005 * vec3(-2.0 * x, -2.0 * y, 4.0 * z),
                      -1.0925484305920792 * vec3(z, 0.0, x));
    if (k == 8u)
        return mat4x3(0.5462742152960396 * vec3(2.0 * x, -2.0 * y, 0.0),
                      -0.5900435899266435 * vec3(6.0 * x * y, 3.0 * x * x - 3.0 * y * y, 0.0),
                      2.890611442640554 * vec3(y * z, x * z, x * y),
                      -0.4570457994644658 * vec3(-2.0 * x * y, 4.0 * z * z - x * x - 3.0 * y * y, 8.0 * y * z));
    return mat4x3(0.3731763325901154 * vec3(-6.0 * x * z, -6.0 * y * z, 6.0 * z * z - 3.0 * x * x - 3.0 * y * y),
                  -0.4570457994644658 * vec3(4.0 * z * z - 3.0 * x * x - y * y, -2.0 * x * y, 8.0 * x * z),
                  1.445305721320277 * vec3(2.0 * x * z, -2.0 * y * z, x * x - y * y),
                  -0.5900435899266435 * vec3(3.0 * x * x - 3.0 * y * y, -6.0 * x * y, 0.0));
}

#endif
