// Every constant that kernels and Go share. One `const type NAME = literal;` a line: tools/shadergen reads this file as
// text.
#ifndef CONST_GLSL
#define CONST_GLSL

// Tiles are TILE_SIZE x TILE_SIZE pixels; one workgroup blends one tile.
const uint TILE_SIZE = 16u;
const uint TILE_PIXELS = 256u;
// A bucket is a run of isects of one tile: the forward pass saves the pixels' state before each, the backward pass
// starts from it. The kind of device decides how many isects it has, a power of two between these two, never the
// subgroup size: no byte depends on the device's subgroups.
const uint LEAST_BUCKET = 64u;
const uint MOST_BUCKET = 256u;
// A tile has this many patches (raster.glsl). The backward pass learns which of them an isect's splat touches from
// words of TOUCH_BITS isects.
const uint PATCHES = 8u;
const uint TOUCH_BITS = 32u;
// Tiles that a workgroup of tile_offsets orders: one less than it has invocations, because a tile's isects end where
// the next one's begin.
const uint ORDER_TILES = 255u;

// Blending (Kerbl et al. 2023, section 4 and the reference rasterizer): a splat is skipped below ALPHA_THRESHOLD =
// 1/255, is never more opaque than MAX_ALPHA, and a pixel stops before its transmittance would reach
// TRANSMITTANCE_THRESHOLD.
const float MAX_ALPHA = 0.99;
const float ALPHA_THRESHOLD = 0.00392156862745098;
const float TRANSMITTANCE_THRESHOLD = 0.0001;
// Logit opacity of a splat that no picture shows, far below that of ALPHA_THRESHOLD.
const float INVISIBLE_LOGIT = -30.0;
// Low-pass filter added to the diagonal of every projected covariance, px^2.
const float EPS2D = 0.3;
// The Jacobian of the pinhole projection is evaluated at most this share of half the field of view outside the image.
const float JACOBIAN_MARGIN = 0.3;
// Slack added to 2 ln(255 opacity) so that rounding never drops a pixel that sits on the threshold.
const float EXTENT_SLACK = 0.001;

// depth_keys of a splat that this view does not see. Larger than the bits of every finite float.
const uint CULLED = 0xFFFFFFFFu;
// Depths are sorted by the bits of their floats less those of 2^-12, without the last four: 24 bits hold 19 of the
// mantissa from 2^-12 to 2^20. What is nearer or farther is as near or far.
const uint LEAST_DEPTH = 0x39800000u;
const uint DEPTH_DROPPED = 4u;
const uint DEPTH_BITS = 24u;

// Rows of a model chunk: a float matrix [rows][chunk capacity]. With P = ROW_SH + 3 K parameters, K = (degree + 1)^2:
// rows [0, P) parameters, [P, 2P) first moments, [2P, 3P) second moments, then the two statistics. In mixed precision:
// see mixed.glsl.
#include "model_rows.glsl"
const uint STAT_GRAD2D = 0u;
const uint STAT_COUNT = 1u;
const uint STAT_ROWS = 2u;

// How the photo of a step lies in `target`: bits.
const uint PHOTO_MASKED = 1u;   // mask bits follow the pixels; pixels whose bit is 0 do not count
const uint PHOTO_PACKED = 2u;   // RGB8, three bytes a pixel: it is opaque

// Numbers of a photo's appearance: exposure, then white balance, then vignetting; see appearance.glsl.
const uint APPEARANCE_NUMBERS = 24u;
const uint WHITE_BALANCE = 1u;
const uint VIGNETTING = 9u;
// A camera's second moments of vignetting and their bias correction
const uint SECONDS = 16u;

// Numbers of what is learnt of a photo's camera beside what is given, see pose.glsl: a turn, a shift, and LENS_NUMBERS
// of the lens from POSE_LENS on.
const uint POSE_NUMBERS = 13u;
const uint POSE_LENS = 6u;
const uint LENS_NUMBERS = 7u;
// Splats of a workgroup that sums gradients by a pose: chunks are multiples of it, so that what is summed with what
// does not depend on them.
const uint POSE_SPLATS = 64u;
// Words of a point that anchors a pose: where it is, world units, and where the photo shows it, px.
const uint ANCHOR_WORDS = 5u;

