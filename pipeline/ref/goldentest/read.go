package goldentest

import (
	"fmt"
	"math"
	"strings"

	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
)

// goldenReader takes arrays out of one archive; the first error sticks and later reads return zeros of the right
// length.
type goldenReader struct {
	archive *archive
	name    string
	err     error
}

func (r *goldenReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// dims returns the shape of an array, which must have the given rank.
func (r *goldenReader) dims(name string, rank int) []int {
	a := r.archive.Arrays[name]
	if a == nil || len(a.Shape) != rank {
		r.fail("array %s: missing, or not of rank %d", name, rank)
		return make([]int, rank)
	}
	return a.Shape
}

// floats returns n numbers; an array of another size is an error.
func (r *goldenReader) floats(name string, n int) []float32 {
	out := make([]float32, n)
	for i, v := range r.doubles(name, n) {
		out[i] = float32(v)
	}
	return out
}

func (r *goldenReader) doubles(name string, n int) []float64 {
	out := make([]float64, n)
	a := r.archive.Arrays[name]
	if a == nil {
		r.fail("array %s: missing", name)
		return out
	}
	if a.Len() != n {
		r.fail("array %s: %d elements, want %d", name, a.Len(), n)
		return out
	}
	for i := range out {
		out[i] = a.Float(i)
	}
	return out
}

func (r *goldenReader) number(name string) float64 { return r.doubles(name, 1)[0] }

// count returns a scalar that must be a whole number in [0, limit].
func (r *goldenReader) count(name string, limit int) int {
	v := r.number(name)
	if v != math.Trunc(v) || v < 0 || v > float64(limit) {
		r.fail("array %s: %g is not a whole number from 0 to %d", name, v, limit)
		return 0
	}
	return int(v)
}

// counts returns n whole numbers in [0, limit].
func (r *goldenReader) counts(name string, n, limit int) []int {
	out := make([]int, n)
	for i, v := range r.doubles(name, n) {
		if v != math.Trunc(v) || v < 0 || v > float64(limit) {
			r.fail("array %s: %g is not a whole number from 0 to %d", name, v, limit)
			return make([]int, n)
		}
		out[i] = int(v)
	}
	return out
}

// maxSide bounds image sides, so that products of two cannot overflow.
const maxSide = 1 << 15

func (r *goldenReader) params(prefix string, n, degree int) *ref.Params[float32] {
	k := (degree + 1) * (degree + 1)
	p := ref.NewParams[float32](n, degree)
	p.Means, p.Quats = r.floats(prefix+"means", 3*n), r.floats(prefix+"quats", 4*n)
	p.LogScales, p.LogitOpacities = r.floats(prefix+"log_scales", 3*n), r.floats(prefix+"logit_opacities", n)
	p.SH = r.floats(prefix+"sh", 3*k*n)
	return p
}

// setPose fills the pose and the intrinsics from a 4x4 world-to-camera matrix and a 3x3 intrinsic matrix, both
// row-major.
func setPose(v *ref.View[float32], viewmat, k []float32) {
	for i := range 3 {
		for j := range 3 {
			v.R[3*i+j] = viewmat[4*i+j]
		}
		v.T[i] = viewmat[4*i+3]
	}
	v.Fx, v.Fy, v.Cx, v.Cy = k[0], k[4], k[2], k[5]
}

func (r *goldenReader) render() *RenderCase {
	n := r.dims("means", 2)[0]
	degree := int(math.Sqrt(float64(r.dims("sh", 3)[1]))) - 1
	if degree < 0 || degree > 3 {
		r.fail("array sh: not the coefficients of degree 0 to 3")
		degree = 0
	}
	v := &ref.View[float32]{
		Width: r.count("width", maxSide), Height: r.count("height", maxSide), Near: float32(r.number("near")),
		Fisheye: r.count("camera_model", 1) == 1, Antialiased: r.count("antialiased", 1) == 1,
		Background: [3]float32(r.floats("background", 3)), SHDegree: r.count("sh_degree", degree),
	}
	setPose(v, r.floats("viewmat", 16), r.floats("K", 9))
	p := v.Width * v.Height
	c := &RenderCase{
		Name: r.name, Params: r.params("", n, degree), View: v, VRender: make([][4]float32, p),
		RGB: r.floats("rgb", 3*p), Alpha: r.floats("alpha", p), Radii: make([]int32, 2*n),
		Means2D: r.floats("means2d", 2*n), Conics: r.floats("conics", 3*n), Depths: r.floats("depths", n),
		VParams: r.params("g_", n, degree), VMeans2D: r.floats("g_means2d", 2*n),
		AbsMeans2D: r.floats("g_means2d_abs", 2*n),
	}
	for i, radius := range r.counts("radii", 2*n, math.MaxInt32) {
		c.Radii[i] = int32(radius)
	}
	vRGB, vAlpha := r.floats("v_rgb", 3*p), r.floats("v_alpha", p)
	for i := range c.VRender {
		c.VRender[i] = [4]float32{vRGB[3*i], vRGB[3*i+1], vRGB[3*i+2], vAlpha[i]}
	}
	return c
}

func (r *goldenReader) loss() *LossCase {
	shape := r.dims("image", 3)
	c := &LossCase{Name: r.name, Height: shape[0], Width: shape[1], Lambda: r.number("lambda_dssim"),
		Same: strings.Contains(r.name, "same")}
	n := 3 * c.Width * c.Height
	c.Image, c.Target, c.VImage = r.floats("image", n), r.floats("target", n), r.floats("g_image", n)
	c.L1, c.SSIM, c.Loss = r.number("l1"), r.number("ssim"), r.number("loss")
	return c
}

func (r *goldenReader) adam() *AdamCase {
	shape := r.dims("grads", 3)
	n := shape[1] * shape[2]
	c := &AdamCase{Name: r.name, LR: r.number("lr"), Beta1: r.number("beta1"), Beta2: r.number("beta2"),
		Eps: r.number("eps")}
	c.Start, c.End = r.floats("w0", n), r.floats("w5", n)
	grads := r.floats("grads", shape[0]*n)
	for k := range shape[0] {
		c.Grads = append(c.Grads, grads[k*n:(k+1)*n])
	}
	return c
}

func (r *goldenReader) relocation() *RelocationCase {
	n := r.dims("opacities", 1)[0]
	return &RelocationCase{
		Name: r.name, Opacities: r.floats("opacities", n), NewOpacities: r.floats("new_opacities", n),
		Scales: r.floats("scales", 3*n), NewScales: r.floats("new_scales", 3*n),
		Ratios: r.counts("ratios", n, layout.MaxRelocations),
	}
}

func (r *goldenReader) train() *TrainCase {
	shape := r.dims("images", 4)
	c := &TrainCase{
		Name: r.name, Height: shape[1], Width: shape[2], SceneScale: r.number("scene_scale"),
		SHDegreeInterval: max(1, r.count("sh_degree_interval", 1<<30)), Init: r.trainInit(),
	}
	views, pixels := shape[0], 3*shape[1]*shape[2]
	images := r.doubles("images", views*pixels)
	mats, ks := r.floats("viewmats", 16*views), r.floats("Ks", 9*views)
	for k := range views {
		pix := make([]uint8, pixels)
		for i := range pix {
			pix[i] = uint8(images[k*pixels+i])
		}
		c.Images = append(c.Images, pix)
		v := &ref.View[float32]{Width: c.Width, Height: c.Height, Near: 0.01}
		setPose(v, mats[16*k:], ks[9*k:])
		c.Views = append(c.Views, v)
	}
	steps := r.dims("order", 1)[0]
	c.Order = r.counts("order", steps, max(0, views-1))
	c.Loss, c.PSNR = r.doubles("loss", steps), r.doubles("psnr", steps)
	return c
}

// trainInit joins the split tensors of a training case.
func (r *goldenReader) trainInit() *ref.Params[float32] {
	n := r.dims("init_means", 2)[0]
	degree := int(math.Sqrt(float64(r.dims("init_shN", 3)[1]+1))) - 1
	k := (degree + 1) * (degree + 1)
	p := ref.NewParams[float32](n, degree)
	p.Means, p.Quats = r.floats("init_means", 3*n), r.floats("init_quats", 4*n)
	p.LogScales, p.LogitOpacities = r.floats("init_scales", 3*n), r.floats("init_opacities", n)
	sh0, shN := r.floats("init_sh0", 3*n), r.floats("init_shN", 3*(k-1)*n)
	for i := range n {
		copy(p.SH[3*k*i:], sh0[3*i:3*i+3])
		copy(p.SH[3*k*i+3:3*k*(i+1)], shN[3*(k-1)*i:])
	}
	return p
}

// Degree returns the spherical harmonics degree that a step (0, 1, ...) of the run evaluates.
func (c *TrainCase) Degree(step int) int { return min(step/c.SHDegreeInterval, c.Init.Degree) }

// Rates returns the learning rates of a step (0, 1, ...): that of means falls to 1 % over the run, multiplied each
// step.
func (c *TrainCase) Rates(step int) ref.Rates {
	decay := math.Pow(0.01, float64(step)/float64(len(c.Order)))
	return ref.Rates{Means: 1.6e-4 * c.SceneScale * decay, Quats: 1e-3, LogScales: 5e-3, LogitOpacities: 5e-2,
		SH0: 2.5e-3, SHN: 1.25e-4}
}
