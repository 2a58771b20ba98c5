package pipeline

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/scene/initial"
	"vksplat/scene/metric"
	"vksplat/scene/synth"
	"vksplat/shaders/layout"
)

// driftScene is a procedural capture as an ideal camera took it, and what a real one would have done to its training
// photos. Held-out photos are the ideal camera's.
type driftScene struct {
	capture     *scene.Capture
	train, held []TrainView
	start       *scene.Splats             // that training begins with; nil: splats at the capture's points
	shell       float64                   // radius of the far shell that is among the capture's points; 0: none is
	drifts      []ref.Appearance[float64] // of the training photos, of mean zero but for the vignetting
}

// makeDrift makes a driftScene. Photos are darkened, so that no drift saturates them.
func makeDrift(t *testing.T, o synth.Options) *driftScene {
	t.Helper()
	c, images := synthCapture(t, o)
	for i := range images {
		for k := range images[i].Pix {
			if k%4 != 3 {
				images[i].Pix[k] = uint8(0.6 * float64(images[i].Pix[k]))
			}
		}
	}
	s := &driftScene{capture: c}
	train, test := c.Split(8)
	for _, i := range train {
		s.train = append(s.train, TrainView{c.Cameras[i], images[i]})
	}
	for _, i := range test {
		s.held = append(s.held, TrainView{c.Cameras[i], images[i]})
	}
	s.drifts = make([]ref.Appearance[float64], len(train))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range s.drifts {
		for k := range layout.Vignetting {
			s.drifts[i][k] = r.NormFloat64()
		}
		s.drifts[i][0] *= 0.3
	}
	for i := range s.drifts {
		for k := range layout.Vignetting {
			for j := range s.drifts {
				s.drifts[i][k] -= s.drifts[j][k] / float64(len(train))
			}
		}
	}
	for i := range s.drifts { // red falls off fastest
		copy(s.drifts[i][layout.Vignetting:], []float64{0.02, -0.03, -0.9, 0.3, -0.1, 0.02, -0.03, -0.8, 0.2, 0,
			0.02, -0.03, -0.6, 0.1, 0})
	}
	return s
}

// drifted returns the training photos as the real camera took them.
func (s *driftScene) drifted() (views []TrainView) {
	for i, v := range s.train {
		m := scene.Image{Width: v.Image.Width, Height: v.Image.Height, Pix: make([]uint8, len(v.Image.Pix))}
		pic := make([][4]float64, m.Width*m.Height)
		for p := range pic {
			for ch := range 3 {
				pic[p][ch] = float64(v.Image.Pix[4*p+ch]) / 255
			}
		}
		pic = ref.ApplyAppearance(pic, &s.drifts[i], ref.Camera{Width: m.Width, Height: m.Height, WhiteBalance: true,
			Vignetting: true})
		for p := range pic {
			for ch := range 3 {
				m.Pix[4*p+ch] = scene.ToByte(255 * pic[p][ch])
			}
			m.Pix[4*p+3] = 255
		}
		views = append(views, TrainView{v.Camera, m})
	}
	return views
}

// init is the start, or else splats at the points of the capture.
func (s *driftScene) init(cfg recipe.Config) *scene.Splats {
	if s.start != nil {
		return s.start
	}
	return initial.Initialise(context.Background(), s.capture.Points, cfg.Seed, cfg.SHDegree, cfg.InitOpacity,
		cfg.InitScale)
}

// photoPSNR compares the picture of a camera with a photo.
func photoPSNR(t *testing.T, tr *Trainer, v TrainView, c scene.Camera) float64 {
	t.Helper()
	render := must.Get(tr.RenderInto(nil, c))(t)
	for k := range render {
		render[k] = min(max(render[k], 0), 1)
	}
	x, _, err := metric.Compare(v.Image, render, metric.PaddingSame, nil)
	must.Do(t, err)
	return x
}

// trainedPSNR trains on views and returns the mean PSNR of the model's plain pictures with the held-out photos, and
// what was learnt of the photos' appearance.
func (s *driftScene) trainedPSNR(t *testing.T, d *Device, views []TrainView, cfg recipe.Config) (psnr float64,
	table []layout.Appearance) {
	t.Helper()
	tr := must.Get(trainWith(d, views, s.init(cfg), s.capture.SceneScale, cfg, TrainerOptions{Shell: s.shell}))(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), nil))
	for _, v := range s.held {
		psnr += photoPSNR(t, tr, v, v.Camera) / float64(len(s.held))
	}
	if cfg.Appearance() {
		table = must.Get(tr.shards.first.e.setup.appearances.download())(t)
	}
	return psnr, table
}

