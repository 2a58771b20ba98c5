package ref_test

import (
	"math"
	"os"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/ref"
	"vksplat/pipeline/ref/goldentest"
)

// goldenDir is the folder of vectors: GOLDEN_DIR, or the repository's own copy.
func goldenDir() string {
	if dir := os.Getenv("GOLDEN_DIR"); dir != "" {
		return dir
	}
	return "../testdata/golden"
}

func TestGolden(t *testing.T) {
	g := must.Get(goldentest.LoadGolden(goldenDir()))(t)
	t.Run("float32", func(t *testing.T) { testGolden[float32](t, g) })
	t.Run("float64", func(t *testing.T) { testGolden[float64](t, g) })
}

func testGolden[T ref.Real](t *testing.T, g *goldentest.Golden) {
	for _, c := range g.Renders {
		t.Run(c.Name, func(t *testing.T) { t.Parallel(); testRender[T](t, c) })
	}
	for _, c := range g.Losses {
		t.Run(c.Name, func(t *testing.T) { testLoss[T](t, c) })
	}
	for _, c := range g.Adams {
		t.Run(c.Name, func(t *testing.T) { testAdam[T](t, c) })
	}
	for _, c := range g.Relocations {
		t.Run(c.Name, func(t *testing.T) { testRelocation[T](t, c) })
	}
	for _, c := range g.Trains {
		t.Run(c.Name, func(t *testing.T) { t.Parallel(); testTrain[T](t, c, 20) })
	}
}

func testRender[T ref.Real](t *testing.T, c *goldentest.RenderCase) {
	p, v := ref.ConvertParams[T](c.Params), ref.ConvertView[T](c.View)
	proj, img := ref.Render(p, v, 1)
	rgb, alpha := make([]T, 0, len(c.RGB)), make([]T, 0, len(c.Alpha))
	for _, px := range img.Render {
		rgb = append(rgb, px[:3]...)
		alpha = append(alpha, 1-px[3])
	}
	for name, r := range map[string]ref.PixelReport{"rgb": ref.PixelCompare(rgb, c.RGB, 3, 1e-4),
		"alpha": ref.PixelCompare(alpha, c.Alpha, 1, 1e-4)} {
		t.Log(name, r)
		if err := r.Check(1e-3, 0.01, 1e-5); err != nil {
			t.Error(name, err)
		}
	}
	var means, conics []T
	missed := 0
	for i, s := range proj.Splats {
		means, conics = append(means, s.Mean2D[:]...), append(conics, s.Conic[:]...)
		if proj.Visible(i) && !c.Seen(i) {
			missed++
		}
	}
	t.Logf("visible here but not in the reference: %d of %d", missed, p.N)
	both := func(i int) bool { return proj.Visible(i) && c.Seen(i) }
	goldentest.Within(t, "means2d", goldentest.RelNormWhere(means, c.Means2D, 2, both), 1e-4)
	goldentest.Within(t, "conics", goldentest.RelNormWhere(conics, c.Conics, 3, both), 1e-4)

	up := make([][4]T, len(c.VRender))
	for i, x := range c.VRender {
		up[i] = [4]T{T(x[0]), T(x[1]), T(x[2]), T(x[3])}
	}
	vProjected, g := ref.Backward(p, v, proj, up, 1)
	want := c.VParams.Tensors()
	for k, tensor := range g.Tensors() {
		goldentest.Within(t, "v_"+tensor.Name, ref.RelNorm(tensor.Data, want[k].Data), 1e-3)
	}
	var vMeans2D []T
	for _, x := range vProjected {
		vMeans2D = append(vMeans2D, x[0], x[1])
	}
	goldentest.Within(t, "v_means2d", ref.RelNorm(vMeans2D, c.VMeans2D), 1e-3)
	goldentest.Within(t, "v_means2d_abs", ref.RelNorm(absMeans2D(p, v, proj, up), c.AbsMeans2D), 1e-3)
}

// absMeans2D returns each splat's absolute gradients of the mean, each component summed over pixels. [N*2]
func absMeans2D[T ref.Real](p *ref.Params[T], v *ref.View[T], proj *ref.Projection[T], vRender [][4]T) []T {
	sums := make([]T, 2*p.N)
	l := ref.NewLists(proj, v.Grid())
	_, vAbs := ref.RasterizeBwdAbs(proj.Splats, l, v, v.Grid(), vRender)
	for slot, a := range vAbs {
		sums[2*l.SplatFromSlot[slot]] += a[0]
		sums[2*l.SplatFromSlot[slot]+1] += a[1]
	}
	return sums
}

