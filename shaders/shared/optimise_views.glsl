// What an invocation of project_bwd_adam_views does, whatever the storage of the model: see optimise.glsl and project_bwd.glsl. The includer declares params,
// index_of, v_views, v_abs_views, N_VIEWS, pc.index_stride and pc.grad_stride.
#ifndef OPTIMISE_VIEWS_GLSL
#define OPTIMISE_VIEWS_GLSL
#include "optimise.glsl"

// What coefficients_bwd needs of each view. All loops over them are unrolled, so that they lie in registers.
uint grad_ids[N_VIEWS];     // the splat's gradients in v_views, or CULLED
Ray rays[N_VIEWS];
vec3 v_colors[N_VIEWS];
vec3 v_mean;                // dL/d(mean) through colour, of all views so far

// A view's share in the mean of all.
float share() { return 1.0 / float(N_VIEWS); }

void load_views(uint i, uint id) {
    vec3 mean = row3(ROW_MEANS, i);
    [[unroll]] for (uint w = 0u; w < N_VIEWS; w++) grad_ids[w] = index_of[w * pc.index_stride + id];
    [[unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        bool seen = grad_ids[w] != CULLED;
        grad_ids[w] = seen ? w * pc.grad_stride + grad_ids[w] : CULLED;
        rays[w] = seen ? ray_to(w, mean) : Ray(vec3(0.0), 1.0);
        v_colors[w] = vec3(0.0);
        if (seen) v_colors[w] = v_views[grad_ids[w]].color;
    }
    v_mean = vec3(0.0);
}

void coefficients_bwd(uint k, uint i, bool all, float lr_first, float lr) {
    Four four = load_four(k, i, all);
    mat4x3 x = values(four), g = mat4x3(0.0);
    [[unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        if (grad_ids[w] == CULLED) continue;
        vec3 v_dir = vec3(0.0);
        add_v_dir(v_dir, x, k, all, rays[w].dir, v_colors[w]);
        v_mean += direction_vjp(rays[w], v_dir);
        g += outerProduct(v_colors[w], sh_basis4(rays[w].dir, k));
    }
    step_four(k, i, all, four, share() * g, lr_first, lr);
}

// The sum over the views that see the splat, whose geometry is x. It reads anew what coefficients_bwd kept, because only one view at a time is at work here:
// with this loop unrolled the code would be long, and the registers would be many.
Geometry geometry_views(uint id, Geometry x) {
    Geometry sum = Geometry(v_mean, vec4(0.0), vec3(0.0), 0.0);
    [[dont_unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        uint at = index_of[w * pc.index_stride + id];
        if (at == CULLED) continue;
        Geometry g = geometry_bwd(w, x, v_views[w * pc.grad_stride + at], vec3(0.0));
        sum.mean += g.mean;
        sum.quat += g.quat;
        sum.log_scales += g.log_scales;
        sum.logit_opacity += g.logit_opacity;
    }
    return Geometry(share() * sum.mean, share() * sum.quat, share() * sum.log_scales, share() * sum.logit_opacity);
}

// Each view that sees the splat adds to the statistics what it would add alone.
void add_statistics(uint id, uint i) {
    uint r = stat_row(STAT_GRAD2D);
    float sum = 0.0, count = 0.0;
    [[dont_unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        uint at = index_of[w * pc.index_stride + id];
        if (at == CULLED) continue;
        at += w * pc.grad_stride;
        sum += grad2d(ABSGRAD ? v_abs_views[at] : v_views[at].mean2d, w);
        count += 1.0;
    }
    if (count == 0.0) return;
    put(r, i, row(r, i) + sum);
    put(r + 1u, i, row(r + 1u, i) + count);
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    uint n = counters[N_ACTIVE], failed = counters[FAILED];
    if (i >= pc.chunk_splats || id >= n || failed != 0u) return;
    begin_step(id);
    Penalty penalty = penalty_of(params[0].total_splats == 0u ? n : params[0].total_splats);
    add_statistics(id, i);
    load_views(i, id);
    color_bwd(i);
    Geometry x = load_geometry(0u, i);
    penalised_bwd(i, x, geometry_views(id, x), penalty);
}

#endif
