package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/view/playtest"
)

// drawnBound is how far the browser's pictures may be from those of render, in dB: it cuts Gaussians off at 2.8
// standard deviations, and keeps opacities and scales in 8 bits.
const drawnBound = 36

// gappy is a model that leaves nothing to chance: a wall of splats half as wide as their distance, which only the
// low-pass filter closes, before one that is larger than the picture; one beside the picture that reaches into it; and
// two of which the nearer along the axis is the farther from the camera.
func gappy(cam *scene.Camera) *scene.Splats {
	random := rand.New(rand.NewPCG(1, 2))
	const depth = 4
	n := cam.Width * cam.Height
	s := scene.NewSplats(n+4, 0)
	put := func(i int, at [3]float64, wide float64, rgb [3]float64) {
		for k := range 3 {
			s.Means[3*i+k], s.LogScales[3*i+k] = float32(at[k]), float32(math.Log(wide))
			s.SH[3*i+k] = float32((rgb[k] - 0.5) / 0.28209479)
		}
		s.Quats[4*i], s.LogitOpacities[i] = 1, 4
	}
	for i := range n {
		x, y := float64(i%cam.Width)+0.5-cam.Cx, float64(i/cam.Width)+0.5-cam.Cy
		put(i, [3]float64{x / cam.Fx * depth, y / cam.Fy * depth, depth}, 0.25/cam.Fx*depth,
			[3]float64{0.5 + 0.3*random.Float64(), 0.5 + 0.01*x, 0.6})
	}
	put(n, [3]float64{0, 0, 2 * depth}, depth, [3]float64{0.9, 0.1, 0.1})
	put(n+1, [3]float64{2 * depth, 0, depth / 2}, 1.2, [3]float64{0.1, 0.9, 0.2})
	put(n+2, [3]float64{-1.5, 0.3, 3}, 0.2, [3]float64{0.9, 0.9, 0.1})
	put(n+3, [3]float64{-1.2, 0.3, 3.05}, 0.2, [3]float64{0.1, 0.1, 0.9})
	return s
}

// drawnModel writes the model, or links that of the judge's flags, with one camera beside it, whose pixels are square
// and whose principal point is in the middle, as in browsers. The others of the model tell render its scale.
func drawnModel(t *testing.T) (model string, cam scene.Camera, others []scene.Camera) {
	t.Helper()
	model = filepath.Join(t.TempDir(), "model.ply")
	cam = scene.Camera{Width: 64, Height: 48, Fx: 50, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}
	var err error
	if *judgeModel != "" {
		others, _, err = inria.ReadCameras(captured.FindCameras(*judgeModel, captured.CamerasBeside[:1], false))
		if err != nil {
			t.Fatal(err)
		}
		cam = others[0]
		for _, c := range others {
			if c.Name == *judgeView {
				cam = c
			}
		}
		err = os.Symlink(*judgeModel, model)
	}
	cam.Fy, cam.Cx, cam.Cy = cam.Fx, float64(cam.Width)/2, float64(cam.Height)/2
	if *judgeModel == "" {
		err = plytest.Write(model, gappy(&cam), ply.Meta{})
	}
	cam.Name = "trained.png"
	must.Do(t, errors.Join(err, inria.WriteCameras(filepath.Join(filepath.Dir(model), captured.CamerasBeside[0]),
		[]scene.Camera{cam})))
	return model, cam, others
}

// TestPlayDrawn wants the browser to draw what render draws, in a window as large as the photos of training and in
// larger ones.
func TestPlayDrawn(t *testing.T) {
	needDevice(t)
	model, cam, others := drawnModel(t)
	var cams []scene.Camera
	var sizes [][2]int
	for _, times := range []int{1, 2, 4} {
		c := cam.Rescaled(times*cam.Width, times*cam.Height)
		c.Name = fmt.Sprintf("%d.png", times)
		cams, sizes = append(cams, c), append(sizes, [2]int{c.Width, c.Height})
	}
	views, out := filepath.Join(t.TempDir(), "views.json"), filepath.Join(t.TempDir(), "out")
	must.Do(t, inria.WriteCameras(views, append(cams, others...)))
	v := startShown(t, "open in a browser: ", "view", model, "--no-open")
	var log struct {
		Pictures, Errors, Violations, Console, Requests []string
	}
	playtest.Run(t, filepath.Join("testdata", "draw.py"),
		map[string]any{"url": v.address + "&webgl&noui", "sizes": sizes}, &log)
	vksplat(t, "render", model, "--cameras", views, "-o", out)
	for i, c := range cams {
		want := must.Get(os.ReadFile(filepath.Join(out, c.Name)))(t)
		got := must.Get(base64.StdEncoding.DecodeString(log.Pictures[i]))(t)
		db := apart(t, pngPixels(t, "viewer", got), pngPixels(t, "render", want))
		t.Logf("%dx%d: the viewer is %.1f dB from render", c.Width, c.Height, db)
		if db < drawnBound {
			t.Errorf("%dx%d: the viewer is %.1f dB from render", c.Width, c.Height, db)
		}
		if dir := os.Getenv("VKSPLAT_SHOTS"); dir != "" {
			_ = os.WriteFile(filepath.Join(dir, "viewer_"+c.Name), got, 0o666)
			_ = os.WriteFile(filepath.Join(dir, "render_"+c.Name), want, 0o666)
		}
	}
	if len(log.Errors) > 0 {
		t.Errorf("errors %q, console %q", log.Errors, log.Console)
	}
}
