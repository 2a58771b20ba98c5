package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
)

// judgeOf is a third-party renderer: PlayCanvas' (https://github.com/playcanvas/splat-transform), which draws on
// WebGPU.
const judgeOf = "@playcanvas/splat-transform@3.7.0"

// How far its PSNR of a view may be from ours, in dB: as it is released, and without its one known difference. It takes
// exp(-9/2) off each splat's Gaussian, so that nothing is left at its edge of three standard deviations
// (GAUSSIAN_FLOOR, "matches the PlayCanvas engine's edge compensation"); 3DGS does not. What is left is that edge (ours
// is where opacity falls below 1/255), focal lengths of x and y that it takes for one, 8 bits, and parts of a pixel of
// the principal point.
const (
	judgeReleased = 1.0
	judgeBound    = 0.3
)

// The line of its program that is changed for that.
const (
	edgeReleased = "const GAUSSIAN_FLOOR = Math.exp(-0.5 * SIGMA_CUTOFF * SIGMA_CUTOFF);"
	edgeOf3DGS   = "const GAUSSIAN_FLOOR = 0;"
)

// What TestForeignRenderer judges, for bench/judge.sh; "" trains a made-up scene.
var (
	judgeModel   = flag.String("judge-model", "", "splat file that TestForeignRenderer draws")
	judgeCapture = flag.String("judge-capture", "", "its capture")
	judgeView    = flag.String("judge-view", "", "name of a photo; otherwise all that are held out are drawn")
	judgeSize    = flag.Int("judge-downscale", 1, "as train's --downscale")
)

// judge is the foreign renderer.
type judge struct {
	script string
	bound  float64
	env    []string
}

// swiftShader are places of Chromium's software Vulkan, for machines whose own driver is not enough for WebGPU.
var swiftShader = []string{
	"/usr/lib/chromium/vk_swiftshader_icd.json", "/usr/lib/chromium-browser/vk_swiftshader_icd.json",
	"/opt/google/chrome/vk_swiftshader_icd.json",
}

// newJudge installs the renderer, or skips the test.
func newJudge(t *testing.T) *judge {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: " + judgeOf + " is not installed")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: no third-party renderer", program)
		}
	}
	dir := t.TempDir()
	install := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix",
		dir, judgeOf)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install %s: %v: %s", judgeOf, err, strings.TrimSpace(string(out)))
	}
	j := &judge{script: filepath.Join(dir, "node_modules/@playcanvas/splat-transform/bin/cli.mjs"),
		bound: judgeReleased}
	drivers := [][]string{nil}
	for _, icd := range swiftShader {
		drivers = append(drivers, []string{"VK_ICD_FILENAMES=" + icd, "VK_DRIVER_FILES=" + icd})
	}
	for _, env := range drivers {
		if len(env) > 0 && !output.IsFile(strings.SplitN(env[0], "=", 2)[1]) {
			continue
		}
		j.env = append(os.Environ(), env...)
		if out, err := j.run("--list-gpus"); err == nil && strings.Contains(out, "[0] ") {
			return j
		}
	}
	t.Skip("no device for WebGPU: a GPU, Mesa 23.1 or newer, or Chromium's SwiftShader (package chromium)")
	return nil
}

// withoutEdge is it without the compensation at edges.
func (j *judge) withoutEdge(t *testing.T) *judge {
	t.Helper()
	dir := filepath.Dir(filepath.Dir(j.script))
	program := filepath.Join(dir, "dist", "cli.mjs")
	text, err := os.ReadFile(program)
	if err != nil || strings.Count(string(text), edgeReleased) != 1 {
		t.Fatalf("%s: the line %q is not there once (%v)", program, edgeReleased, err)
	}
	other := filepath.Join(dir, "dist", "plain.mjs")
	plain := strings.Replace(string(text), edgeReleased, edgeOf3DGS, 1)
	must.Do(t, os.WriteFile(other, []byte(plain), 0o600))
	start, err := os.ReadFile(j.script)
	if err != nil || !strings.Contains(string(start), "cli.mjs") {
		t.Fatalf("%s starts something else (%v)", j.script, err)
	}
	script := filepath.Join(dir, "bin", "plain.mjs")
	plain = strings.ReplaceAll(string(start), "cli.mjs", "plain.mjs")
	must.Do(t, os.WriteFile(script, []byte(plain), 0o600))
	return &judge{script, judgeBound, j.env}
}

