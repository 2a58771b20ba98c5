// Package ref is the plain-Go twin of every GPU kernel: same inputs, same outputs, none of the tricks. It judges the
// GPU, and finite differences judge it.
//
// Everything is generic over float32 and float64. Transcendental functions are evaluated in float64 and rounded.
// Results assume that the compiler does not fuse multiplications with additions (GOAMD64=v1).
//
// Model tensors are interleaved per splat, as in splat files: means [3N], quats [4N] (w, x, y, z, not normalised),
// log_scales [3N], logit_opacities [N], sh [N*K*3] (coefficient-major, K = (degree+1)^2). Gradients carry the prefix
// v_.
package ref

// Constants of the rasterizer (Kerbl et al. 2023 and its reference implementation).
const (
	TileSize               = 16   // pixels along each side of a tile
	MaxAlpha               = 0.99 // ceiling of a splat's alpha; no gradient flows through it
	AlphaThreshold         = 1.0 / 255
	TransmittanceThreshold = 1e-4 // blending stops before a splat that would bring transmittance to this or less
	Eps2D                  = 0.3  // low-pass filter added to the 2D covariance's diagonal, px^2
	// share of half the field of view outside the image where the pinhole Jacobian is clamped
	JacobianMargin = 0.3
	ExtentSlack    = 1e-3 // added to 2 ln(255 opacity), so that rounding never drops a pixel on the threshold

	// Culled is the depth key of a splat that a view does not see. It is larger than the bits of every finite float.
	Culled = 0xFFFFFFFF
)
