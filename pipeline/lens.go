package pipeline

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

type lenses struct {
	bent    bool // splats are drawn through lenses that bend their pictures, or that move
	shutter bool // rolling shutters: cameras move while their photos are read out
	refined bool // they are refined: where none bends, they bend nothing
}

func lensesOf(cameras []scene.Camera, kinds []recipe.Kind) (l lenses) {
	l.refined = slices.Contains(kinds, recipe.Align)
	for i := range cameras {
		if c := &cameras[i]; c.Distortion != nil {
			l.bent, l.shutter = true, l.shutter || c.Moved()
		}
	}
	return l
}

// checkLenses refuses settings that do not work with lenses.
func checkLenses(cfg *recipe.Config, cams []scene.Camera, o *TrainerOptions) error {
	const text = "start training: photos are trained on as taken %s"
	switch {
	case !lensesOf(cams, nil).bent:
		return nil
	case len(o.Others) > 0:
		return fmt.Errorf(text, "on one device alone")
	case cfg.Robust:
		return fmt.Errorf(text, "as a whole, not where others agree with them")
	case o.comparesDepths():
		return fmt.Errorf(text, "without depths and normals")
	}
	return nil
}

// frameLens holds the lens of a unit in flight; it is empty if no camera has one.
type frameLens struct {
	lens vk.Slice[layout.Lens] // [1], mapped
}

func (f *frameLens) allocate(e *setup) (err error) {
	if !e.lens.bent && !e.lens.refined {
		return nil
	}
	if f.lens, err = vk.Make[layout.Lens](e.dev, vk.Upload, 1, "lens"); err != nil {
		return err
	}
	vk.Host(f.lens)[0] = layout.Lens{}
	return nil
}

// set fills the lens of a camera, which may have none if others do.
func (f *frameLens) set(c *scene.Camera) {
	if f.lens.IsZero() {
		return
	}
	lensParams(&vk.Host(f.lens)[0], c)
}

func (f *frameLens) free(e *setup) {
	if !f.lens.IsZero() {
		e.dev.Free(f.lens.View)
	}
}

// cornerRadius is how far the furthest corner of what a photo shows of its plane is from the axis.
func cornerRadius(lo, hi [2]float64) float64 {
	return math.Hypot(max(-lo[0], hi[0]), max(-lo[1], hi[1]))
}

// boundless is r^2 that no lens reaches.
const boundless = 3e38

func lensParams(l *layout.Lens, c *scene.Camera) {
	*l = layout.Lens{Limit2: boundless}
	focal, centre := [2]float64{c.Fx, c.Fy}, [2]float64{c.Cx, c.Cy}
	size := [2]float64{float64(c.Width), float64(c.Height)}
	var lo, hi [2]float64
	for k := range lo {
		lo[k], hi[k] = -centre[k]/focal[k], (size[k]-centre[k])/focal[k]
	}
	if d := c.Distortion; d != nil {
		lo, hi = d.Min, d.Max
		for k, x := range d.Num {
			l.Num[k] = float32(x)
		}
		for k, x := range d.Den {
			l.Den[k] = float32(x)
		}
		l.P1, l.P2, l.Skew = float32(d.P1), float32(d.P2), float32(d.Skew)
		l.Prism = [2]float32{float32(d.PrismX[0]), float32(d.PrismY[0])}
		l.Prism4 = [2]float32{float32(d.PrismX[1]), float32(d.PrismY[1])}
		if d.Blind {
			l.Limit2 = float32(d.Limit * d.Limit)
		}
		l.Flags = layout.LensAfter*layout.Bit(d.After) | layout.LensWide*layout.Bit(d.Wide) |
			layout.LensLearnt*layout.Bit(!d.After)
		for k := range l.Turn {
			l.Turn[k], l.Move[k] = float32(c.Motion.Turn[k]), float32(c.Motion.Move[k])
		}
	}
	l.Radius = float32(cornerRadius(lo, hi))
	for k := range lo {
		l.Lo[k], l.Hi[k] = float32(lo[k]), float32(hi[k])
		l.Margin[k] = float32(layout.JacobianMargin * 0.5 * (hi[k] - lo[k]))
	}
}
