package pipeline

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"vksplat/internal/filetest"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/synth"
)

// poseScene is a procedural capture whose poses are known.
type poseScene struct{ *driftScene }

// wrongPoses turns every training camera by so many degrees and moves it by so much, each about and along a direction
// of its own.
func wrongPoses(views []TrainView, degrees, shift float64) (noisy []TrainView) {
	r := rand.New(rand.NewPCG(5, 6))
	direction := func() geom.Vec { return geom.Vec{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}.Unit() }
	for _, v := range views {
		v.Camera = movedCamera(&v.Camera, direction().Mul(degrees*math.Pi/180), direction().Mul(shift))
		noisy = append(noisy, v)
	}
	return noisy
}

// poseScores are means over the held-out photos.
type poseScores struct{ raw, aligned float64 }

// trainedScores trains on views, which are those of s with other poses maybe, and scores the model, where poses may
// be refined also with aligned cameras.
func (s *poseScene) trainedScores(t *testing.T, d *Device, views []TrainView, cfg recipe.Config) (x poseScores,
	cams []scene.Camera, trial *PoseTrial) {
	t.Helper()
	o := TrainerOptions{OnTrial: func(p PoseTrial) { trial = &p }}
	tr := must.Get(trainWith(d, views, s.init(cfg), s.capture.SceneScale, cfg, o))(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), nil))
	cams = must.Get(tr.RefinedCameras())(t)
	for _, v := range s.held {
		moved := v.Camera
		if cfg.RefineCameras {
			moved = must.Get(tr.Align(v.Camera, v.Image))(t)
		}
		x.raw += photoPSNR(t, tr, v, v.Camera) / float64(len(s.held))
		x.aligned += photoPSNR(t, tr, v, moved) / float64(len(s.held))
	}
	return x, cams, trial
}

// apart returns how far cameras are from the right ones, root mean squares over the training photos: degrees and
// shares of the median camera's distance. What all have in common is taken out first, as refined poses have it.
func (s *poseScene) apart(cams []scene.Camera) (degrees, shift float64) {
	right, _ := splitViews(s.train)
	rows := givenPoses(right)
	for i := range right {
		turn := geom.Product(geom.Transposed(right[i].R), cams[i].R)
		// The vector of a small turn, along the axes of the world, then of the right camera.
		w := [3]float64{(turn[5] - turn[7]) / 2, (turn[6] - turn[2]) / 2, (turn[1] - turn[3]) / 2}
		w = geom.Rotate(right[i].R, w)
		at := geom.Rotate(right[i].R, geom.Sub(cams[i].Center(), right[i].Center()))
		for k := range 3 {
			rows[i].Own[k], rows[i].Own[3+k] = float32(w[k]), float32(at[k])
		}
	}
	for i, c := range refinedCameras(right, rows[:len(right)]) {
		p := geom.Product(geom.Transposed(right[i].R), c.R)
		angle := math.Acos(min(1, (p[0]+p[4]+p[8]-1)/2)) * 180 / math.Pi
		d := geom.Length(geom.Sub(c.Center(), right[i].Center()))
		degrees, shift = degrees+angle*angle, shift+d*d
	}
	n := float64(len(right))
	return math.Sqrt(degrees / n), math.Sqrt(shift / n)
}

// poseSize is how TestPoses trains, and how much of what wrong poses cost comes back at least.
type poseSize struct {
	photos, width, height, points int
	start, steps                  int
	noise                         float64 // degrees, and percents of the median camera's distance
	share                         float64
}

