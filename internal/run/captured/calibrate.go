package captured

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/calibrate"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
)

// Calibrate checks the cameras of a capture that was read at a path with l, and whose photos to hold out are chosen.
// Where its own observations say so it returns the capture with better cameras, and l then reads it so; c has lost its
// points then. Otherwise it returns c itself. res is nil where l says which cameras are used. slow gets a note where
// that takes long, note what has changed.
func Calibrate(ctx context.Context, c *scene.Capture, path string, l *Options, device pipeline.DeviceOptions,
	slow, note func(text string)) (*scene.Capture, *calibrate.Result, error) {
	if l.Cameras != CamerasAuto || l.files != nil {
		return c, nil, nil
	}
	res, err := CheckCameras(ctx, c, device, false, slow)
	if err != nil {
		return c, res, err
	}
	if res.Cameras != nil {
		better := *l
		better.files = &res.Cameras
		c.Points = nil // memory is planned for one capture
		again, err := load.Capture(path, better.Options())
		if err != nil {
			return c, res, err
		}
		again.HeldOut, again.Warnings = c.HeldOut, c.Warnings // photos that are left out are named by Text
		*l, c = better, again
	}
	if text := res.Text(); text != "" {
		note("cameras: " + text + " (" + fault.Setting("cameras") + " given keeps those of the capture)")
	}
	if text := res.UnplacedText(); text != "" {
		note(text)
	}
	return c, res, nil
}

// slowCheck is after how long CheckCameras says that it is at work. Tests change it.
var slowCheck = 2 * time.Second

// CheckCameras is calibrate.Capture, within half of the memory that Go's heap may take, with a note where that takes
// long. measure: the cameras are measured alone.
func CheckCameras(ctx context.Context, c *scene.Capture, device pipeline.DeviceOptions, measure bool,
	note func(text string)) (*calibrate.Result, error) {
	bytes, err := pipeline.HeapLimit(device)
	if err != nil {
		return nil, err
	}
	slow := time.AfterFunc(slowCheck, func() {
		note("checking the cameras of " + cli.Count(len(c.Cameras), "photo") + " (" + fault.Setting("cameras") +
			" given leaves that out)")
	})
	defer slow.Stop()
	o := calibrate.Options{Bytes: bytes / 2, Check: measure, Found: adjusted(c), Match: matchOf(c, device, note)}
	return calibrate.Capture(ctx, c, o)
}

// Unchanged reports whether the cameras are as vksplat capture left them, whether it found them itself or COLMAP did.
func Unchanged(c *scene.Capture) bool { return wrote(c, output.ReadList(c.Root, CaptureList)) }

// wrote reports whether a list of what vksplat capture wrote has the model, and others of its files, as they are now.
func wrote(c *scene.Capture, made *output.Written, others ...string) bool {
	for _, name := range colmap.ModelFiles {
		others = append(others, filepath.Join(c.Model, name+colmap.BinaryModel.Ext))
	}
	return !slices.ContainsFunc(others, func(path string) bool { return !made.Whole(path) })
}

// adjusted reports whether vksplat capture found the cameras itself, all at once: it writes notes then, and has added
// no photos to cameras that had been given.
func adjusted(c *scene.Capture) bool {
	made := output.ReadList(c.Root, CaptureList)
	for name := range made.Files {
		if strings.HasPrefix(name, MoreFolder+"/") {
			return false
		}
	}
	return wrote(c, made, filepath.Join(c.Root, ComponentsFolder, NotesFile))
}

// matchOf matches photos of a capture on a device. Where that fails, note says why.
func matchOf(c *scene.Capture, device pipeline.DeviceOptions, note func(text string)) calibrate.Match {
	return func(ctx context.Context, apart, others []calibrate.Photo) (found [][]calibrate.Sight, err error) {
		cameras := map[string]*scene.Camera{}
		for i := range c.Cameras {
			cameras[c.Cameras[i].PhotoName()] = &c.Cameras[i]
		}
		d, err := pipeline.OpenDevice(device)
		if err == nil {
			slow := time.AfterFunc(slowCheck, func() {
				note("matching " + cli.Count(len(apart), "photo") + " again, whose poses cannot be right")
			})
			defer slow.Stop()
			defer d.Close() // what it found is with the host
			found, err = reconstruct.Again(ctx, d, apart, others, func(name string) reconstruct.Photo {
				cam := cameras[name]
				return reconstruct.Photo{Name: name, Path: cam.Path, Mask: cam.Mask, MaskInverted: cam.MaskInverted}
			})
		}
		if err != nil && ctx.Err() == nil {
			note("photos whose poses cannot be right are not matched again: " + err.Error())
			return nil, nil
		}
		return found, err
	}
}
