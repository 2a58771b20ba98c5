// What an invocation of project_bwd_adam does, whatever the storage of the model. The includer declares the kernel's interface; row(), row3() and put()
// of project_bwd.glsl; add(at, x), which adds to float32 number `at` of the chunk; stat_row(); and begin_splat(), which is called before put().
#ifndef OPTIMISE_GLSL
#define OPTIMISE_GLSL
#include "project_bwd.glsl"
#include "philox.glsl"

// Adds noise to the mean: a normal sample times the covariance and the means' learning rate, as much as the opacity is near that of the dead.
void explore(StepParams p, uint id, uint i) {
    vec4 q = normalize(vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i)));
    vec3 scales = exp(row3(ROW_LOG_SCALES, i));
    float opacity = sigmoid(row(ROW_LOGIT_OPACITY, i));
    float gate = p.noise_scale / (1.0 + exp(NOISE_STEEPNESS * (opacity - NOISE_OPACITY)));
    uvec4 r = philox(uvec4(id, p.step, DRAW_NOISE, 0u), uvec2(p.seed_lo, p.seed_hi));
    vec3 normal = vec3(normal_pair(r.x, r.y), normal_pair(r.z, r.w).x);
    mat3 rotation = quat_rotation(q);
    vec3 offset = rotation * (scales * scales * (normal * rotation)) * gate;
    for (uint k = 0u; k < 3u; k++) add((ROW_MEANS + k) * pc.chunk_splats + i, offset[k]);
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    StepParams p = params[0];
    begin_splat(id);
    // Both are means over all splats of the model.
    Penalty penalty = Penalty(p.opacity_reg / float(counters[N_ACTIVE]), p.scale_reg / (3.0 * float(counters[N_ACTIVE])));
    if (depth_keys[id] == CULLED) {
        splat_unseen(p, i, penalty);
    } else {
        ProjectedGrad g = v_projected[id];
        // Gradient of the mean in units of half the image (Kerbl et al. 2023, densification).
        uint stat = stat_row(STAT_GRAD2D) * pc.chunk_splats + i;
        vec2 v_mean2d = ABSGRAD ? v_abs_mean2d[id] : g.mean2d;
        add(stat, length(v_mean2d * 0.5 * vec2(p.view.width, p.view.height)));
        add(stat + pc.chunk_splats, 1.0);
        splat_bwd(p, i, g, penalty);
    }
    if (NOISE) explore(p, id, i);
}

#endif
