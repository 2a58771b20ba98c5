// What an invocation of project_bwd_adam_views does, whatever the storage of the model: see optimise.glsl and
// project_bwd.glsl. The includer declares params, index_of, v_views, v_abs_views, N_VIEWS, pc.index_stride and
// pc.grad_stride.
#ifndef OPTIMISE_VIEWS_GLSL
#define OPTIMISE_VIEWS_GLSL
#include "optimise.glsl"

// Views come one after the other, and what is known of each is read and recomputed for every few coefficients: kept
// for all of them it would be seven registers a view, and loops that are unrolled for it make compilers spill. Splats'
// rows are what takes the time.
uint splat_id;
vec3 splat_mean;
vec3 v_mean;        // dL/d(mean) through colour so far, of all views

// A view's share in the mean of all.
float share() { return 1.0 / float(N_VIEWS); }

// Where the gradients from view w are, or CULLED.
uint grad_id(uint w) {
    uint at = index_of[w * pc.index_stride + splat_id];
    return at == CULLED ? CULLED : w * pc.grad_stride + at;
}

void coefficients_bwd(uint k, uint i, bool all, float lr_first, float lr) {
    Four four = load_four(k, i, all);
    mat4x3 x = values(four), g = mat4x3(0.0);
    [[dont_unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        uint at = grad_id(w);
        if (at == CULLED) continue;
        vec3 v_color = v_views[at].color, v_dir = vec3(0.0);
        Ray ray = ray_to(w, splat_mean);
        add_v_dir(v_dir, x, k, all, ray.dir, v_color);
        v_mean += direction_vjp(ray, v_dir);
        g += outerProduct(v_color, sh_basis4(ray.dir, k));
    }
    step_four(k, i, all, four, share() * g, lr_first, lr);
}

// The mean over the views of the gradient of the splat's geometry x.
Geometry geometry_views(Geometry x) {
    Geometry sum = no_geometry();
    sum.mean = v_mean;
    [[dont_unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        uint at = grad_id(w);
        if (at == CULLED) continue;
        add_geometry(sum, geometry_bwd(w, x, v_views[at], vec3(0.0)));
#ifdef DEPTH
        sum.mean += inverse_depth_vjp(w, x.mean, v_beside_views[at].z);
#endif
    }
    return scaled_geometry(share(), sum);
}

// Each view that sees the splat adds to the statistics what it would add alone.
void add_statistics(uint i) {
    uint r = stat_row(STAT_GRAD2D);
    float sum = 0.0, count = 0.0;
    [[dont_unroll]] for (uint w = 0u; w < N_VIEWS; w++) {
        uint at = grad_id(w);
        if (at == CULLED) continue;
        sum += grad2d(ABSGRAD ? v_abs_views[at].xy : v_views[at].mean2d, w);
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
    Penalty penalty = penalty_of(counters[N_TOTAL]);
    splat_id = id;
    splat_mean = row3(ROW_MEANS, i);
    v_mean = vec3(0.0);
    add_statistics(i);
    color_bwd(i);
    Geometry x = load_geometry(0u, i);
    penalised_bwd(i, x, geometry_views(x), penalty);
}

#endif
