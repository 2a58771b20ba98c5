package ref

import (
	"math"
	"os"
	"testing"

	must "vksplat/internal/musttest"
)

// goldenDir is the folder of vectors: GOLDEN_DIR, or the repository's own copy.
func goldenDir() string {
	if dir := os.Getenv("GOLDEN_DIR"); dir != "" {
		return dir
	}
	return "../testdata/golden"
}

func TestGolden(t *testing.T) {
	g := must.Get(LoadGolden(goldenDir()))(t)
	t.Run("float32", func(t *testing.T) { testGolden[float32](t, g) })
	t.Run("float64", func(t *testing.T) { testGolden[float64](t, g) })
}

func testGolden[T Real](t *testing.T, g *Golden) {
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

// within fails the test unless got <= limit; a NaN fails too.
func within(t *testing.T, name string, got, limit float64) {
	t.Helper()
	t.Logf("%-16s %.3g", name, got)
	if !(got <= limit) {
		t.Errorf("%s: %.3g exceeds %g", name, got, limit)
	}
}

func testRender[T Real](t *testing.T, c *RenderCase) {
	p, v := ConvertParams[T](c.Params), ConvertView[T](c.View)
	proj, img := Render(p, v, 1)
	rgb, alpha := make([]T, 0, len(c.RGB)), make([]T, 0, len(c.Alpha))
	for _, px := range img.Render {
		rgb = append(rgb, px[:3]...)
		alpha = append(alpha, 1-px[3])
	}
	for name, r := range map[string]PixelReport{"rgb": PixelCompare(rgb, c.RGB, 3, 1e-4),
		"alpha": PixelCompare(alpha, c.Alpha, 1, 1e-4)} {
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
	within(t, "means2d", RelNormWhere(means, c.Means2D, 2, both), 1e-4)
	within(t, "conics", RelNormWhere(conics, c.Conics, 3, both), 1e-4)

	up := make([][4]T, len(c.VRender))
	for i, x := range c.VRender {
		up[i] = [4]T{T(x[0]), T(x[1]), T(x[2]), T(x[3])}
	}
	vProjected, g := Backward(p, v, proj, up, 1)
	want := c.VParams.Tensors()
	for k, tensor := range g.Tensors() {
		within(t, "v_"+tensor.Name, RelNorm(tensor.Data, want[k].Data), 1e-3)
	}
	var vMeans2D []T
	for _, x := range vProjected {
		vMeans2D = append(vMeans2D, x[0], x[1])
	}
	within(t, "v_means2d", RelNorm(vMeans2D, c.VMeans2D), 1e-3)
	within(t, "v_means2d_abs", RelNorm(absMeans2D(p, v, proj, up), c.AbsMeans2D), 1e-3)
}

// absMeans2D returns each splat's absolute gradients of the mean, each component summed over pixels. [N*2]
func absMeans2D[T Real](p *Params[T], v *View[T], proj *Projection[T], vRender [][4]T) []T {
	sums := make([]T, 2*p.N)
	l := NewLists(proj, v.Grid())
	_, vAbs := RasterizeBwdAbs(proj.Splats, l, v, v.Grid(), vRender)
	for slot, a := range vAbs {
		sums[2*l.SplatFromSlot[slot]] += a[0]
		sums[2*l.SplatFromSlot[slot]+1] += a[1]
	}
	return sums
}

func testLoss[T Real](t *testing.T, c *LossCase) {
	render := make([][4]T, c.Width*c.Height)
	for p := range render {
		for ch := range 3 {
			render[p][ch] = T(c.Image[3*p+ch])
		}
	}
	r := Loss(render, ConvertSlice[T](c.Target), c.Width, c.Height, LossConfig[T]{Lambda: T(c.Lambda), Same: c.Same})
	within(t, "loss", math.Abs(float64(r.Loss)-c.Loss), 1e-6)
	within(t, "l1", math.Abs(float64(r.L1)-c.L1), 1e-6)
	within(t, "ssim", math.Abs(float64(r.SSIM)-c.SSIM), 1e-6)
	var g []T
	for _, v := range r.VRender {
		g = append(g, v[:3]...)
	}
	within(t, "v_image", RelNorm(g, c.VImage), 1e-4)
}

func testAdam[T Real](t *testing.T, c *AdamCase) {
	w := ConvertSlice[T](c.Start)
	m, v := make([]T, len(w)), make([]T, len(w))
	for k, g := range c.Grads {
		Adam(w, m, v, ConvertSlice[T](g), c.LR, AdamConfig{c.Beta1, c.Beta2, c.Eps}, k+1)
	}
	got, want := make([]float64, len(w)), make([]float64, len(w))
	for i := range w {
		got[i] = float64(w[i]) - float64(c.Start[i])
		want[i] = float64(c.End[i]) - float64(c.Start[i])
	}
	within(t, "adam", RelNorm(got, want), 1e-3)
}

func testRelocation[T Real](t *testing.T, c *RelocationCase) {
	var opacities, scales []T
	for i, n := range c.Ratios {
		o, s := Relocate(T(c.Opacities[i]), [3]T(ConvertSlice[T](c.Scales[3*i:3*i+3])), n)
		opacities, scales = append(opacities, o), append(scales, s[:]...)
	}
	within(t, "opacities", RelNorm(opacities, c.NewOpacities), 1e-4)
	within(t, "scales", RelNorm(scales, c.NewScales), 1e-4)
}

// testTrain runs the first steps of a training run; the GPU runs all of it.
func testTrain[T Real](t *testing.T, c *TrainCase, steps int) {
	model := NewModel(ConvertParams[T](c.Init))
	var worstLoss, worstPSNR, worstMSE float64
	for step := range min(steps, len(c.Order)) {
		view := ConvertView[T](c.Views[c.Order[step]])
		view.SHDegree = c.Degree(step)
		target := make([]T, 0, 3*c.Width*c.Height)
		for _, b := range c.Images[c.Order[step]] {
			target = append(target, T(b)/255)
		}
		g := Step(model, view, target,
			StepConfig[T]{Loss: LossConfig[T]{Lambda: 0.2, Same: true}, Rates: c.Rates(step), Adam: DefaultAdam,
				Step: step + 1})
		worstLoss = max(worstLoss, math.Abs(float64(g.Loss.Loss)/c.Loss[step]-1))
		worstPSNR = max(worstPSNR, math.Abs(psnr(g.Image.Render, target)-c.PSNR[step]))
		worstMSE = max(worstMSE, math.Abs(-10*math.Log10(float64(g.Loss.MSE))-c.PSNR[step]))
	}
	within(t, "loss", worstLoss, 0.005)
	within(t, "psnr", worstPSNR, 0.05)
	t.Logf("psnr of the unclamped rendering differs by %.3g dB", worstMSE)
}

// psnr returns the peak signal-to-noise ratio, in dB, of the rendering [P] clamped to [0, 1] against the photo [P*3].
func psnr[T Real](render [][4]T, target []T) float64 {
	var sum float64
	for p, c := range render {
		for ch := range 3 {
			d := float64(min(max(c[ch], 0), 1)) - float64(target[3*p+ch])
			sum += d * d
		}
	}
	return -10 * math.Log10(sum/float64(3*len(render)))
}
