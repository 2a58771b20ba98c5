package vksplat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// built is the folder of the command.
var built string

// command builds the command once and returns its path.
var command = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "vksplat")
	out, err := exec.Command("go", "build", "-o", file, "./cmd/vksplat").CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return file, err
})

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "vksplat"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(built); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// vksplatCommand runs the command and returns its standard output.
func vksplatCommand(t *testing.T, args ...string) string {
	t.Helper()
	file := must.Get(command())(t)
	var out, errs bytes.Buffer
	cmd := exec.Command(file, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("vksplat %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// open returns a device and a small capture.
func open(t *testing.T) (*vksplat.Device, *vksplat.Capture, string) {
	t.Helper()
	device, capture, dir, end := demo()
	t.Cleanup(end)
	return device, capture, dir
}

// modelFile is of a run of 60 steps.
const modelFile = "point_cloud/iteration_60/point_cloud.ply"

// recipe is that of these tests: splats are refined, so that a difference would grow.
func recipe() vksplat.TrainOptions {
	return vksplat.TrainOptions{Preset: "mcmc", Iterations: 60, Seed: 7, HoldOut: 4,
		Settings: map[string]string{"refine_start": "10", "refine_every": "10", "max_splats": "600", "sh_degree": "1"}}
}

// TestSameAsCommand wants trainings, pictures, scores and files of other formats to be those of the command.
func TestSameAsCommand(t *testing.T) {
	device, capture, dir := open(t)
	ctx, ours, theirs := t.Context(), filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	model := must.Get(vksplat.Train(ctx, device, capture, ours, recipe()))(t)
	if model.Splats() <= 300 {
		t.Errorf("%d splats: nothing was refined", model.Splats())
	}
	vksplatCommand(t, "train", filepath.Join(dir, "scene"), "-m", theirs, "--preset", "mcmc", "--iterations", "60",
		"--seed", "7", "--eval", "--test-every", "4", "--refine-start", "10", "--refine-every", "10",
		"--max-splats", "600", "--sh-degree", "1")
	filetest.Same(t, filepath.Join(ours, modelFile), filepath.Join(theirs, modelFile))
	checkpoint := "checkpoints/step_60.safetensors"
	filetest.Same(t, filepath.Join(ours, checkpoint), filepath.Join(theirs, checkpoint))
	filetest.Same(t, filepath.Join(ours, "results.json"), filepath.Join(theirs, "results.json"))

	for _, name := range []string{"a.spz", "a.sog", "a.splat", "a.glb", "a.compressed.ply"} {
		must.Do(t, model.WriteFile(filepath.Join(dir, name)))
		vksplatCommand(t, "convert", theirs, filepath.Join(dir, "b"+name))
		filetest.Same(t, filepath.Join(dir, name), filepath.Join(dir, "b"+name))
	}

	picture := must.Get(device.Render(ctx, model, capture.Cameras()[1]))(t)
	vksplatCommand(t, "render", theirs, "--frames", "1", "-o", filepath.Join(dir, "b.png"))
	samePicture(t, picture, filepath.Join(dir, "b.png"))

	scores := must.Get(vksplat.Evaluate(ctx, device, model, capture))(t)
	var trained map[string]struct{ PSNR, SSIM map[string]float64 }
	filetest.ReadJSON(t, filepath.Join(ours, "per_view.json"), &trained)
	want, psnr := trained["ours_60"], 0.0
	for _, v := range scores.Views { // the training measures its splats before they are rounded to the file's
		if math.Abs(v.PSNR-want.PSNR[v.Name]) > 1e-4 || math.Abs(v.SSIM-want.SSIM[v.Name]) > 1e-5 {
			t.Errorf("scores are %+v, the training's are %+v", v, want)
		}
		psnr += v.PSNR / float64(len(scores.Views))
	}
	if len(scores.Views) != 2 || len(want.PSNR) != 2 || math.Abs(psnr-scores.PSNR) > 1e-9 || !(scores.SSIM > 0) {
		t.Errorf("scores are %+v", scores)
	}
}

// samePicture compares a picture with a file's.
func samePicture(t *testing.T, got image.Image, file string) {
	t.Helper()
	f := must.Get(os.Open(file))(t)
	defer f.Close()
	want := must.Get(png.Decode(f))(t)
	if got.Bounds() != want.Bounds() {
		t.Fatalf("a picture of %v, want %v", got.Bounds(), want.Bounds())
	}
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			r, g, b, _ := got.At(x, y).RGBA()
			wr, wg, wb, _ := want.At(x, y).RGBA()
			if r != wr || g != wg || b != wb {
				t.Fatalf("pixel %d, %d is %d %d %d, want %d %d %d", x, y, r>>8, g>>8, b>>8, wr>>8, wg>>8, wb>>8)
			}
		}
	}
}

// TestResumeSameBytes stops a training twice: it ends with the bytes of an undisturbed one.
func TestResumeSameBytes(t *testing.T) {
	device, capture, dir := open(t)
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	must.Get(vksplat.Train(t.Context(), device, capture, whole, recipe()))(t)
	for _, last := range []int{23, 41} {
		ctx, cancel := context.WithCancel(t.Context())
		o := recipe()
		o.Progress = func(p vksplat.Progress) {
			if p.Step == last {
				cancel()
			}
		}
		model, err := vksplat.Resume(ctx, device, capture, parts, o)
		if model != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled training returns %v, %v", model, err)
		}
	}
	if list, err := filepath.Glob(filepath.Join(parts, "checkpoints", "*.safetensors")); err != nil || len(list) == 0 {
		t.Fatalf("no checkpoint is left: %v", err)
	}
	// What is left out then is as it was.
	left := vksplat.TrainOptions{HoldOut: recipe().HoldOut}
	left.Progress = func(p vksplat.Progress) {
		if p.Steps != 60 {
			t.Errorf("step %d of %d, want 60", p.Step, p.Steps)
		}
	}
	must.Get(vksplat.Resume(t.Context(), device, capture, parts, left))(t)
	filetest.Same(t, filepath.Join(whole, modelFile), filepath.Join(parts, modelFile))
}

