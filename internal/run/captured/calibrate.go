package captured

import (
	"context"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/calibrate"
	"vksplat/scene/load"
)

// Calibrate checks the cameras of a capture that was read at a path with load, and whose photos to hold out are chosen.
// Where its own observations say so it returns the capture with better cameras, and load then reads it so. Otherwise it
// returns c itself. res is nil where load says which cameras are used. bytes bounds the memory; 0: no bound. note gets
// what CheckCameras says.
func Calibrate(ctx context.Context, c *scene.Capture, path string, l *Options, bytes int64,
	note func(text string)) (*scene.Capture, *calibrate.Result, error) {
	if l.Cameras != CamerasAuto || l.files != nil {
		return c, nil, nil
	}
	res, err := CheckCameras(ctx, c, calibrate.Options{Bytes: bytes}, note)
	if err != nil || res.Cameras == nil {
		return c, res, err
	}
	better := *l
	better.files = &res.Cameras
	again, err := load.Capture(path, better.Options())
	if err != nil {
		return c, res, err
	}
	*l = better
	again.HeldOut, again.Warnings = c.HeldOut, c.Warnings // photos that are left out are named by Text
	return again, res, nil
}

// slowCheck is after how long CheckCameras says that it is at work. Tests change it.
var slowCheck = 2 * time.Second

// CheckCameras is calibrate.Capture, with a note where that takes long.
func CheckCameras(ctx context.Context, c *scene.Capture, o calibrate.Options, note func(text string)) (
	*calibrate.Result, error) {
	slow := time.AfterFunc(slowCheck, func() {
		note("checking the cameras of " + cli.Count(len(c.Cameras), "photo") + " (" + fault.Setting("cameras") +
			" given leaves that out)")
	})
	defer slow.Stop()
	return calibrate.Capture(ctx, c, o)
}

// TellCalibration notes what a calibration changed. res may be nil.
func TellCalibration(res *calibrate.Result, note func(text string)) {
	if res == nil {
		return
	}
	if text := res.Text(); text != "" {
		note("cameras: " + text + " (" + fault.Setting("cameras") + " given keeps those of the capture)")
	}
	if text := res.UnplacedText(); text != "" {
		note(text)
	}
}
