// A camera that moves while its rows are read out, from top to bottom. At time t, -1/2 at the top edge of the picture
// and 1/2 at the bottom,
//   q = exp(-t [turn]) (p - t move)
// is where its pose has a point p of the middle pose's frame. A splat is projected by the pose of the row that shows
// its mean. That the row moves with the mean is in the shear of the picture around it, by which edges lean: the
// gradient of the mean through its place is exact. The gradient of the covariance holds the pose and the shear. From
// the first row to the last its size changes with them by a share of about 2 |turn| + 2 |move| / depth, a few per cent
// for a phone, so what is neglected is that share of the covariance for a whole picture's height of the mean's way.
#ifndef SHUTTER_GLSL
#define SHUTTER_GLSL
#include "pose.glsl"

const uint SHUTTER_STEPS = 2u;      // in which a splat's row is found
const float SHUTTER_REACH = 1.0;    // the longest time from the middle row that a pose is taken at
const float SHUTTER_DRIFT = 0.5;    // the most that motion moves a picture by over the readout, of its height

// The pose of the row that shows a splat's mean, beside the middle one.
struct Row {
    mat3 turn;      // from the middle pose's axes to its own
    vec3 point;     // the mean, in its frame
    mat2 shear;     // of the picture around the mean
};

// By how much of the picture's height the motion moves a splat's picture over the whole readout. It is limited: splats
// right before the camera would move by more than the first order holds for.
vec2 row_drift(View v, Row r) {
    View plane = plane_view(v);
    mat3x2 jacobian = jacobian_at_mean(plane, r.point, projection_jacobian(plane, r.point));
    vec2 along = jacobian * (-cross(lens[0].turn, r.point) - r.turn * lens[0].move);
    vec2 drift = lens_focal(v) * (bend(project_point(plane, r.point)).slope * along) / float(v.height);
    return clamp(drift, -SHUTTER_DRIFT, SHUTTER_DRIFT);
}

// Solves row(q(t)) = t for the time t of a camera point p of the middle pose by Newton's method. Rows are almost linear
// in t: after the second step it is off by less than a thousandth of a pixel. Times go on outside of the picture, by
// SHUTTER_REACH in all, so that large splats there lean as what they reach into.
Row row_of(View v, vec3 p) {
    Row r = Row(mat3(1.0), p, mat2(1.0));
    float t = 0.0, height = float(v.height);
    for (uint k = 0u; k < SHUTTER_STEPS; k++) {
        vec2 drift = row_drift(v, r);
        t += (lens_point(v, r.point).y / height - 0.5 - t) / (1.0 - drift.y);
        t = t > -SHUTTER_REACH ? min(t, SHUTTER_REACH) : -SHUTTER_REACH;   // NaN, too
        r.turn = turn_matrix(-t * lens[0].turn);
        r.point = r.turn * (p - t * lens[0].move);
    }
    // The mean's place follows p by J dp where the pose is held, and by J dp + height drift dt where dt is
    // that of its row: (I - drift (0, 1))^-1 J dp in all.
    if (abs(t) < SHUTTER_REACH) {
        vec2 drift = row_drift(v, r);
        float slow = 1.0 / (1.0 - drift.y);
        r.shear = mat2(1.0, 0.0, drift.x * slow, slow);
    }
    return r;
}

#endif
