package pipeline

import (
	"context"
	"math"
	"os"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/pipeline/ref/goldentest"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// TestGolden compares the device with vectors of an independent implementation: every .npz of GOLDEN_DIR, or of the
// repository's own copy.
func TestGolden(t *testing.T) {
	dir := os.Getenv("GOLDEN_DIR")
	if dir == "" {
		dir = "testdata/golden"
	}
	g := must.Get(goldentest.LoadGolden(dir))(t)
	for _, c := range g.Renders {
		t.Run(c.Name, func(t *testing.T) { goldenRender(t, c) })
	}
	for _, c := range g.Losses {
		t.Run(c.Name, func(t *testing.T) { goldenLoss(t, c) })
	}
	for _, c := range g.Relocations {
		t.Run(c.Name, func(t *testing.T) { goldenRelocation(t, c) })
	}
	for _, c := range g.Adams {
		t.Run(c.Name, func(t *testing.T) { goldenAdam(t, c) })
	}
	for _, c := range g.Trains {
		t.Run(c.Name, func(t *testing.T) { goldenTrain(t, c) })
	}
}

func goldenRender(t *testing.T, c *goldentest.RenderCase) {
	g := runBackward(t, testDevice(t), c.Params, c.View, c.VRender, 1)
	var rgb, alpha, means, conics, vMeans []float32
	for _, px := range g.render {
		rgb, alpha = append(rgb, px[:3]...), append(alpha, 1-px[3])
	}
	for name, r := range map[string]ref.PixelReport{"rgb": ref.PixelCompare(rgb, c.RGB, 3, 1e-4),
		"alpha": ref.PixelCompare(alpha, c.Alpha, 1, 1e-4)} {
		t.Log(name, r)
		if err := r.Check(1e-3, 0.01, 1e-5); err != nil {
			t.Error(name, err)
		}
	}
	for i := range g.vProjected {
		a, b := g.shapes[2*i], g.shapes[2*i+1]
		means, conics = append(means, a[:2]...), append(conics, a[2], a[3], b[0])
		v := g.vProjected[i].Mean2d
		if g.depthKeys[i] == layout.Culled {
			v = [2]float32{}
		}
		vMeans = append(vMeans, v[:]...)
	}
	both := func(i int) bool { return g.depthKeys[i] != layout.Culled && c.Seen(i) }
	goldentest.Within(t, "means2d", goldentest.RelNormWhere(means, c.Means2D, 2, both), 1e-4)
	goldentest.Within(t, "conics", goldentest.RelNormWhere(conics, c.Conics, 3, both), 1e-4)
	goldentest.Within(t, "v_means2d", ref.RelNorm(vMeans, c.VMeans2D), 1e-3)
	p := g.params
	got := [][]float32{p.Means, p.LogScales, p.Quats, p.LogitOpacities, p.SH}
	want := [][]float32{c.VParams.Means, c.VParams.LogScales, c.VParams.Quats, c.VParams.LogitOpacities, c.VParams.SH}
	for k, name := range []string{"v_means", "v_log_scales", "v_quats", "v_logit_opacities", "v_sh"} {
		goldentest.Within(t, name, ref.RelNorm(got[k], want[k]), 1e-3)
	}
}

// runList builds and runs a recorded list and hands back the views of read as host copies.
func runList(t *testing.T, d *Device, r *vk.Recorder, read ...vk.View) [][]byte {
	t.Helper()
	out := make([]vk.View, len(read))
	for i, v := range read {
		out[i] = must.Get(d.dev.Alloc(vk.Readback, v.Size(), "read back"))(t)
		r.Copy(out[i], v)
	}
	must.Do(t, d.dev.RunOnce(r, t.Name()))
	var bytes [][]byte
	for _, v := range out {
		bytes = append(bytes, append([]byte(nil), v.Host()...))
		d.dev.Free(v)
	}
	return bytes
}

func bytesFloats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+
			3])<<24)
	}
	return out
}

// uploadOf makes a mapped buffer that holds data.
func uploadOf[T any](t *testing.T, d *Device, data []T) vk.Slice[T] {
	t.Helper()
	s := must.Get(vk.Make[T](d.dev, vk.Upload, len(data), t.Name()))(t)
	copy(vk.Host(s), data)
	t.Cleanup(func() { d.dev.Free(s.View) })
	return s
}

