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
    float widen;        // px^2, added to EPS2D in pictures that are larger than those of training; 0 in training
};

// The distortion of a camera as scene.Distortion has it, in the plane of a View with focal length 1.
struct Lens {
    float num[6];       // of r^2, r^4, ... in the radial factor's numerator
    float den[3];       // and in its denominator
    float p1;           // tangential: dx = 2 p1 x y + p2 (r^2 + 2 x^2), dy = p1 (r^2 + 2 y^2) + 2 p2 x y
    float p2;
    vec2 prism;         // of r^2, added to x and y
    vec2 prism4;        // of r^4
    float skew;         // of the bent y, added to x
    float limit2;       // r^2 beyond which the lens sees nothing
    vec2 lo;            // corners of what the photo shows of the plane
    vec2 hi;
    vec2 margin;        // the pinhole Jacobian is evaluated at x/z and y/z at most this far outside
    float radius;       // of the corner of lo and hi that is furthest from the axis
    uint flags;         // LENS_*
    // The camera's motion while its rows are read out (shutter.glsl), along the axes of its pose at the middle row.
    vec3 turn;          // rotation vector
    vec3 move;          // of the centre, world units
};

// A camera that judges splats by the points that it sees.
struct Voter {
    View view;
    float empty;        // space up to this depth is empty; 0: not known
    // Median of the points' depths. A splat beyond it is behind what this camera knows, which says nothing of it.
    float median;
};

// What a training photo has learnt of how its camera changed it (appearance.glsl), with its optimiser's state.
struct Appearance {
    float own[APPEARANCE_NUMBERS];
    float m[APPEARANCE_NUMBERS];    // first moments
    float v[APPEARANCE_NUMBERS];    // second moments
    float bias1;                    // 1 - beta1^t, t the times that this photo was trained on
    float bias2;                    // 1 - beta2^t
    float camera;                   // a whole number: photos of one camera share their vignetting
};

// What is done to the picture of a step.
struct Correction {
    float own[APPEARANCE_NUMBERS];  // as in Appearance, of mean zero over all photos, and of the whole camera
    float gain;                     // 2^exposure
    float colour[9];                // of white balance: on (r, g, b), column by column
    // Sums over the camera's photos: vignetting's second moments, and their bias2.
    float seconds[SECONDS];
};

// What a training photo has learnt of its camera beside what is given (pose.glsl), with its optimiser's state.
struct Pose {
    float own[POSE_NUMBERS];
    float m[POSE_NUMBERS];  // first moments
    float v[POSE_NUMBERS];  // second moments
    float bias1;            // 1 - beta1^t, t the times that this photo was trained on
    float bias2;            // 1 - beta2^t
    float camera;           // a whole number: photos of one camera share their lens
    // 1 + the step from which on cameras are refined, -1: the trials said no, 0: that is open; the same in all rows
    float refined;
    float rot[9];           // of the given pose, world to camera, row-major
    vec3 center;            // of the given pose, from the mean over all training photos, world units
};

// What a step uses of them.
struct PoseOfStep {
    float own[POSE_NUMBERS];        // as in Pose, less what all cameras share, and of the whole camera
    float seconds[LENS_NUMBERS];    // sums over the camera's photos of their second moments
    float bias2;                    // likewise of bias2
};

// The parameters of a unit of work. Settings that kernels read as they are come from settings.schema; the other members
// are what the host derives from settings for the step, and what describes the unit.
struct StepParams {
    View view;
    uint unit;          // number of this unit of work, never reused
    uint step;
    uint seed_lo;
    uint seed_hi;
    #include "settings_gen.glsl"
    // Optimiser.
    float lr_means;         // of this step, world units
    float inv_bias1;        // 1/(1 - beta1^t)
    float inv_sqrt_bias2;   // 1/sqrt(1 - beta2^t)
    // The photo.
    uint photo_flags;       // PHOTO_* bits
    uint photo_offset;      // words of `target` before the photo
    uint view_id;           // which training photo this is
    float lr_appearance;    // of exposure and white balance; below 0: the photo's is not stepped
    float lr_vignetting;
    float appearance_beta1; // Adam's, of a photo
    float appearance_beta2;
    // Strategies.
    float prune_scale;      // largest scale above which a splat is pruned, world units; 0: never
    float reset_logit;      // ceiling of logit opacities after a reset
    float noise_scale;      // MCMC: of the noise on means, learning rates included
    float shell;            // splats are of the far shell from this distance on; 0: there is none
    uint max_splats;        // ceiling of the model
    uint splat_capacity;    // splats the allocated chunks hold
    uint target_splats;     // splats after this refinement; 0: what the thresholds make of it
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
