// What changes from one unit of work to the next; the host writes it into a mapped ring, kernels read it.
#ifndef PARAMS_GLSL
#define PARAMS_GLSL
#include "const.glsl"

// A camera. x_camera = rot * x_world + trans, OpenCV axes (x right, y down, z forward).
struct View {
    float rot[9];       // row-major
    vec3 trans;
    vec2 focal;         // px
    vec2 center;        // principal point, px; the centre of the first pixel is (0.5, 0.5)
    uint width;         // px
    uint height;
    uint tile_width;    // tiles
    uint tile_height;
    uint camera_model;  // CAMERA_*
    float near;         // splats at camera z <= near are culled
    uint sh_degree;     // degree evaluated, at most the model's
    uint antialiased;   // 1: opacity times sqrt(det before / det after the low-pass filter) (Yu et al. 2024)
    vec3 background;
};

// A camera that judges splats by the points that it sees.
struct Voter {
    View view;
    float empty;        // space up to this depth is empty; 0: not known
    float median;       // of the points' depths: a splat beyond is behind what this camera knows, which says nothing of it
};

// A training photo's colour map, row-major [3][4]: c' = affine[:, :3] c + affine[:, 3], with the state of its optimiser.
struct Exposure {
    float affine[12];
    float m[12];            // first moments
    float v[12];            // second moments
    float bias1;            // 1 - beta1^t, t the times that this photo was trained on
    float bias2;            // 1 - beta2^t
};

struct StepParams {
    View view;
    uint unit;          // number of this unit of work, never reused
    uint step;
    uint seed_lo;
    uint seed_hi;
    // Optimiser: learning rates, and 1/(1 - beta1^t), 1/sqrt(1 - beta2^t).
    float lr_means;
    float lr_quats;
    float lr_log_scales;
    float lr_logit_opacity;
    float lr_sh0;
    float lr_shn;
    float inv_bias1;
    float inv_sqrt_bias2;
    // Loss: (1 - ssim_lambda) L1 + ssim_lambda (1 - SSIM); windows that leave the image count only with ssim_same = 1.
    float ssim_lambda;
    uint ssim_same;
    // Masks, alpha loss and exposure.
    uint photo_flags;       // PHOTO_* bits
    float alpha_loss;       // weight of the mean |alpha - photo's alpha|
    uint view_id;           // which training photo this is
    float lr_exposure;      // below 0: the photo's colour map is not stepped
    float exposure_reg;     // weight of the mean squared distance of the photo's colour map from the identity
    // Default strategy.
    float grow_grad2d;      // mean 2D gradient above which a splat grows
    float grow_scale;       // largest scale up to which it is duplicated rather than split, world units
    float prune_opacity;
    float prune_scale;      // largest scale above which it is pruned, world units; 0: never
    float reset_logit;      // ceiling of logit opacities after a reset
    uint max_splats;        // ceiling of the model
    uint splat_capacity;    // splats the allocated chunks hold
    // Strategies and regularisers.
    float opacity_reg;      // weight of the mean opacity
    float scale_reg;        // weight of the mean scale
    float noise_scale;      // MCMC: of the noise on means, learning rates included
    uint target_splats;     // splats after this refinement; 0: what the thresholds make of it
    uint revised_opacity;   // 1: what is split or duplicated gets 1 - sqrt(1 - opacity)
    // Progressive resolution.
    uint level;             // the view's width and height are those of the photo, halved so many times and rounded down
    uint photo_width;       // px
    uint photo_height;
    // Pictures.
    uint look;              // LOOK_*
    // Batches of views: Adam's constants for them, with 1 - beta as the host rounds it.
    float batch_beta1;
    float batch_rest1;      // 1 - batch_beta1
    float batch_beta2;
    float batch_rest2;
    float batch_eps;
};

// What precedes a packet from one device to another, in memory of both.
struct PacketHeader {
    uint n;         // records that follow
    uint failed;    // 1: the sender failed, and nothing follows
    uint needed;    // records that there was no room for; 0: there was
    uint unit;      // that the packet belongs to
    uint splats;    // of the sender's share of the scene
};

// What the host learns of a unit, in a mapped ring.
struct Report {
    uint unit;
    uint step;
    uint failed;
    uint failed_unit;
    uint needed;
    uint n_splats;
    uint n_visible;
    uint n_isects;
    float loss;
    float l1;               // this and the next two: means over what counts
    float mse;              // mean squared error, of the unclamped rendering
    float ssim;
    // Masks and alpha loss.
    float alpha_l1;         // mean |alpha - photo's alpha| over pixels that count; 0 without alpha loss
    uint n_counted;         // pixels that count
    uint max_splats_hit;    // splats that wanted to grow and found the ceiling
};

#endif
