// What the optimiser does with a splat's gradients, whatever the storage of the model. The includer declares, beside
// what project_bwd.glsl asks for:
//   begin_splat(id)                     called before anything is stepped
//   stat_row(stat)                      the row of a statistic
//   struct Moments, load_moments(i)     of a splat's geometry
//   step_moments(i, moments, g)         steps and stores them, given the gradient; returns what to subtract from the
//   geometry
#ifndef OPTIMISE_GLSL
#define OPTIMISE_GLSL
#include "project_bwd.glsl"
#include "philox.glsl"

// Random words of the splat and the step for MCMC's noise. Drawn in front, beside those for rounding: two calls far
// apart share the twenty words of Philox's keys, which Intel's compiler then keeps, and spills, all the way.
uvec4 noise_words;

// The step of MCMC's noise for a splat's mean: a normal sample times the covariance and the means' learning rate, as
// much as the opacity is near that of the dead.
vec3 explore(Geometry x) {
    vec4 q = normalize(x.quat);
    vec3 scales = exp(x.log_scales);
    float opacity = sigmoid(x.logit_opacity);
    float gate = params[0].noise_scale / (1.0 + exp(NOISE_STEEPNESS * (opacity - NOISE_OPACITY)));
    vec3 normal = vec3(normal_pair(noise_words.x, noise_words.y), normal_pair(noise_words.z, noise_words.w).x);
    mat3 rotation = quat_rotation(q);
    return rotation * (scales * scales * (normal * rotation)) * gate;
}

void step_geometry(uint i, Geometry x, Geometry g) {
    Geometry d = step_moments(i, load_moments(i), g);
    float unit = shell_unit(x.mean);
    if (unit != 1.0) d.mean *= unit;
    subtract_geometry(x, d);
    if (NOISE) x.mean += explore(x) / unit;
    put_geometry(0u, i, x);
}

// Begins the step of a splat.
void begin_step(uint id) {
    begin_adam(params[0]);
    begin_splat(id);
    if (NOISE)
        noise_words = philox(uvec4(id, params[0].step, DRAW_NOISE, 0u), uvec2(params[0].seed_lo, params[0].seed_hi));
}

// Both are means over all n splats of the model.
Penalty penalty_of(uint n) { return Penalty(params[0].opacity_reg / float(n), params[0].scale_reg / (3.0 * float(n))); }

// The statistic of a view: the gradient of the mean in units of half the image (Kerbl et al. 2023, densification).
float grad2d(vec2 v_mean2d, uint view_id) {
    return length(v_mean2d * 0.5 * vec2(params[view_id].view.width, params[view_id].view.height));
}

#endif
