package pipeline

import (
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// loss compares the picture that is shown with its photo: the parts of the loss, and the derivatives of SSIM's windows.
func (v *view) loss() {
	v.ssimMaps = vk.ScratchOf[float32](v.r, "ssim_maps", 9*v.size.maxPixels)
	v.partials = vk.ScratchOf[[3]float32](v.r, "partials", v.size.maxTiles)
	c, counted := &v.s.compare, 0
	if c.counts() {
		counted = v.size.maxTiles
	}
	v.counted = vk.ScratchOf[[3]float32](v.r, "counted", counted)
	// If their memory were reused after finish, the next pass would have to wait for it.
	v.r.Keep(v.partials.View)
	v.r.Keep(v.counted.View)
	v.r.Dispatch(&shaders.Loss{
		Params: v.f.params, Render: v.shown, Target: v.s.target, SsimMaps: v.ssimMaps, Partials: v.partials,
		Counted: v.counted,
		Inliers: v.inliers,
		Spec: shaders.LossSpec{TargetFloat: c.floats, Masked: c.masked || c.robust, Alpha: c.alpha, Packed: c.packed,
			Shrunk: c.shrunk, Robust: c.robust},
	}, v.indirect(layout.ArgsTiles))
}

// lossGrad finds the gradient of the loss by every pixel that is shown.
func (v *view) lossGrad() {
	c := &v.s.compare
	v.vShown = vk.ScratchOf[[4]float32](v.r, "v_shown", v.size.maxPixels)
	v.r.Dispatch(&shaders.LossGrad{
		Params: v.f.params, Render: v.shown, Target: v.s.target, SsimMaps: v.ssimMaps, VRender: v.vShown,
		Inliers: v.inliers,
		Spec: shaders.LossGradSpec{TargetFloat: c.floats, Masked: c.masked || c.robust, Alpha: c.alpha,
			Packed: c.packed, Shrunk: c.shrunk, Robust: c.robust},
	}, v.indirect(layout.ArgsTiles))
}

// comparison chooses the variants of the loss kernels.
type comparison struct {
	floats bool // target holds float32 colours
	masked bool // photos may have masks
	alpha  bool // the photo's alpha is compared too
	packed bool // photos may be packed
	shrunk bool // views may be smaller than their photos; see matchLevel
	robust bool // pixels count that find_outliers finds to
}

// comparisonOf returns what the photos and the configuration ask for. Which photos have masks is known where they are
// in memory; elsewhere photos.LayoutOf says.
func comparisonOf(cams []scene.Camera, source photos.Source, cfg *recipe.Config) (c comparison) {
	l := photos.LayoutOf(cams)
	c.alpha, c.masked, c.packed, c.robust = cfg.AlphaLoss > 0, l.Masked, l.Packed, cfg.Robust
	if images, ok := source.(photos.Images); ok {
		for i := range images {
			c.masked = c.masked || images[i].Mask != nil
		}
	}
	return c
}

func (c comparison) counts() bool { return c.masked || c.alpha || c.robust }
