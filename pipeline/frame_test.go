package pipeline

import (
	"context"
	"math"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
	"vksplat/scene/load"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// synthCapture writes a procedural capture with o and reads it, normalised, and its photos.
func synthCapture(t *testing.T, o synth.Options) (*scene.Capture, []scene.Image) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, synthtest.Write(dir, o))
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Downscale: 1}))(t)
	c.Normalise()
	return c, decodeAll(t, c.Cameras)
}

// heldOutPSNR trains a procedural capture written with o and returns the mean PSNR over every 8th photo.
func heldOutPSNR(t *testing.T, d *Device, o synth.Options) float64 {
	t.Helper()
	c, images := synthCapture(t, o)
	train, test := c.Split(8)
	var views []TrainView
	for _, i := range train {
		views = append(views, TrainView{c.Cameras[i], images[i]})
	}
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineEvery = 150, 0
	start := initial.Initialise(t.Context(), c.Points, cfg.Seed, cfg.SHDegree, cfg.InitOpacity, cfg.InitScale)
	tr, err := trainOn(d, views, start, c.SceneScale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), nil))
	var sum float64
	for _, i := range test {
		render, err := tr.RenderInto(nil, c.Cameras[i])
		if err != nil {
			t.Fatal(err)
		}
		for k := range render {
			render[k] = min(max(render[k], 0), 1)
		}
		p, _, err := metric.Compare(images[i], render, metric.PaddingSame, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum += p / float64(len(test))
	}
	return sum
}

// TestFarCapture trains a capture in other units and far from its origin: the training frame makes them the same.
func TestFarCapture(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 trains far from the origin here, too; TestFarCapture of cmd/vksplat does it by the command")
	}
	d := testDevice(t)
	o := synth.Options{Images: 12, Width: 96, Height: 72, Points: 1500}
	near := heldOutPSNR(t, d, o)
	o.Scale, o.Offset = 1000, [3]float64{5e6, -5e6, 5e6}
	far := heldOutPSNR(t, d, o)
	t.Logf("%.3f dB here, %.3f dB scaled by 1000 and moved by 5e6", near, far)
	if near < 15 || math.Abs(near-far) > 0.1 {
		t.Errorf("%.3f dB here, %.3f dB there", near, far)
	}
}

// decodeAll decodes the photos of all cameras.
func decodeAll(t *testing.T, cams []scene.Camera) []scene.Image {
	t.Helper()
	images := make([]scene.Image, len(cams))
	for i, c := range cams {
		images[i] = must.Get(photo.Decode(c))(t)
	}
	return images
}
