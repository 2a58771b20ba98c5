// How what is learnt of a camera changes it. The first three numbers turn the camera about its centre, as a vector
// along the axis and as long as the angle, the next three move the centre, all along the axes of the given camera:
//   p' = exp(-[turn]) (p - shift)
// is where a point p of the given camera is for the refined one. The others change the lens: a logarithm is added to
// that of the focal lengths, the principal point moves by two numbers of given focal lengths, and four coefficients of
// the distortion, k1, k2, p1, p2 or a fisheye's k1 to k4, by bend_unit's inverse of lens.glsl.
#ifndef POSE_GLSL
#define POSE_GLSL
#include "params.glsl"

mat3 cross_matrix(vec3 w) { return mat3(0.0, w.z, -w.y, -w.z, 0.0, w.x, w.y, -w.x, 0.0); }

// Coefficients of 1, [w] and [w]^2 in functions of the cross matrix of w, by the square of its length: sin(t)/t,
// (1 - cos t)/t^2 and (t - sin t)/t^3. The closed forms cancel where t is small.
vec3 turn_terms(float square) {
    if (square < 0.09)
        return vec3(1.0 + square * (-1.0 / 6.0 + square / 120.0), 0.5 + square * (-1.0 / 24.0 + square / 720.0),
                    1.0 / 6.0 + square * (-1.0 / 120.0 + square / 5040.0));
    float t = sqrt(square);
    return vec3(sin(t) / t, (1.0 - cos(t)) / square, (t - sin(t)) / (square * t));
}

// exp([w]) (Rodrigues).
mat3 turn_matrix(vec3 w) {
    mat3 k = cross_matrix(w);
    vec3 terms = turn_terms(dot(w, w));
    return mat3(1.0) + terms.x * k + terms.y * (k * k);
}

// By how much exp([w]) turns from the left where w changes.
mat3 turn_jacobian(vec3 w) {
    mat3 k = cross_matrix(w);
    vec3 terms = turn_terms(dot(w, w));
    return mat3(1.0) + terms.y * k + terms.z * (k * k);
}

vec3 turn_of(float own[POSE_NUMBERS]) { return vec3(own[0], own[1], own[2]); }
vec3 shift_of(float own[POSE_NUMBERS]) { return vec3(own[3], own[4], own[5]); }

#endif
