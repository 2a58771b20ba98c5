package pipeline

import (
	"math"
	"math/rand/v2"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
)

// TestVignettings: what the cameras have learnt darkens a picture as the twin of the kernels does, whose exposure and
// white balance are nothing here.
func TestVignettings(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Vignetting = true
	starts := make([]PhotoStart, len(views))
	for i := range starts {
		starts[i].Camera = i % 2
	}
	tr, err := trainWith(testDevice(t), views, init, scale, cfg, TrainerOptions{Photos: starts})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	r := rand.New(rand.NewPCG(5, 6))
	rows := firstAppearances(len(views), starts, &cfg)
	own, cameras := make([]ref.Appearance[float64], len(views)), make([]int, len(views))
	for i := range rows {
		cameras[i] = i % 2
		for k := layout.Vignetting; k < layout.AppearanceNumbers; k++ {
			rows[i].Own[k] = float32(r.NormFloat64()) / 10
			own[i][k] = float64(rows[i].Own[k])
		}
	}
	must.Do(t, tr.shards.first.e.setup.appearances.upload(rows))
	list, err := tr.Vignettings()
	if err != nil || len(list) != 2 {
		t.Fatalf("%d cameras, error %v", len(list), err)
	}
	tr.run.cameras = 1 // of photos that changed since, in a run that goes on all the same
	if list, err := tr.Vignettings(); err != nil || len(list) != 2 {
		t.Errorf("in a resumed run %d cameras, error %v", len(list), err)
	}
	const width, height = 20, 30
	picture, want := make([]float32, 3*width*height), make([][4]float64, width*height)
	for camera := range list {
		for p := range want {
			for ch := range 3 {
				want[p][ch] = r.Float64()
				picture[3*p+ch] = float32(want[p][ch])
			}
		}
		a := ref.FindAppearance(own, cameras, camera)
		out := ref.ApplyAppearance(want, &a, ref.Camera{Width: width, Height: height, Vignetting: true})
		list[camera].Darken(picture, width, height)
		for p := range out {
			for ch := range 3 {
				if got := float64(picture[3*p+ch]); math.Abs(got-out[p][ch]) > 1e-6 {
					t.Fatalf("camera %d, pixel %d: %v, want %v", camera, p, picture[3*p:3*p+3], out[p])
				}
			}
		}
	}
}