// TestTimeLimit ends a training whose time is up, and goes on with it. No time passes but that of steps.
func TestTimeLimit(t *testing.T) {
	device, capture, dir := open(t)
	out := filepath.Join(dir, "limited")
	o := recipe()
	o.TimeLimit = 100 * time.Second
	t.Setenv("VKSPLAT_STEP_TIMES", "1s,5s")
	model, err := vksplat.Train(t.Context(), device, capture, out, o)
	if model != nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(vksplat.Hint(err), "Resume") {
		t.Fatalf("a training whose time is up returns %v, %v; hint: %s", model, err, vksplat.Hint(err))
	}
	o.TimeLimit = -time.Second
	if _, err := vksplat.Resume(t.Context(), device, capture, out, o); !errors.Is(err, vksplat.ErrUsage) ||
		!strings.Contains(err.Error(), "--time-limit") {
		t.Errorf("a limit below 0: %v", err)
	}
	o.TimeLimit = 300 * time.Second
	must.Get(vksplat.Resume(t.Context(), device, capture, out, o))(t)
	if _, err := os.Stat(filepath.Join(out, modelFile)); err != nil {
		t.Error(err)
	}
}

// TestSettings wants each key of a configuration file to be a setting, or a field of the options here.
func TestSettings(t *testing.T) {
	device, capture, dir := open(t)
	fields := []string{
		"eval", "test_every", // TrainOptions.HoldOut
		"images", "downscale", "strict", "format", "masks", "cameras", // CaptureOptions
		"device", "max_vram", "max_ram", // DeviceOptions
		"progress", "preset",
		// of the command alone
		"full_photos", "model", "invert_masks", "grow_masks", "undo_applied_transform",
	}
	settings := map[string]string{}
	config := vksplatCommand(t, "train", "--print-config")
	out := filepath.Join(dir, "out")
	hint := regexp.MustCompile(`^(use (Train|Capture|Device)Options\.\w+ instead|only the command vksplat train has it)$`)
	for _, m := range regexp.MustCompile(`(?m)^(\w+) = "?(.*?)"?$`).FindAllStringSubmatch(config, -1) {
		if !slices.Contains(fields, m[1]) {
			settings[m[1]] = m[2]
			continue
		}
		_, err := vksplat.Train(t.Context(), device, capture, out,
			vksplat.TrainOptions{Settings: map[string]string{m[1]: m[2]}})
		if !errors.Is(err, vksplat.ErrUsage) || !hint.MatchString(vksplat.Hint(err)) {
			t.Errorf("%s: %v; hint %q", m[1], err, vksplat.Hint(err))
		}
	}
	if len(settings) < 50 {
		t.Fatalf("%d settings", len(settings))
	}
	settings["iterations"] = "3"
	if _, err := vksplat.Train(t.Context(), device, capture, out,
		vksplat.TrainOptions{Settings: settings}); err != nil {
		t.Error(err)
	}
}

