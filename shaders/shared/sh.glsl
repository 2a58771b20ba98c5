// Real spherical harmonics up to degree 3 in the basis and order of 3DGS files (Kerbl et al. 2023), and their derivatives.
#ifndef SH_GLSL
#define SH_GLSL

// Basis values for the unit direction d; b[k] for k >= (degree+1)^2 is not set.
void sh_basis(vec3 d, uint degree, out float b[16]) {
    float x = d.x, y = d.y, z = d.z;
    b[0] = 0.28209479177387814;
    if (degree < 1u) return;
    b[1] = -0.4886025119029199 * y;
    b[2] = 0.4886025119029199 * z;
    b[3] = -0.4886025119029199 * x;
    if (degree < 2u) return;
    float xx = x * x, yy = y * y, zz = z * z;
    b[4] = 1.0925484305920792 * x * y;
    b[5] = -1.0925484305920792 * y * z;
    b[6] = 0.31539156525252005 * (2.0 * zz - xx - yy);
    b[7] = -1.0925484305920792 * x * z;
    b[8] = 0.5462742152960396 * (xx - yy);
    if (degree < 3u) return;
    b[9] = -0.5900435899266435 * y * (3.0 * xx - yy);
    b[10] = 2.890611442640554 * x * y * z;
    b[11] = -0.4570457994644658 * y * (4.0 * zz - xx - yy);
    b[12] = 0.3731763325901154 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy);
    b[13] = -0.4570457994644658 * x * (4.0 * zz - xx - yy);
    b[14] = 1.445305721320277 * z * (xx - yy);
    b[15] = -0.5900435899266435 * x * (xx - 3.0 * yy);
}

// Gradient of basis k with respect to d, as polynomials (d is treated as free; the caller projects out the radial part).
vec3 sh_basis_grad(vec3 d, uint k) {
    float x = d.x, y = d.y, z = d.z;
    switch (k) {
    case 1u: return vec3(0.0, -0.4886025119029199, 0.0);
    case 2u: return vec3(0.0, 0.0, 0.4886025119029199);
    case 3u: return vec3(-0.4886025119029199, 0.0, 0.0);
    case 4u: return 1.0925484305920792 * vec3(y, x, 0.0);
    case 5u: return -1.0925484305920792 * vec3(0.0, z, y);
    case 6u: return 0.31539156525252005 * vec3(-2.0 * x, -2.0 * y, 4.0 * z);
    case 7u: return -1.0925484305920792 * vec3(z, 0.0, x);
    case 8u: return 0.5462742152960396 * vec3(2.0 * x, -2.0 * y, 0.0);
    case 9u: return -0.5900435899266435 * vec3(6.0 * x * y, 3.0 * x * x - 3.0 * y * y, 0.0);
    case 10u: return 2.890611442640554 * vec3(y * z, x * z, x * y);
    case 11u: return -0.4570457994644658 * vec3(-2.0 * x * y, 4.0 * z * z - x * x - 3.0 * y * y, 8.0 * y * z);
    case 12u: return 0.3731763325901154 * vec3(-6.0 * x * z, -6.0 * y * z, 6.0 * z * z - 3.0 * x * x - 3.0 * y * y);
    case 13u: return -0.4570457994644658 * vec3(4.0 * z * z - 3.0 * x * x - y * y, -2.0 * x * y, 8.0 * x * z);
    case 14u: return 1.445305721320277 * vec3(2.0 * x * z, -2.0 * y * z, x * x - y * y);
    case 15u: return -0.5900435899266435 * vec3(3.0 * x * x - 3.0 * y * y, -6.0 * x * y, 0.0);
    }
    return vec3(0.0);
}

#endif
