// All gradients of a splat from one view. The includer declares params, v_projected and paints, beside what
// project_bwd.glsl asks for.
#ifndef SPLAT_BWD_GLSL
#define SPLAT_BWD_GLSL
#include "project_bwd.glsl"

Ray ray;            // to the splat
vec3 v_color;
vec3 v_dir;         // dL/d(direction) so far

void coefficients_bwd(uint k, uint i, bool all, float lr_first, float lr) {
    Four four = load_four(k, i, all);
    add_v_dir(v_dir, values(four), k, all, ray.dir, v_color);
    step_four(k, i, all, four, outerProduct(v_color, sh_basis4(ray.dir, k)), lr_first, lr);
}

// All gradients of splat i, whose id is given. A view that does not see it gives those of the penalties alone; zeros
// still decay the moments. Seen and unseen splats go the same way wherever rows are touched.
void splat_bwd(uint i, uint id, bool seen, Penalty penalty) {
    ray = Ray(vec3(0.0), 1.0);
    v_color = vec3(0.0);
    v_dir = vec3(0.0);
    if (seen) {
        ray = ray_to(0u, row3(ROW_MEANS, i));
        // max(SH + 0.5, 0): where it clamps, colour does not move.
        v_color = v_projected[id].color * vec3(greaterThan(paints[id].yzw, vec3(0.0)));
    }
    color_bwd(i);
    Geometry x = load_geometry(0u, i);
    Geometry g = no_geometry();
    if (seen) g = geometry_bwd(0u, x, v_projected[id], direction_vjp(ray, v_dir));
#ifdef DEPTH
    if (seen) g.mean += inverse_depth_vjp(0u, x.mean, v_beside[id].z);
#endif
    penalised_bwd(i, x, g, penalty);
}

#endif