// TestErrors wants what cannot be to be refused by the kind that fits.
func TestErrors(t *testing.T) {
	device, capture, dir := open(t)
	train := func(o vksplat.TrainOptions) error {
		_, err := vksplat.Train(t.Context(), device, capture, filepath.Join(dir, "out"), o)
		return err
	}
	set := func(key, text string) error {
		return train(vksplat.TrainOptions{Settings: map[string]string{key: text}})
	}
	twice := train(vksplat.TrainOptions{Iterations: 3, Settings: map[string]string{"iterations": "4"}})
	_, missing := vksplat.OpenCapture(filepath.Join(dir, "nothing"), vksplat.CaptureOptions{})
	_, device99 := vksplat.OpenDevice(vksplat.DeviceOptions{Select: "99"})
	_, blind := device.Render(t.Context(), &vksplat.Model{}, vksplat.Camera{Width: 10, Height: 10})
	for name, c := range map[string]struct {
		err, kind error
		text      string
	}{
		"no capture":      {missing, vksplat.ErrData, "nothing"},
		"no device":       {device99, vksplat.ErrUsage, "99"},
		"no camera":       {blind, vksplat.ErrUsage, "focal"},
		"unknown setting": {set("seeed", "1"), vksplat.ErrUsage, "seeed"},
		"empty key":       {set("", "1"), vksplat.ErrUsage, `unknown key ""`},
		"a dash as a key": {set("-", "1"), vksplat.ErrUsage, `unknown key "-"`},
		"bad number":      {set("seed", "x"), vksplat.ErrUsage, "seed"},
		"out of range":    {set("near", "-1"), vksplat.ErrUsage, "near"},
		"unknown preset":  {train(vksplat.TrainOptions{Preset: "slow"}), vksplat.ErrUsage, "slow"},
		"hold all out":    {train(vksplat.TrainOptions{HoldOut: 1}), vksplat.ErrUsage, "TrainOptions.HoldOut"},
		"twice":           {twice, vksplat.ErrUsage, "iterations"},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: %v, want %v about %s", name, c.err, c.kind, c.text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("a training that was refused has made its folder")
	}
	must.Do(t, train(vksplat.TrainOptions{Iterations: 3}))
	again := train(vksplat.TrainOptions{Iterations: 3})
	_, other := vksplat.Resume(t.Context(), device, capture, filepath.Join(dir, "out"),
		vksplat.TrainOptions{Iterations: 3, Seed: 5})
	for name, c := range map[string]struct {
		err  error
		hint string
	}{
		"a second training in the same folder": {again, "replace it with --overwrite"},
		"other settings":                       {other, "--accept-changes"},
		"another seed":                         {other, "leave out --seed, or "},
	} {
		if !errors.Is(c.err, vksplat.ErrUsage) || !strings.Contains(vksplat.Hint(c.err), c.hint) {
			t.Errorf("%s: %v; %s", name, c.err, vksplat.Hint(c.err))
		}
	}
	if err := train(vksplat.TrainOptions{Iterations: 3, Replace: true}); err != nil {
		t.Error(err)
	}
}

