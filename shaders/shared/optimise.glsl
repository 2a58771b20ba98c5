// What an invocation of project_bwd_adam does, whatever the storage of the model. The includer declares, beside what project_bwd.glsl asks for:
//   begin_splat(id)                     called before anything is stepped
//   stat_row(stat)                      the row of a statistic
//   struct Moments, load_moments(i)     of a splat's geometry
//   step_moments(i, moments, g)         steps and stores them, given the gradient; returns what to subtract from the geometry
#ifndef OPTIMISE_GLSL
#define OPTIMISE_GLSL
#include "project_bwd.glsl"
#include "adam.glsl"
#include "philox.glsl"

// Random words of the splat and the step for MCMC's noise. Drawn in front, beside those for rounding: two calls far apart share the twenty words of
// Philox's keys, which Intel's compiler then keeps, and spills, all the way.
uvec4 noise_words;

// The step of MCMC's noise for a splat's mean: a normal sample times the covariance and the means' learning rate, as much as the opacity is near that of
// the dead.
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
    x.mean -= d.mean;
    x.quat -= d.quat;
    x.log_scales -= d.log_scales;
    x.logit_opacity -= d.logit_opacity;
    if (NOISE) x.mean += explore(x);
    put_geometry(0u, i, x);
}

// Gradient of the mean in units of half the image (Kerbl et al. 2023, densification).
void add_statistics(uint id, uint i) {
    uint r = stat_row(STAT_GRAD2D);
    vec2 v_mean2d = ABSGRAD ? v_abs_mean2d[id] : v_projected[id].mean2d;
    float sum = row(r, i), count = row(r + 1u, i);
    put(r, i, sum + length(v_mean2d * 0.5 * vec2(params[0].view.width, params[0].view.height)));
    put(r + 1u, i, count + 1.0);
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    uint n = counters[N_ACTIVE], failed = counters[FAILED];
    if (i >= pc.chunk_splats || id >= n || failed != 0u) return;
    begin_adam(params[0]);
    begin_splat(id);
    if (NOISE) noise_words = philox(uvec4(id, params[0].step, DRAW_NOISE, 0u), uvec2(params[0].seed_lo, params[0].seed_hi));
    // Both are means over all splats of the model.
    Penalty penalty = Penalty(params[0].opacity_reg / float(n), params[0].scale_reg / (3.0 * float(n)));
    bool seen = depth_keys[id] != CULLED;
    if (seen) add_statistics(id, i);
    splat_bwd(i, id, seen, penalty);
}

#endif