func goldenLoss(t *testing.T, c *goldentest.LossCase) {
	d := testDevice(t)
	e, free := viewEngine(t, d, 0, scene.Camera{Width: c.Width, Height: c.Height, Fx: 1, Fy: 1}, true)
	defer free()
	must.Do(t, e.setup.setCounters(1))
	render := make([][4]float32, c.Width*c.Height)
	for i := range render {
		copy(render[i][:3], c.Image[3*i:3*i+3])
	}
	f := e.programs.frames[0]
	viewParams(&f.hostParams.View, &scene.Camera{Width: c.Width, Height: c.Height}, 0.01, 0, false, [3]float32{})
	f.hostParams.SsimLambda = float32(c.Lambda)
	if c.Same {
		f.hostParams.SsimSame = 1
	}
	r := vk.NewRecorder(d.dev)
	v := &view{s: e.setup, size: e.setup.views, r: r, f: f}
	v.begin()
	v.render = uploadOf(t, d, render)
	r.Copy(e.setup.target.At(0, len(c.Target)).View, uploadOf(t, d, c.Target).View)
	v.comparePhoto()
	out := runList(t, d, r, v.vShown.View)
	goldentest.Within(t, "loss", math.Abs(float64(f.hostReport.Loss)-c.Loss), 1e-6)
	goldentest.Within(t, "l1", math.Abs(float64(f.hostReport.L1)-c.L1), 1e-6)
	goldentest.Within(t, "ssim", math.Abs(float64(f.hostReport.Ssim)-c.SSIM), 1e-6)
	var g []float32
	for i, x := range bytesFloats(out[0]) {
		if i%4 != 3 {
			g = append(g, x)
		}
	}
	goldentest.Within(t, "v_image", ref.RelNorm(g, c.VImage), 1e-4)
}

// goldenRelocation has mcmc_update make the splats their own copies, in a chunk of opacities and scales alone.
func goldenRelocation(t *testing.T, c *goldentest.RelocationCase) {
	d := testDevice(t)
	n := len(c.Opacities)
	drawn, chunk := make([]uint32, n), make([]float32, (layout.RowLogitOpacities+1)*n)
	for i, o := range c.Opacities {
		drawn[i] = uint32(c.Ratios[i] - 1)
		chunk[layout.RowLogitOpacities*n+i] = float32(math.Log(float64(o) / (1 - float64(o))))
		for k := range 3 {
			chunk[(layout.RowLogScales+k)*n+i] = float32(math.Log(float64(c.Scales[3*i+k])))
		}
	}
	counters := make([]uint32, layout.NCounters)
	counters[layout.NActive] = uint32(n)
	r := vk.NewRecorder(d.dev)
	at := vk.ScratchOf[float32](r, "chunk", len(chunk))
	r.Copy(at.View, uploadOf(t, d, chunk).View)
	r.Dispatch(&shaders.McmcUpdate{
		Params: uploadOf(t, d, []layout.StepParams{{PruneOpacity: 0.005}}), Counters: uploadOf(t, d, counters),
		Multiplicity: uploadOf(t, d, drawn), Chunk: at,
		Push: shaders.McmcUpdatePush{ChunkSplats: uint32(n), Round: layout.RoundGrow},
	}, vk.Items(n, 256))
	chunk = bytesFloats(runList(t, d, r, at.View)[0])
	var opacities, scales []float32
	for i := range n {
		opacities = append(opacities, ref.Sigmoid(chunk[layout.RowLogitOpacities*n+i]))
		for k := range 3 {
			scales = append(scales, float32(math.Exp(float64(chunk[(layout.RowLogScales+k)*n+i]))))
		}
	}
	goldentest.Within(t, "opacities", ref.RelNorm(opacities, c.NewOpacities), 1e-4)
	goldentest.Within(t, "scales", ref.RelNorm(scales, c.NewScales), 1e-4)
}