// TestDeviceLost wants the hint of a training whose device is lost to name the calls that go on.
func TestDeviceLost(t *testing.T) {
	_, capture, dir := open(t)
	limits := filepath.Join(dir, "limits.json")
	must.Do(t, os.WriteFile(limits, []byte(`{"lostAfter": 45}`), 0o644))
	t.Setenv("VKSPLAT_LIMITS", limits)
	for every, want := range map[string]string{"0": "; start over with: the same call",
		"4": "; resume from it: Resume"} {
		device, err := vksplat.OpenDevice(vksplat.DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = vksplat.Train(t.Context(), device, capture, filepath.Join(dir, "lost"+every), vksplat.TrainOptions{
			Iterations: 60, Settings: map[string]string{"checkpoint_every": every}})
		if !errors.Is(err, vksplat.ErrTryAgain) || !strings.HasSuffix(vksplat.Hint(err), want) {
			t.Errorf("%v; %q, want %q", err, vksplat.Hint(err), want)
		}
		_ = device.Close() // of a lost device
	}
}

// refusals are settings that train refuses, with the error and its hint.
var refusals = []struct {
	settings   map[string]string
	text, hint string
}{
	{map[string]string{"splats": "20", "refine_every": "0"}, "flags --splats and --refine-every: without refinement, " +
		"the number of splats stays that of the capture", "give --refine-every 100"},
	{map[string]string{"splats_factor": "0.5", "refine_every": "0"}, "flags --splats-factor and --refine-every: " +
		"without refinement, the number of splats stays that of the capture", "give --refine-every 100"},
	{map[string]string{"random_background": "true", "background_noise": "0.1"}, "flags --random-background and " +
		"--background-noise: both choose the background of a step", "leave out one of the two"},
	{map[string]string{"strategy": "mcmc", "absgrad": "true"}, "flags --strategy and --absgrad: mcmc does not " +
		"grow by gradients", "leave out one of the two"},
	{map[string]string{"strategy": "mcmc", "reset_every": "3000"}, "flags --strategy and --reset-every: mcmc " +
		"resets no opacities", "give --reset-every 0"},
	{map[string]string{"strategy": "mcmc", "max_splats": "0"},
		"flags --strategy and --max-splats: mcmc grows to " +
			"a fixed number, and 0 is none", "give --max-splats 1000000"},
	{map[string]string{"splats": "20", "max_splats": "10"}, "flags --splats and --max-splats: 20 splats to end " +
		"with, the ceiling is 10", "give --max-splats 20 or more, or fewer --splats"},
	{map[string]string{"eval_at": "7"}, "flag --eval-at: no photo is held out to measure on",
		"give --eval, which holds photos out"},
	{map[string]string{"metrics_every": "0"}, "flag --metrics-every: 0 is not a number of steps",
		"give 1 or more"},
	{map[string]string{"steps_scaler": "0"}, "flag --steps-scaler: 0 is not a factor of steps",
		"give a factor above 0 and at most 1000, as in 0.25"},
	{map[string]string{"lr_means": "1e30"}, "--lr-means is 1e+30; it must be from 0 to 10",
		"as in --lr-means 0.00016; see: vksplat train --help-all"},
	{map[string]string{"splats_factor": "-1"}, "--splats-factor is -1; it must be from 0 to 100",
		"see: vksplat train --help-all"},
}

// TestSameRefusals wants the API to refuse what the command refuses, in the same words.
func TestSameRefusals(t *testing.T) {
	device, capture, dir := open(t)
	file, out := must.Get(command())(t), filepath.Join(dir, "out")
	for _, c := range refusals {
		want := c.text + "\nhint: " + c.hint
		_, trained := vksplat.Train(t.Context(), device, capture, out, vksplat.TrainOptions{Settings: c.settings})
		_, resumed := vksplat.Resume(t.Context(), device, capture, out, vksplat.TrainOptions{Settings: c.settings})
		for _, err := range []error{trained, resumed} {
			if got := fmt.Sprintf("%v\nhint: %s", err, vksplat.Hint(err)); got != want ||
				!errors.Is(err, vksplat.ErrUsage) {
				t.Errorf("%v: %q, want %q", c.settings, got, want)
			}
		}
		args := []string{"train", filepath.Join(dir, "scene"), "-m", out}
		for key, text := range c.settings {
			args = append(args, "--"+strings.ReplaceAll(key, "_", "-")+"="+text)
		}
		text, err := exec.Command(file, args...).CombinedOutput()
		if err == nil || string(text) != "vksplat: error: "+want+"\n" {
			t.Errorf("%v: %v, %q, want %q", args, err, text, want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a training that was refused has made its folder")
	}
}

// TestDependencies keeps what servers, jobs and command lines need out of programs that use the API.
func TestDependencies(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", ".").Output())(t)
	banned := regexp.MustCompile(`minio|websocket|cobra|pflag|^vksplat/(farm|view|cmd)\b`)
	for _, name := range strings.Fields(string(out)) {
		if banned.MatchString(name) {
			t.Errorf("the API needs %s", name)
		}
	}
}

// TestOtherModule builds and runs a program of a module outside of this one.
func TestOtherModule(t *testing.T) {
	text := must.Get(os.ReadFile("examples/api/main.go"))(t)
	if n := bytes.Count(text, []byte("\n")); n > 40 {
		t.Errorf("the shortest program has %d lines", n)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "examples/api"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f := must.Get(os.Open(filepath.Join(dir, "picture.png")))(t)
	defer f.Close()
	if picture, err := png.Decode(f); err != nil || picture.Bounds() != image.Rect(0, 0, 64, 48) {
		t.Errorf("the picture is %v, %v", picture, err)
	}
}