// Robust training goes by squares of SQUARE x SQUARE pixels, of which a tile has TILE_SQUARES, and by places of the
// scene: cubes about PLACE_PIXELS pixels wide.
const uint SQUARE = 4u;
const uint TILE_SQUARES = 16u;
const float PLACE_PIXELS = 16.0;
// Words of a history, almost 1 MiB, which any binding spans: the sum of the errors of squares, and how many; then one
// for each place, or for some that share it: photos that agree with the model there in the lower bits, photos that
// differ in the upper ones. Of more photos than PHOTO_BITS some share a bit.
const uint HISTORY_WORDS = 262080u;
const uint PHOTO_BITS = 16u;
// Errors are summed as whole numbers of 1 / ERROR_ONE, and the sum loses 1 / ERROR_MEMORY of itself in each step.
const uint ERROR_ONE = 256u;
const uint ERROR_MEMORY = 16u;
// What a square of a step is, in two bits above its error.
const uint SQUARE_AGREES = 0x40000000u;
const uint SQUARE_DIFFERS = 0x80000000u;
const uint NO_SQUARE = 0xFFFFFFFFu;     // too much of it is outside the picture, or masked
// An error below LEAST_ERROR is never large. One of ALIKE times a large one is none, from SUSPECT times on it is one
// beside large ones.
const float LEAST_ERROR = 0.1;
const float ALIKE = 0.5;
const float SUSPECT = 0.45;
// Other photos that must agree at a place before one of another opinion is not believed.
const uint WITNESSES = 2u;
// Words of a tile that say which of its TILE_PIXELS count, a bit each.
const uint COUNT_WORDS = 8u;

// Camera models.
const uint CAMERA_PINHOLE = 0u;
const uint CAMERA_FISHEYE = 1u;
// Bits of Lens.flags: tangential and prism terms are functions of the radially distorted point; the lens sees what is
// beside the camera and behind it.
const uint LENS_AFTER = 1u;
const uint LENS_WIDE = 2u;
// Of cameras that are refined: splats are drawn through the lens, and its distortion is learnt; nothing of it is
// learnt.
const uint LENS_LEARNT = 4u;
const uint LENS_HELD = 8u;
// Cosine of 88 degrees: what is further from the axis of a lens is beside the camera.
const float LENS_SIDE = 0.0348994967;

// Slots of `counters`, all uint. The first four live as long as the model, the rest are reset in every unit of work.
const uint N_SPLATS = 0u;
// Nonzero: something did not fit; every later unit does nothing until the host has grown it and cleared this.
const uint FAILED = 1u;
const uint FAILED_UNIT = 2u;
const uint NEEDED = 3u;
const uint N_ACTIVE = 4u;
const uint N_VISIBLE = 5u;
const uint N_ISECTS = 6u;
const uint N_NEW = 7u;
const uint N_HOLES = 8u;
const uint N_AFTER = 9u;
const uint N_FREE_HOLES = 10u;
const uint N_NEW_ALLOWED = 11u;
const uint N_ISECTS_MAX = 12u;
const uint N_WEIGHT = 13u;
const uint N_GROWN = 14u;
const uint N_SENT = 15u;     // splats of this device that a view sees
// Splats of all devices that share a scene.
const uint N_TOTAL = 16u;
const uint N_COUNTERS = 17u;

const uint FAILED_ISECTS = 1u;
const uint FAILED_SPLATS = 2u;
// Several devices: a packet holds more splats than there is room for; the packets of a view together do; another device
// failed.
const uint FAILED_PACKET = 4u;
const uint FAILED_VIEW = 8u;
const uint FAILED_PEER = 16u;

// Slots of `dispatch_args`, three uint each (x, y, z groups).
const uint ARGS_SORT_SPLATS = 0u;
const uint ARGS_SORT_VISIBLE = 1u;
const uint ARGS_VISIBLE = 2u;
const uint ARGS_SCAN_VISIBLE = 3u;
const uint ARGS_SORT_ISECTS = 4u;
const uint ARGS_BUCKETS = 5u;
const uint ARGS_SCAN_SPLATS = 6u;
const uint ARGS_SPLATS = 7u;
const uint ARGS_TILES = 8u;
const uint ARGS_TILE_OFFSETS = 9u;
const uint ARGS_DRAWS = 10u;
const uint ARGS_COPIES = 11u;
const uint ARGS_REDUCE = 12u;
const uint N_ARGS = 13u;