func testLoss[T ref.Real](t *testing.T, c *goldentest.LossCase) {
	render := make([][4]T, c.Width*c.Height)
	for p := range render {
		for ch := range 3 {
			render[p][ch] = T(c.Image[3*p+ch])
		}
	}
	r := ref.Loss(render, ref.ConvertSlice[T](c.Target), c.Width, c.Height,
		ref.LossConfig[T]{Lambda: T(c.Lambda), Same: c.Same})
	goldentest.Within(t, "loss", math.Abs(float64(r.Loss)-c.Loss), 1e-6)
	goldentest.Within(t, "l1", math.Abs(float64(r.L1)-c.L1), 1e-6)
	goldentest.Within(t, "ssim", math.Abs(float64(r.SSIM)-c.SSIM), 1e-6)
	var g []T
	for _, v := range r.VRender {
		g = append(g, v[:3]...)
	}
	goldentest.Within(t, "v_image", ref.RelNorm(g, c.VImage), 1e-4)
}

func testAdam[T ref.Real](t *testing.T, c *goldentest.AdamCase) {
	w := ref.ConvertSlice[T](c.Start)
	m, v := make([]T, len(w)), make([]T, len(w))
	for k, g := range c.Grads {
		ref.Adam(w, m, v, ref.ConvertSlice[T](g), c.LR, ref.AdamConfig{c.Beta1, c.Beta2, c.Eps}, k+1)
	}
	got, want := make([]float64, len(w)), make([]float64, len(w))
	for i := range w {
		got[i] = float64(w[i]) - float64(c.Start[i])
		want[i] = float64(c.End[i]) - float64(c.Start[i])
	}
	goldentest.Within(t, "adam", ref.RelNorm(got, want), 1e-3)
}

func testRelocation[T ref.Real](t *testing.T, c *goldentest.RelocationCase) {
	var opacities, scales []T
	for i, n := range c.Ratios {
		old := T(c.Opacities[i])
		o, s := ref.Relocate(old, 1-old, [3]T(ref.ConvertSlice[T](c.Scales[3*i:3*i+3])), n, 0.005)
		opacities, scales = append(opacities, o), append(scales, s[:]...)
	}
	goldentest.Within(t, "opacities", ref.RelNorm(opacities, c.NewOpacities), 1e-4)
	goldentest.Within(t, "scales", ref.RelNorm(scales, c.NewScales), 1e-4)
}

// testTrain runs the first steps of a training run; the GPU runs all of it.
func testTrain[T ref.Real](t *testing.T, c *goldentest.TrainCase, steps int) {
	model := ref.NewModel(ref.ConvertParams[T](c.Init))
	var worstLoss, worstPSNR, worstMSE float64
	for step := range min(steps, len(c.Order)) {
		view := ref.ConvertView[T](c.Views[c.Order[step]])
		view.SHDegree = c.Degree(step)
		target := make([]T, 0, 3*c.Width*c.Height)
		for _, b := range c.Images[c.Order[step]] {
			target = append(target, T(b)/255)
		}
		g := ref.Step(model, view, target,
			ref.StepConfig[T]{Loss: ref.LossConfig[T]{Lambda: 0.2, Same: true}, Rates: c.Rates(step),
				Adam: ref.DefaultAdam, Step: step + 1})
		worstLoss = max(worstLoss, math.Abs(float64(g.Loss.Loss)/c.Loss[step]-1))
		worstPSNR = max(worstPSNR, math.Abs(psnr(g.Image.Render, target)-c.PSNR[step]))
		worstMSE = max(worstMSE, math.Abs(-10*math.Log10(float64(g.Loss.MSE))-c.PSNR[step]))
	}
	goldentest.Within(t, "loss", worstLoss, 0.005)
	goldentest.Within(t, "psnr", worstPSNR, 0.05)
	t.Logf("psnr of the unclamped rendering differs by %.3g dB", worstMSE)
}

// psnr returns the peak signal-to-noise ratio, in dB, of the rendering [P] clamped to [0, 1] against the photo [P*3].
func psnr[T ref.Real](render [][4]T, target []T) float64 {
	var sum float64
	for p, c := range render {
		for ch := range 3 {
			d := float64(min(max(c[ch], 0), 1)) - float64(target[3*p+ch])
			sum += d * d
		}
	}
	return -10 * math.Log10(sum/float64(3*len(render)))
}