func (j *judge) run(args ...string) (string, error) {
	cmd := exec.Command("node", append([]string{j.script}, args...)...)
	cmd.Env = j.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// draw has it draw the view of a camera, which is in the model's frame, and returns the rendering as wide and high as
// the camera.
func (j *judge) draw(t *testing.T, model string, c *scene.Camera, near float64, background [3]float32) []float32 {
	t.Helper()
	// The principal point of its pictures is in the middle. So a larger one is drawn; what is left, up to a quarter of
	// a pixel, the camera turns.
	left, width := padded(c.Width, c.Cx)
	top, height := padded(c.Height, c.Cy)
	x, y := (float64(width)/2-float64(left)-c.Cx)/c.Fx, (float64(height)/2-float64(top)-c.Cy)/c.Fy
	eye := c.Center()
	var target, up [3]float64
	for k := range 3 {
		target[k] = eye[k] + x*c.R[k] + y*c.R[3+k] + c.R[6+k]
		up[k] = -c.R[3+k]
	}
	// Its cameras are in a frame that is turned by half about z against that of PLY.
	place := func(p [3]float64) string { return fmt.Sprintf("=%.9f,%.9f,%.9f", -p[0], -p[1], p[2]) }
	file := filepath.Join(t.TempDir(), "view.webp")
	fov := 2 * 180 / math.Pi * math.Atan(float64(height)/2/c.Fy)
	out, err := j.run("--overwrite", "--camera-pos"+place(eye), "--camera-target"+place(target),
		"--camera-up"+place(up),
		fmt.Sprintf("--camera-fov=%.9f", fov), fmt.Sprintf("--resolution=%dx%d", width, height),
		fmt.Sprintf("--camera-near=%.9f", near),
		fmt.Sprintf("--background=%g,%g,%g", background[0], background[1], background[2]), model, file)
	if err != nil {
		t.Fatalf("%s: %v\n%s", model, err, out)
	}
	picture := must.Get(photo.Decode(scene.Camera{Path: file, Width: width, Height: height}))(t)
	all := photo.FloatRGB(picture)
	var rgb []float32
	for row := range c.Height {
		at := 3 * ((row+top)*width + left)
		rgb = append(rgb, all[at:at+3*c.Width]...)
	}
	return rgb
}

// padded is a side of a picture whose middle is the principal point, about, and how much of it comes before the
// camera's.
func padded(side int, principal float64) (before, padded int) {
	if off := int(math.Round(2*principal)) - side; off > 0 {
		return 0, side + off
	} else {
		return -off, side - off
	}
}

// TestForeignRenderer wants a third-party renderer to draw of a file what we draw: against the held-out photos it
// scores as eval prints.
func TestForeignRenderer(t *testing.T) {
	needDevice(t)
	judges := []*judge{newJudge(t)}
	judges = append(judges, judges[0].withoutEdge(t))
	if *judgeModel != "" {
		judgeViews(t, judges, *judgeModel, *judgeCapture, *judgeView)
		return
	}
	capture := truthCapture(t, false)
	// Splats of a shorter run are so large that what renderers do beside the picture and at wide angles counts.
	enough := []string{"--preset=3dgs", "--iterations=600", "--reset-every=0"}
	for _, look := range [][]string{nil, {"--background=white"}} { // it draws antialiased models as if they were not
		out := filepath.Join(t.TempDir(), "out")
		args := append([]string{"train", capture, "-m", out}, truthSizeOf().flags()...)
		command(t, slices.Concat(args, chosenDevice(), enough, look)...)
		model, _ := scoresOfRun(t, out)
		packed := filepath.Join(out, "model.sog")
		command(t, "convert", model, packed)
		for _, file := range []string{model, packed} {
			judgeViews(t, judges, file, capture, "view_008.png")
		}
	}
}

// judgeViews compares the renderers' scores of the views of a file: of one, or of all that are held out.
func judgeViews(t *testing.T, judges []*judge, model, capture, only string) {
	t.Helper()
	ours := scoresAlone(t, model, capture, fmt.Sprintf("--downscale=%d", *judgeSize))
	splats, info, err := models.Read(model)
	if err != nil {
		t.Fatal(err)
	}
	c := must.Get(load.Capture(capture, scene.LoadOptions{Model: scene.AnyModel, Downscale: *judgeSize}))(t)
	look := must.Get(captured.LookOf(model, &info.Meta))(t)
	config := pipeline.RenderConfig{Near: ply.DefaultNear}
	look.Take(&config, func(string) bool { return false }, c.Synthetic)
	cams := captured.Shifted(c.Cameras, models.OriginOf(&info))
	c.Normalise()
	t.Logf("%s: %d splats; PSNR of a view by vksplat, by %s as released, by it without edge compensation:",
		filepath.Base(model), splats.N, judgeOf)
	for i := range cams {
		want, held := ours[cams[i].Name]
		if !held || only != "" && cams[i].Name != only {
			continue
		}
		shot := must.Get(photo.Decode(cams[i]))(t)
		shot = photo.Over(shot, config.Background)
		line := fmt.Sprintf("%s: %.3f", cams[i].Name, want)
		for _, j := range judges {
			theirs := j.draw(t, model, &cams[i], config.Near/c.Frame.Scale, config.Background)
			got, _, err := metric.Compare(shot, theirs, metric.PaddingValid, shot.Mask)
			if err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprintf(", %.3f", got)
			if !(math.Abs(got-want) <= j.bound) {
				t.Errorf("%s: %.3f dB, another renderer has %.3f dB", cams[i].Name, want, got)
			}
		}
		t.Log(line + " dB")
	}
}