// worst returns by how much what was learnt of the photos differs at most from the drifts, as shares: in the gain of
// exposure, in what the white balance makes of a channel of grey, and in the factor of vignetting, root mean square
// over a channel's pixels.
func (s *driftScene) worst(table []layout.Appearance) (exposure, white, vignette float64) {
	own, cameras := make([]ref.Appearance[float64], len(table)), make([]int, len(table))
	for i := range table {
		copy(own[i][:], ref.ConvertSlice[float64](table[i].Own[:]))
	}
	size := s.train[0].Image
	flat := make([][4]float64, size.Width*size.Height)
	for p := range flat {
		flat[p] = [4]float64{0.5, 0.5, 0.5, 0}
	}
	shares := func(got, want *ref.Appearance[float64], c ref.Camera, pic [][4]float64) float64 {
		g, w := ref.ApplyAppearance(pic, got, c), ref.ApplyAppearance(pic, want, c)
		var sum [3]float64
		for p := range g {
			for ch := range 3 {
				off := g[p][ch]/w[p][ch] - 1
				sum[ch] += off * off / float64(len(pic))
			}
		}
		return math.Sqrt(slices.Max(sum[:]))
	}
	for i := range own {
		a, want := ref.FindAppearance(own, cameras, i), s.drifts[i]
		exposure = max(exposure, math.Abs(math.Exp2(a[0]-want[0])-1))
		a[0], want[0] = 0, 0
		c := ref.Camera{Width: size.Width, Height: size.Height, WhiteBalance: true}
		white = max(white, shares(&a, &want, c, flat[:1]))
		c.WhiteBalance, c.Vignetting = false, true
		vignette = max(vignette, shares(&a, &want, c, flat))
	}
	return exposure, white, vignette
}

// representable replaces the photos by pictures of a model, which it returns without its colours: training on them
// finds a model that is as good as 8 bits are, and nothing but the drift is left to explain.
func (s *driftScene) representable(t *testing.T, d *Device) (grey *scene.Splats) {
	t.Helper()
	grey = s.exact(t, d)
	clear(grey.SH)
	return grey
}

// exact replaces the photos by pictures of a model, which it returns.
func (s *driftScene) exact(t *testing.T, d *Device) (model *scene.Splats) {
	t.Helper()
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineEvery, cfg.SHDegree = 250, 0, 0
	tr := must.Get(trainOn(d, s.train, s.init(cfg), s.capture.SceneScale, cfg))(t)
	defer tr.Close()
	must.Do(t, tr.Run(t.Context(), nil))
	for _, v := range slices.Concat(s.train, s.held) {
		pic := must.Get(tr.RenderInto(nil, v.Camera))(t)
		for k, x := range pic {
			v.Image.Pix[k/3*4+k%3] = scene.ToByte(255 * float64(x))
		}
	}
	model = must.Get(tr.Splats())(t)
	return model
}

// driftSize is how long TestDrift trains, and how near it comes.
type driftSize struct {
	photos                int
	steps, clean, without int     // of training with appearance, on photos without drift, and without appearance
	exposure, white, fall float64 // errors allowed, as shares
	loss, gain            float64 // of PSNR, in dB: against photos without drift, and against no appearance
}

// TestDrift trains on photos whose exposure, white balance and vignetting are known, and wants them found, in the long
// form within 2 %, and a model that is as good as that of photos without drift. Photos have the noise of a camera, so
// that held-out PSNR is what real captures have.
func TestDrift(t *testing.T) {
	// Three seeds: errors up to 2.1, 1.4 and 4.2 %, up to 0.2 dB lost, 5.4 dB gained at least.
	size := driftSize{24, 800, 200, 200, 0.03, 0.02, 0.06, 0.6, 4}
	if filetest.Long() {
		size = driftSize{48, 3000, 3000, 500, 0.02, 0.02, 0.02, 0.5, 2}
	}
	d := testDevice(t)
	s := makeDrift(t, synth.Options{Images: size.photos, Width: 64, Height: 48, Points: 1000})
	s.start = s.representable(t, d)
	r := rand.New(rand.NewPCG(3, 4))
	for _, v := range slices.Concat(s.train, s.held) {
		for k, x := range v.Image.Pix {
			if k%4 != 3 {
				v.Image.Pix[k] = scene.ToByte(float64(x) + 5*r.NormFloat64())
			}
		}
	}
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineEvery, cfg.SHDegree, cfg.AppearanceStart = size.clean, 0, 0, 50
	for _, rate := range cfg.SplatRates() {
		*rate = 0
	}
	cfg.LRSH0 = 0.02
	clean, _ := s.trainedPSNR(t, d, s.train, cfg)
	cfg.Iterations = size.steps
	cfg.Exposure, cfg.WhiteBalance, cfg.Vignetting = true, true, true
	drifted := s.drifted()
	with, table := s.trainedPSNR(t, d, drifted, cfg)
	exposure, white, vignette := s.worst(table)
	cfg.Iterations, cfg.Exposure, cfg.WhiteBalance, cfg.Vignetting = size.without, false, false, false
	without, _ := s.trainedPSNR(t, d, drifted, cfg)
	t.Logf("held-out PSNR %.2f dB of photos without drift; of drifting ones %.2f dB as they are and %.2f dB with "+
		"appearance; errors at most: exposure %.2f %%, white balance %.2f %%, vignetting %.2f %%", clean, without, with,
		100*exposure, 100*white, 100*vignette)
	if !(with > clean-size.loss) || !(with > without+size.gain) {
		t.Error("drift costs quality")
	}
	if !(exposure < size.exposure) || !(white < size.white) || !(vignette < size.fall) {
		t.Error("the drift is not found")
	}
}
