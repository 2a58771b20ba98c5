package pipeline

import (
	"math"
	"testing"

	"vksplat/internal/filetest"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
	"vksplat/scene/metric"
	"vksplat/scene/picture"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// witnessScene is a procedural capture whose depths are known everywhere.
type witnessScene struct {
	capture *scene.Capture
	images  []scene.Image
	depths  [][]float32    // of each photo, in the training frame
	normals [][][3]float64 // likewise
	train   []int
	held    []int
}

func makeWitness(t *testing.T, o synth.Options, train func(i int) bool) *witnessScene {
	t.Helper()
	s := &witnessScene{}
	s.capture, s.images = synthCapture(t, o)
	drawn := must.Get(synth.New(o))(t)
	for i := range s.images {
		depths := drawn.Depths(i)
		for k := range depths {
			depths[k] *= float32(s.capture.Frame.Scale)
		}
		s.depths, s.normals = append(s.depths, depths), append(s.normals, synthtest.Normals(drawn, i))
		if train(i) {
			s.train = append(s.train, i)
		} else if i%4 == 2 {
			s.held = append(s.held, i)
		}
	}
	return s
}

// known returns the depth of one pixel in every `of` of every nth training photo.
func (s *witnessScene) known(nth, of int) KnownDepths {
	known := make(KnownDepths, len(s.train))
	for i := 0; i < len(s.train); i += nth {
		w := s.capture.Cameras[s.train[i]].Width
		for p := (i * 7) % of; p < len(s.depths[s.train[i]]); p += of {
			known[i] = append(known[i], scene.KnownDepth{X: uint16(p % w), Y: uint16(p / w),
				Depth: s.depths[s.train[i]][p]})
		}
	}
	return known
}

// scores trains and returns the mean PSNR of the held-out photos, and the share of their pixels whose depth is off by
// more than 2 %.
func (s *witnessScene) scores(t *testing.T, d *Device, cfg recipe.Config, known KnownDepths) (psnr, wrong float64) {
	t.Helper()
	psnr, wrong, _ = s.scoresWith(t, d, cfg, TrainerOptions{Known: known})
	return psnr, wrong
}

// knownNormals are those of every training photo, in cells of a pixel.
func (s *witnessScene) knownNormals() KnownNormals {
	known := make(KnownNormals, len(s.train))
	for i, photo := range s.train {
		c := &s.capture.Cameras[photo]
		known[i] = scene.NewNormalMap(c.Width, c.Height, 0)
		for p, n := range s.normals[photo] {
			known[i].Cells[p] = scene.PackNormal(n)
		}
	}
	return known
}

// scoresWith also returns the median angle in degrees between the normals of the pictures' depths and the true ones.
func (s *witnessScene) scoresWith(t *testing.T, d *Device, cfg recipe.Config, o TrainerOptions) (psnr, wrong,
	angle float64) {
	t.Helper()
	splats := s.trained(t, d, cfg, o)
	r := must.Get(NewRenderer(d, splats, s.capture.Cameras, RenderConfig{Depth: true, Near: cfg.Near}))(t)
	defer r.Close()
	var pic picture.Picture
	var angles []float64
	for _, i := range s.held {
		must.Do(t, r.Add(s.capture.Cameras[i], &pic, func() {}))
		must.Do(t, r.Drain())
		rgb := make([]float32, 0, 3*len(pic.Depth))
		n := 0
		for p, z := range pic.Depth {
			for ch := range 3 {
				rgb = append(rgb, min(max(pic.Color[4*p+ch], 0), 1))
			}
			if !(math.Abs(float64(z/s.depths[i][p])-1) <= 0.02) {
				n++
			}
		}
		wrong += float64(n) / float64(len(pic.Depth)) / float64(len(s.held))
		x, _, err := metric.Compare(s.images[i], rgb, metric.PaddingSame, nil)
		if err != nil {
			t.Fatal(err)
		}
		psnr += x / float64(len(s.held))
		shown := pic.Normals(picture.RaysOf(s.capture.Cameras[i]))
		for p, want := range s.normals[i] {
			var n geom.Vec
			for k, x := range shown.Pix[4*p : 4*p+3] {
				n[k] = float64(x)/127.5 - 1
			}
			angles = append(angles, math.Acos(min(n.Unit().Dot(want), 1))*180/math.Pi)
		}
	}
	return psnr, wrong, scene.Median(angles)
}

// trained returns the model that training makes.
func (s *witnessScene) trained(t *testing.T, d *Device, cfg recipe.Config, o TrainerOptions) *scene.Splats {
	t.Helper()
	var views []TrainView
	for _, i := range s.train {
		views = append(views, TrainView{s.capture.Cameras[i], s.images[i]})
	}
	cams, photos := splitViews(views)
	tr, err := NewTrainer(d, cams, photos, initial.Initialise(t.Context(), s.capture.Points, cfg.Seed, cfg.SHDegree,
		cfg.InitOpacity, cfg.InitScale), s.capture.SceneScale, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	must.Do(t, tr.Run(t.Context(), nil))
	splats := must.Get(tr.Splats())(t)
	return splats
}

// witnessConfig is the default recipe for so many steps, without carving.
func witnessConfig(iterations int) recipe.Config {
	cfg := recipe.Default()
	cfg.Strategy, cfg.Iterations, cfg.Splats, cfg.RandomBackground = recipe.StrategyMCMC, iterations, 3000, true
	cfg.RefineStart, cfg.RefineStop = iterations/60, iterations*5/6
	cfg.RefineEvery, cfg.ResetEvery = iterations/100+1, 0
	cfg.InitOpacity, cfg.InitScale, cfg.GrowFactor, cfg.Huber = 0.5, 0.5, 1.09, 0.05
	cfg.OpacityReg, cfg.ScaleReg, cfg.LRCooldown, cfg.LRLogScales, cfg.LRSHN = 0.01, 0.01, 0.2, 1e-2, 2.5e-4
	cfg.SHInterval, cfg.NumDownscales, cfg.ResolutionSchedule = iterations/30, 2, iterations/5
	return cfg
}

// beginThere adds points at known depths to the capture's, as --depth-init does.
func (s *witnessScene) beginThere(known KnownDepths) {
	var more []scene.Point
	for i, list := range known {
		c, pix := &s.capture.Cameras[s.train[i]], s.images[s.train[i]].Pix
		for _, k := range list {
			p := 4 * (int(k.Y)*c.Width + int(k.X))
			more = append(more, scene.Point{
				Pos:   c.Place(float64(k.X)+0.5, float64(k.Y)+0.5, float64(k.Depth)),
				Color: [3]uint8(pix[p : p+3])})
		}
	}
	s.capture.Points = append(s.capture.Points, initial.Apart(s.capture.Points, more)...)
}

// TestWitness trains on six photos of a scene with few points. Depths of all photos, as of maps, must bring pixels to
// their depths, depths of one pixel in twenty of one photo in four must be worth a decibel, and normals of all photos
// must turn surfaces to where they look, and be worth something, too.
func TestWitness(t *testing.T) {
	d := testDevice(t)
	s := makeWitness(t, synth.Options{Images: 48, Width: 64, Height: 48, Points: 100},
		func(i int) bool { return i%8 == 0 })
	cfg := witnessConfig(400)
	plain, wrong, angle := s.scoresWith(t, d, cfg, TrainerOptions{})
	cfg.NormalLambda = 0.3
	turned, _, less := s.scoresWith(t, d, cfg, TrainerOptions{Normals: s.knownNormals()})
	t.Logf("PSNR %.2f dB, half of the normals within %.1f degrees; with normals %.2f dB, %.1f", plain, angle, turned,
		less)
	if !(less < 0.7*angle) || !(turned > plain+0.3) {
		t.Error("normals are worth too little")
	}
	cfg.DepthLambda, cfg.DepthLambdaFinal = 3, 1
	_, wrongMaps := s.scores(t, d, cfg, s.known(1, 1))
	cfg.DepthLambda, cfg.DepthLambdaFinal = 1, 0.1
	sparse := s.known(4, 20)
	s.beginThere(sparse)
	sparsely, _ := s.scores(t, d, cfg, sparse)
	t.Logf("PSNR %.2f dB, wrong depths %.1f %%; with maps %.1f %%; with few depths %.2f dB", plain, 100*wrong,
		100*wrongMaps, sparsely)
	if !(wrongMaps < wrong-0.06) || !(sparsely > plain+0.7) {
		t.Error("depths are worth too little")
	}
}

// TestWitnessFigures has the figures of bench/NOTES.md: on all photos of the scene, maps must halve the share of wrong
// depths; on six photos, depths of one pixel in twenty of one photo in four must be worth a decibel.
func TestWitnessFigures(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 trains for half an hour")
	}
	d := testDevice(t)
	o := synth.Options{Images: 48, Width: 64, Height: 48, Points: 1500}
	s := makeWitness(t, o, func(i int) bool { return i%4 != 2 })
	cfg := witnessConfig(800)
	cfg.Splats, cfg.NumDownscales = 8000, 0
	plain, wrong := s.scores(t, d, cfg, nil)
	t.Logf("%d photos: %.2f dB, %.1f %% wrong", len(s.train), plain, 100*wrong)
	for _, lambda := range []float64{1, 1.5, 3} {
		cfg.DepthLambda, cfg.DepthLambdaFinal = lambda, 1
		psnr, with := s.scores(t, d, cfg, s.known(1, 1))
		t.Logf("maps, lambda %g: %.2f dB, %.1f %% wrong", lambda, psnr, 100*with)
		if lambda == 1.5 && !(with < wrong/2) {
			t.Error("maps do not halve the share of wrong depths")
		}
	}
	o.Points = 100
	s = makeWitness(t, o, func(i int) bool { return i%8 == 0 })
	cfg = witnessConfig(400)
	plain, wrong = s.scores(t, d, cfg, nil)
	cfg.DepthLambda, cfg.DepthLambdaFinal = 1, 0.1
	sparse := s.known(4, 20)
	compared, withCompared := s.scores(t, d, cfg, sparse)
	s.beginThere(sparse)
	both, withBoth := s.scores(t, d, cfg, sparse)
	cfg.DepthLambda = 0
	begun, withBegun := s.scores(t, d, cfg, sparse)
	t.Logf("%d photos: %.2f dB, %.1f %% wrong; compared %.2f dB, %.1f %%; begun there %.2f dB, %.1f %%; both %.2f dB, "+
		"%.1f %%", len(s.train), plain, 100*wrong, compared, 100*withCompared, begun, 100*withBegun, both, 100*withBoth)
	if !(both > plain+1) {
		t.Error("few depths are not worth a decibel")
	}
}

// TestNormalFigures has figures of docs/train.md: on all photos of the scene, normals must bring half of the pictures'
// normals much closer to the truth.
func TestNormalFigures(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 trains for minutes")
	}
	d := testDevice(t)
	s := makeWitness(t, synth.Options{Images: 48, Width: 64, Height: 48, Points: 1500},
		func(i int) bool { return i%4 != 2 })
	cfg := witnessConfig(400)
	cfg.Splats, cfg.NumDownscales = 6000, 0
	var plain float64
	for _, lambda := range []float64{0, 0.1, 0.3} {
		var o TrainerOptions
		if cfg.NormalLambda = lambda; lambda > 0 {
			o.Normals = s.knownNormals()
		}
		psnr, wrong, angle := s.scoresWith(t, d, cfg, o)
		t.Logf("lambda %g: %.2f dB, %.1f %% wrong, half within %.1f degrees", lambda, psnr, 100*wrong, angle)
		if lambda == 0 {
			plain = angle
		} else if !(angle < 0.75*plain) {
			t.Error("normals do not turn surfaces to where they look")
		}
	}
}
