package main

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/remedy"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/splatfile"
)

// uprightMove returns what turns the mean up of the cameras to -y.
func uprightMove(a *cli.Console, o *convertOptions) (splatfile.Similarity, error) {
	file := o.cameras
	if file == "" {
		if file = captured.FindCameras(o.in[0], captured.CamerasBeside, true); file == "" {
			return splatfile.Unmoved(), fault.Usagef("name them: --cameras SCENE or --cameras OUT/cameras.json", "flag --orient: there are no cameras near %s", o.in[0])
		}
		a.Note("up is taken from the cameras in " + file)
	}
	cams, err := readCamerasOf(a, file)
	if err != nil {
		return splatfile.Unmoved(), err
	}
	up, err := scene.MeanUp(cams)
	if err != nil {
		return splatfile.Unmoved(), &fault.Error{Op: "find up", Path: file, Err: err, Hint: "turn the model yourself: --transform \"rotate X,Y,Z\""}
	}
	return splatfile.Upright(up)
}

// readCamerasOf reads the cameras of a capture, or of a file that train wrote.
func readCamerasOf(a *cli.Console, file string) ([]scene.Camera, error) {
	if strings.EqualFold(filepath.Base(file), captured.CamerasBeside[0]) {
		cams, _, err := inria.ReadCameras(file)
		return cams, err
	}
	c, err := load.Capture(file, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		return nil, &unreadCapture{file, err}
	}
	return c.Cameras, nil
}

var longFlag = regexp.MustCompile(`--[\w-]+`)

// ofCapture adds to the error of a command that has no flags about how a capture is read: a hint that names some sends to one that has.
func ofCapture(err error) error {
	var unread *unreadCapture
	if !errors.As(err, &unread) {
		return err
	}
	table := newTrainOptions().table()
	for _, word := range longFlag.FindAllString(remedy.Of(unread.err), -1) {
		if find(table, word[2:]) != nil {
			return &fault.HintedError{Err: err, Hint: "vksplat inspect " + photo.ShellWord(unread.path) + " says more about it, and what can be done"}
		}
	}
	return err
}

// unreadCapture is the error of a capture that cannot be read.
type unreadCapture struct {
	path string
	err  error
}

func (e *unreadCapture) Error() string { return e.err.Error() }
func (e *unreadCapture) Unwrap() error { return e.err }
