package evaluate

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/models"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/pipeline/lpips"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
)

// TestPerceptual measures LPIPS with made-up weights: what a mask leaves out does not count, and the file's hash goes
// into the result.
func TestPerceptual(t *testing.T) {
	runtest.NeedDevice(t)
	device := must.Get(pipeline.OpenDevice(pipeline.DeviceOptions{}))(t)
	defer models.CloseDevice(device)
	w := &metric.LPIPSWeights{Net: "alex"}
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int, scale float32) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = scale * (random.Float32() - 0.4)
		}
		return list
	}
	for _, l := range metric.LPIPSLayers("alex") {
		var kernel, bias, channels []float32
		if !l.Pool {
			kernel, bias = numbers(l.In*l.Side*l.Side*l.Out, 0.1), numbers(l.Out, 0.1)
		}
		if l.Compared {
			channels = make([]float32, l.Out)
			for i := range channels {
				channels[i] = random.Float32()
			}
		}
		w.Kernels, w.Biases, w.Channels = append(w.Kernels, kernel), append(w.Biases, bias),
			append(w.Channels, channels)
	}
	net := must.Get(pipeline.NewLPIPS(device, w, lpips.Options{Normalize: true}))(t)
	p := &perceptual{net: net, sha256: "hash"}
	defer p.Close()
	j := &Job{scorer: &Scorer{}}
	must.Do(t, p.use(j))
	const width, height = 64, 48
	shot := scene.Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	for i := range shot.Pix {
		shot.Pix[i] = uint8(random.Uint32())
	}
	render := photo.FloatRGB(shot)
	score := func(mask []uint32) float64 {
		t.Helper()
		x := must.Get(j.scorer.lpips(shot, render, mask))(t)
		return x
	}
	if x := score(nil); x != 0 || j.Result.Weights != "hash" {
		t.Errorf("a photo and itself: %v, hash %q", x, j.Result.Weights)
	}
	for i := range 3 * width * height / 2 { // the upper half is wrong
		render[i] = 1 - render[i]
	}
	upper, lower := make([]uint32, width*height/32), make([]uint32, width*height/32)
	for i := range upper {
		if i < len(upper)/2 {
			upper[i] = math.MaxUint32
		} else {
			lower[i] = math.MaxUint32
		}
	}
	if all, top, bottom := score(nil), score(upper), score(lower); !(all > 0) || all != top || bottom != 0 {
		t.Errorf("all %v, the half that is wrong %v, the other %v", all, top, bottom)
	}
}

// TestPlanPerceptual refuses before anything is measured where the device has no room for LPIPS, with what is enough.
func TestPlanPerceptual(t *testing.T) {
	runtest.NeedDevice(t)
	device := must.Get(pipeline.OpenDevice(pipeline.DeviceOptions{MaxVRAM: "4M"}))(t)
	defer models.CloseDevice(device)
	file := filepath.Join(t.TempDir(), "a.ply")
	s := scene.NewSplats(10, 0)
	for i := range s.N {
		s.Quats[4*i] = 1
	}
	must.Do(t, plytest.Write(file, s, ply.Meta{}))
	j := &Job{name: "out", file: file, cams: []scene.Camera{{Width: 64, Height: 48}},
		o: Options{Protocol: ProtocolGsplat}}
	if err := j.planPerceptual(device); err != nil {
		t.Errorf("without LPIPS: %v", err)
	}
	j.o.Weights = "alex.safetensors"
	if err := j.planPerceptual(device); fault.ExitCode(err) != fault.ExitTryAgain || !strings.Contains(err.Error(),
		"measure out: ") || !strings.Contains(fault.Hint(err), "aise --max-vram to ") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}
