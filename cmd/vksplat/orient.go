package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/splatfile"
)

// camerasBeside are the names of files of cameras that are looked for near a model, and how many folders up: OUT is two above the models of a run.
var camerasBeside = []string{"cameras.json", "transforms.json", "transforms_train.json"}

const foldersUp = 2

// upright returns what turns the mean up of the cameras to -y.
func (a *app) upright(o *convertOptions) (splatfile.Similarity, error) {
	file := o.cameras
	if file == "" {
		if file = findCameras(o.in[0], camerasBeside, true); file == "" {
			return splatfile.Unmoved(), usagef("name them: --cameras SCENE or --cameras OUT/cameras.json", "flag --orient: there are no cameras near %s", o.in[0])
		}
		a.note("up is taken from the cameras in " + file)
	}
	cams, err := a.camerasOf(file)
	if err != nil {
		return splatfile.Unmoved(), err
	}
	up, err := scene.MeanUp(cams)
	if err != nil {
		return splatfile.Unmoved(), &fault.Error{Op: "find up", Path: file, Err: err, Hint: "turn the model yourself: --transform \"rotate X,Y,Z\""}
	}
	return splatfile.Upright(up)
}

// findCameras returns the file of cameras that is nearest to a model, of some names, "" for none. It looks beside the model and in the OUT of a run's; to guess,
// in all folders up to where OUT would be.
func findCameras(in string, names []string, guess bool) string {
	dir := in
	if !isFolder(in) {
		dir = filepath.Dir(in)
	}
	ofRun := filepath.Base(filepath.Dir(dir)) == filepath.Dir(modelFolder)
	for up := range foldersUp + 1 {
		if guess || up == 0 || up == foldersUp && ofRun {
			for _, name := range names {
				if file := filepath.Join(dir, name); isFile(file) {
					return file
				}
			}
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// camerasOf reads the cameras of a capture, or of a file that train wrote.
func (a *app) camerasOf(file string) ([]scene.Camera, error) {
	if strings.EqualFold(filepath.Base(file), camerasBeside[0]) {
		cams, _, err := inria.ReadCameras(file)
		return cams, err
	}
	c, err := load.Capture(file, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		return nil, ofCapture(file, err)
	}
	return c.Cameras, nil
}

var longFlag = regexp.MustCompile(`--[\w-]+`)

// ofCapture is the error of a capture in a command that has no flags about how it is read: a hint that names some sends to one that has.
func ofCapture(path string, err error) error {
	table := newTrainOptions().table()
	for _, word := range longFlag.FindAllString(hint(err), -1) {
		if find(table, word[2:]) != nil {
			return &hintedError{err: err, hint: "vksplat inspect " + photo.ShellWord(path) + " says more about it, and what can be done"}
		}
	}
	return err
}