// Work per workgroup of the prefix sum and of the sort, in elements. The sort's is fixed so that histograms have one
// size on every device.
const uint GROUP = 256u;
const uint SCAN_BLOCK = 2048u;
const uint SORT_BLOCK = 2048u;
// Splats of a workgroup that fills a packet for another device, and words of one that copies a packet.
const uint SEND_BLOCK = 1024u;
const uint COPY_BLOCK = 2048u;
// Digits of all passes, and passes, of a sort that counts all digits at once.
const uint SORT_DIGITS = 1024u;
const uint SORT_PASSES = 8u;

// Splats of a workgroup of reduce_slots: 256 invocations, nine to a splat. A splat that touches more than MANY_SLOTS
// tiles of the image is summed row by row.
const uint REDUCE_RANKS = 28u;
const uint MANY_SLOTS = 64u;

// What refine_classify decides for a splat.
const uint ACTION_KEEP = 0u;
const uint ACTION_DUPLICATE = 1u;
const uint ACTION_SPLIT = 2u;
const uint ACTION_PRUNE = 3u;

// Adam (Kingma and Ba 2015) as every published 3DGS recipe sets it.
const float ADAM_BETA1 = 0.9;
const float ADAM_BETA2 = 0.999;
const float ADAM_EPS = 1e-15;

// SSIM (Wang et al. 2004) on [0, 1] images: (0.01)^2 and (0.03)^2.
const float SSIM_C1 = 0.0001;
const float SSIM_C2 = 0.0009;

// Strategies. Third word of the Philox counter (splat, step, word, 0), so that no two uses share a number. The children
// of a split take 0 and 1; what comes in two rounds takes the word and the next.
const uint DRAW_NOISE = 2u;
const uint DRAW_BACKGROUND = 3u;
const uint DRAW_WEIGHT = 4u;
const uint DRAW_SOURCE = 6u;
const uint DRAW_ROUNDING = 8u;
// Rounds of an MCMC refinement.
const uint ROUND_RELOCATE = 0u;
const uint ROUND_GROW = 1u;
// MCMC: the most copies of one splat that equation 9 is evaluated for, and the least distance of an opacity from 0 and
// 1.
const uint MAX_RELOCATIONS = 51u;
const float OPACITY_MARGIN = 0.00000011920929;
// MCMC: the noise's gate is 1 / (1 + exp(NOISE_STEEPNESS (opacity - NOISE_OPACITY))).
const float NOISE_STEEPNESS = 100.0;
const float NOISE_OPACITY = 0.005;
// No source: every splat that one could be drawn from is dead.
const uint NO_SOURCE = 0xFFFFFFFFu;

// What verify looks for.
const uint VERIFY_FINITE = 0u;          // words are finite floats
const uint VERIFY_FINITE_AT = 1u;       // likewise, of the elements that an index names
const uint VERIFY_FINITE_ROWS = 2u;     // likewise, of the splats of a chunk
const uint VERIFY_SORTED = 3u;          // words never decrease
const uint VERIFY_SORTED_AT = 4u;       // depths never fall in the order of an index, and none is CULLED
const uint VERIFY_DISTINCT = 5u;        // words are below a bound and occur once
const uint VERIFY_OFFSETS = 6u;         // offsets: from 0, never decreasing, to a total
const uint VERIFY_GROUPS = 7u;          // each word is the number of the run of offsets it lies in
const uint VERIFY_FINITE_HALVES = 8u;   // VERIFY_FINITE_ROWS of rows with two halves a word
const uint VERIFY_FINITE_BFLOATS = 9u;  // likewise, bfloat16

// What an element count of verify means; smaller numbers are slots of `counters`.
const uint COUNT_PIXELS = 0x40000000u;
const uint COUNT_TILES = 0x40000001u;

// What pictures of a model show.
const uint LOOK_COLOR = 0u;
const uint LOOK_DEPTH = 1u;         // red: the sum of weight times camera z, green: of weights, blue: with z squared
const uint LOOK_CENTERS = 2u;       // a dot for each splat
const uint LOOK_ELLIPSOIDS = 3u;    // opaque up to so many standard deviations
const float DOT_SIGMA = 0.7;        // px
const float ELLIPSOID_SIGMAS = 1.5;

#endif