// TestPoses trains on photos with poses that are wrong, with and without refining them, and on the same with the right
// ones. In the short form splats begin as the photos were made, so that the last tenth of a pixel costs decibels: 64 %
// came back. In the long form they begin at points, as those of a capture do: 97 %. Pixels are about a degree wide in
// the former, half a degree in the latter.
func TestPoses(t *testing.T) {
	size := poseSize{12, 64, 48, 800, 20, 200, 2, 0.5}
	if filetest.Long() {
		size = poseSize{24, 96, 72, 2000, 250, 1500, 1, 0.8}
	}
	d := testDevice(t)
	s := &poseScene{driftScene: makeDrift(t, synth.Options{Images: size.photos, Width: size.width, Height: size.height,
		Points: size.points})}
	if !filetest.Long() {
		s.start = s.exact(t, d)
	}
	noisy := wrongPoses(s.train, size.noise, size.noise/100)
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineEvery, cfg.SHDegree, cfg.PoseStart = size.steps, 0, 0, size.start
	right, _, _ := s.trainedScores(t, d, s.train, cfg)
	late := cfg // never: for the aligned scores alone, which take time
	late.RefineCameras, late.PoseStart = filetest.Long(), size.steps+1
	wrong, _, _ := s.trainedScores(t, d, noisy, late)
	cfg.RefineCameras = true
	refined, cams, trial := s.trainedScores(t, d, noisy, cfg)
	if cams == nil {
		t.Fatalf("poses are not refined: %+v", *trial)
	}
	before, _ := splitViews(noisy)
	degrees0, shift0 := s.apart(before)
	degrees, shift := s.apart(cams)
	share := (refined.aligned - wrong.raw) / (right.raw - wrong.raw)
	t.Logf("held-out PSNR %.2f dB with right poses; %.2f dB with wrong ones, aligned %.2f; refined %.2f dB, aligned "+
		"%.2f: "+
		"%.0f %% is back; poses are off by %.2f degrees and %.2f %% before, %.2f and %.2f after", right.raw, wrong.raw,
		wrong.aligned, refined.raw, refined.aligned, 100*share, degrees0, 100*shift0, degrees, 100*shift)
	if !(share > size.share) || !(degrees < 0.8*degrees0) {
		t.Error("wrong poses cost quality")
	}
	if !filetest.Long() { // with right poses there is nothing to see but the trial
		cfg.Iterations = size.start + 1
	}
	kept, cams, again := s.trainedScores(t, d, s.train, cfg)
	t.Logf("trials: %+v of wrong poses, %+v of right ones", *trial, *again)
	if cams != nil || filetest.Long() && math.Abs(kept.raw-right.raw) > 0.1 {
		t.Errorf("right poses: PSNR %.2f dB", kept.raw)
	}
}

// TestLensRefined trains on photos without distortion whose cameras are said to have some, and other focal lengths and
// another principal point: much of that goes, least of the principal point, for which poses make up.
func TestLensRefined(t *testing.T) {
	d := testDevice(t)
	s := &poseScene{driftScene: makeDrift(t, synth.Options{Images: 12, Width: 64, Height: 48, Points: 800})}
	s.start = s.exact(t, d)
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineEvery, cfg.SHDegree, cfg.PoseStart, cfg.PoseGain = 240, 0, 0, 20, -1
	cfg.RefineCameras = true
	var wrong []TrainView
	for _, v := range s.train {
		c := v.Camera.Straight()
		c.Fx, c.Fy, c.Cx, c.Distortion.Num[0] = 1.02*c.Fx, 1.02*c.Fy, c.Cx+1, 0.1
		wrong = append(wrong, TrainView{c, v.Image})
	}
	_, cams, _ := s.trainedScores(t, d, wrong, cfg)
	was, right, c := &wrong[0].Camera, &s.train[0].Camera, &cams[0]
	r := cornerRadius(was.Distortion.Min, was.Distortion.Max)
	for _, x := range []struct {
		name                string
		given, right, found float64 // pixels
	}{
		{"focal length", was.Fx, right.Fx, c.Fx}, {"principal point", was.Cx, right.Cx, c.Cx},
		{"distortion at the corner", was.Fx * r * (was.Distortion.Num[0] * r * r), 0,
			c.Fx * r * (c.Distortion.Num[0] + c.Distortion.Num[1]*r*r) * r * r},
	} {
		t.Logf("%s: %.2f px, given %.2f, right %.2f", x.name, x.found, x.given, x.right)
		if !(math.Abs(x.found-x.right) < 0.75*math.Abs(x.given-x.right)) {
			t.Errorf("the %s stays wrong", x.name)
		}
	}
	for i := range cams {
		if cams[i].Fx != c.Fx || cams[i].Distortion.Num != c.Distortion.Num {
			t.Fatalf("photos of one camera have the lenses %+v and %+v", c, cams[i])
		}
	}
}
