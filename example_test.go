package vksplat_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"vksplat"
)

// demo opens a device and a small capture in a new folder.
func demo() (device *vksplat.Device, capture *vksplat.Capture, dir string, end func()) {
	dir, err := os.MkdirTemp("", "vksplat")
	check(err)
	scene := filepath.Join(dir, "scene")
	check(vksplat.WriteDemo(scene, vksplat.DemoOptions{Photos: 8, Width: 64, Height: 48, Points: 300}))
	device, err = vksplat.OpenDevice(vksplat.DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	check(err)
	capture, err = vksplat.OpenCapture(scene, vksplat.CaptureOptions{})
	check(err)
	return device, capture, dir, func() {
		check(device.Close())
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		log.Panicf("%v (%s)", err, vksplat.Hint(err))
	}
}

func ExampleOpenCapture() {
	_, capture, _, end := demo()
	defer end()
	cam := capture.Cameras()[0]
	fmt.Println(len(capture.Cameras()), "photos, the first is", cam.Name, "of", cam.Width, "x", cam.Height)
	fmt.Println(len(capture.Warnings()), "warnings")
	// Output:
	// 8 photos, the first is view_000.png of 64 x 48
	// 0 warnings
}

func ExampleTrain() {
	device, capture, dir, end := demo()
	defer end()
	model, err := vksplat.Train(context.Background(), device, capture, filepath.Join(dir, "out"), vksplat.TrainOptions{
		Iterations: 20,
		Settings:   map[string]string{"sh_degree": "1", "refine_every": "0"},
		Progress: func(p vksplat.Progress) {
			if p.Step%10 == 0 {
				fmt.Println("step", p.Step, "of", p.Steps)
			}
		},
	})
	check(err)
	fmt.Println(model.Splats(), "splats")
	// Output:
	// step 10 of 20
	// step 20 of 20
	// 300 splats
}

// A training that is stopped leaves a checkpoint. Resume goes on from there.
func ExampleResume() {
	device, capture, dir, end := demo()
	defer end()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, options := filepath.Join(dir, "out"), vksplat.TrainOptions{Iterations: 40}
	options.Progress = func(p vksplat.Progress) {
		if p.Step == 10 {
			cancel()
		}
	}
	_, err := vksplat.Train(ctx, device, capture, out, options)
	fmt.Println("cancelled:", errors.Is(err, context.Canceled))

	options.Progress = nil
	model, err := vksplat.Resume(context.Background(), device, capture, out, options)
	check(err)
	fmt.Println("resumed:", filepath.Base(filepath.Dir(model.Path())))
	// Output:
	// cancelled: true
	// resumed: iteration_40
}

func ExampleDevice_Render() {
	device, capture, dir, end := demo()
	defer end()
	ctx := context.Background()
	model, err := vksplat.Train(ctx, device, capture, filepath.Join(dir, "out"), vksplat.TrainOptions{Iterations: 20})
	check(err)
	camera := capture.Cameras()[0]
	camera.T[2]++ // a step back
	picture, err := device.Render(ctx, model, camera)
	check(err)
	fmt.Println(picture.Bounds())
	// Output: (0,0)-(64,48)
}

func ExampleEvaluate() {
	device, capture, dir, end := demo()
	defer end()
	ctx := context.Background()
	model, err := vksplat.Train(ctx, device, capture, filepath.Join(dir, "out"), vksplat.TrainOptions{
		Iterations: 100, HoldOut: 4,
	})
	check(err)
	scores, err := vksplat.Evaluate(ctx, device, model, capture)
	check(err)
	fmt.Println(len(scores.Views), "photos, PSNR above 12 dB:", scores.PSNR > 12)
	// Output: 2 photos, PSNR above 12 dB: true
}

func ExampleModel_WriteFile() {
	device, capture, dir, end := demo()
	defer end()
	model, err := vksplat.Train(context.Background(), device, capture, filepath.Join(dir, "out"), vksplat.TrainOptions{
		Iterations: 5,
	})
	check(err)
	for _, name := range []string{"model.ply", "model.compressed.ply", "model.spz", "model.sog", "model.splat",
		"model.glb"} {
		file := filepath.Join(dir, name)
		check(model.WriteFile(file))
		again, err := vksplat.ReadModel(file)
		check(err)
		fmt.Println(name, again.Splats() == model.Splats())
	}
	// Output:
	// model.ply true
	// model.compressed.ply true
	// model.spz true
	// model.sog true
	// model.splat true
	// model.glb true
}

func ExampleHint() {
	_, err := vksplat.ReadModel("my_model.ply")
	fmt.Println(errors.Is(err, vksplat.ErrData), errors.Is(err, vksplat.ErrTryAgain))
	_, err = vksplat.OpenCapture(".", vksplat.CaptureOptions{Downscale: 3})
	fmt.Println(errors.Is(err, vksplat.ErrUsage), vksplat.Hint(err))
	// Output:
	// true false
	// true give 1, 2, 4 or 8, or 0 for automatic
}
