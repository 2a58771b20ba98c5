// Command first-splats trains the demo capture into a folder and draws the model: vksplat as a library.
package main

import (
	"context"
	"image/png"
	"log"
	"os"
	"path/filepath"

	"vksplat"
)

func main() {
	dir := os.Args[1]
	scene := filepath.Join(dir, "scene")
	check(vksplat.WriteDemo(scene, vksplat.DemoOptions{Photos: 8, Width: 64, Height: 48, Points: 300}))

	device, err := vksplat.OpenDevice(vksplat.DeviceOptions{})
	check(err)
	capture, err := vksplat.OpenCapture(scene, vksplat.CaptureOptions{})
	check(err)
	ctx, out := context.Background(), filepath.Join(dir, "out")
	model, err := vksplat.Train(ctx, device, capture, out, vksplat.TrainOptions{Iterations: 50})
	check(err)
	picture, err := device.Render(ctx, model, capture.Cameras()[0])
	check(err)
	file, err := os.Create(filepath.Join(dir, "picture.png"))
	check(err)
	check(png.Encode(file, picture))
	check(file.Close())
	check(device.Close())
}

func check(err error) {
	if err != nil {
		log.Fatalf("%v (%s)", err, vksplat.Hint(err))
	}
}
