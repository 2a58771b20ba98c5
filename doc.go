// Package vksplat trains 3D Gaussian splats from photographs, draws and measures them, and reads and writes every file
// format of the field. It runs on any GPU with Vulkan 1.2, and without a GPU on software Vulkan.
//
// Training takes a capture, which is photographs with their camera poses, and a device, and leaves a folder with the
// model, its checkpoints and a report:
//
//	device, err := vksplat.OpenDevice(vksplat.DeviceOptions{})
//	if err != nil {
//		log.Fatal(err, vksplat.Hint(err))
//	}
//	defer device.Close()
//	capture, err := vksplat.OpenCapture("my_scene", vksplat.CaptureOptions{})
//	if err != nil {
//		log.Fatal(err, vksplat.Hint(err))
//	}
//	model, err := vksplat.Train(ctx, device, capture, "out", vksplat.TrainOptions{HoldOut: 8})
//	if err != nil {
//		log.Fatal(err, vksplat.Hint(err))
//	}
//	err = model.WriteFile("my_scene.spz")
//
// Start with [OpenDevice], [OpenCapture] and [Train]; [Resume] continues a training that was stopped. [ReadModel] reads
// a model that anybody made; [Device.Render] draws it, [Evaluate] measures it, and [Model.WriteFile] converts it.
// [WriteDemo] makes a small capture to try things on.
//
// The same capture, settings, seed, device and driver give the same model, byte for byte, and the same as the command
// vksplat train. Errors are of three kinds, [ErrData], [ErrTryAgain] and [ErrUsage], and [Hint] says what can be done
// about one. Errors, hints and warnings name settings as the command's flags: --max-splats is the key "max_splats" of
// [TrainOptions].Settings, and docs/api.md lists the flags that are fields of options.
package vksplat