// goldenAdam feeds the given gradients to project_bwd_adam through a path where the chain rule is the identity up to a
// known factor: the colour of a degree 0 splat in the middle of the view is sh0 times a constant, so v_sh0 = constant *
// v_color.
func goldenAdam(t *testing.T, c *goldentest.AdamCase) {
	d := testDevice(t)
	n := len(c.Start) / 3
	init := scene.NewSplats(n, 0)
	for i := range n {
		init.Means[3*i+2] = 1
		init.Quats[4*i] = 1
		copy(init.SH[3*i:3*i+3], c.Start[3*i:3*i+3])
	}
	cam := scene.Camera{Width: 16, Height: 16, Fx: 16, Fy: 16, Cx: 8, Cy: 8, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}
	e, free := viewEngine(t, d, 0, cam, false)
	defer free()
	must.Do(t, e.load(init, 1))
	f := e.programs.frames[0]
	viewParams(&f.hostParams.View, &cam, 0.01, 0, false, [3]float32{})
	keys := make([]uint32, n)
	for i := range keys {
		keys[i] = math.Float32bits(1)
	}
	const c0 = 0.28209479177387814
	paints := make([][4]float32, n)
	for i := range paints {
		paints[i] = [4]float32{0, 1, 1, 1} // gradients pass the clamp
	}
	for step, grads := range c.Grads {
		cfg := recipe.Default()
		cfg.OptimiserParams(f.hostParams, step, 1, 1)
		f.hostParams.LrSh0 = float32(c.LR)
		v := make([]layout.ProjectedGrad, n)
		for i := range v {
			for k := range 3 {
				v[i].Color[k] = float32(float64(grads[3*i+k]) / c0)
			}
		}
		r := vk.NewRecorder(d.dev)
		w := &view{s: e.setup, size: e.setup.views, r: r, f: f}
		w.begin()
		w.depthKeys, w.vProjected = uploadOf(t, d, keys), uploadOf(t, d, v)
		w.paints, w.vBeside = uploadOf(t, d, paints), vk.Cast[float32](w.vProjected.View) // the last is not read
		for part := range w.s.strategy.variants().unseenParts {
			w.adamUnseen(part)
		}
		w.projectBwdAdam()
		runList(t, d, r)
	}
	out := must.Get(downloaded(e.setup.model, n, pieceSplats))(t)
	var got, want []float64
	for i := range c.Start {
		got, want = append(got, float64(out.SH[i])-float64(c.Start[i])),
			append(want, float64(c.End[i])-float64(c.Start[i]))
	}
	goldentest.Within(t, "adam", ref.RelNorm(got, want), 1e-3)
}

// trainerOf prepares the training run of c: its views in its order, no densification.
func trainerOf(t *testing.T, d *Device, c *goldentest.TrainCase) *Trainer {
	t.Helper()
	cfg := recipe.Default()
	cfg.Iterations, cfg.SHInterval, cfg.SSIMSame, cfg.RefineEvery = len(c.Order), c.SHDegreeInterval, true, 0
	cfg.SHDegree = c.Init.Degree
	views := make([]TrainView, len(c.Views))
	for i, v := range c.Views {
		img := scene.Image{Width: c.Width, Height: c.Height}
		for p := range c.Width * c.Height {
			img.Pix = append(img.Pix, c.Images[i][3*p], c.Images[i][3*p+1], c.Images[i][3*p+2], 255)
		}
		views[i] = TrainView{Camera: cameraOf(v), Image: img}
	}
	tr := must.Get(trainOn(d, views, splatsOf(c.Init), c.SceneScale, cfg))(t)
	fixViews(&tr.shards.first.photos.order, c.Order...)
	return tr
}

func goldenTrain(t *testing.T, c *goldentest.TrainCase) {
	tr := trainerOf(t, testDevice(t), c)
	defer tr.Close()
	var worst, lossOut, lossRef, psnrOut, psnrRef float64
	last := len(c.Order) - 20
	must.Do(t, tr.Run(context.Background(), func(p Progress) {
		s := p.Step - 1
		if s < 100 {
			worst = math.Max(worst, math.Abs(float64(p.Loss)/c.Loss[s]-1))
		}
		if s >= last {
			lossOut, lossRef = lossOut+float64(p.Loss), lossRef+c.Loss[s]
			psnrOut, psnrRef = psnrOut-10*math.Log10(float64(p.MSE)), psnrRef+c.PSNR[s]
		}
	}))
	goldentest.Within(t, "first losses", worst, 0.005)
	goldentest.Within(t, "last losses", math.Abs(lossOut/lossRef-1), 0.005)
	goldentest.Within(t, "last PSNR", math.Abs(psnrOut-psnrRef)/20, 0.05)
}
