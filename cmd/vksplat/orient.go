package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// camerasBeside are the names of files of cameras that are looked for near a model, and how many folders up: OUT is two above the models of a run.
var camerasBeside = []string{"cameras.json", "transforms.json", "transforms_train.json"}

const foldersUp = 2

// upright returns what turns the mean up of the cameras to -y.
func (a *app) upright(o *convertOptions) (splatfile.Similarity, error) {
	file := o.cameras
	if file == "" {
		if file = findCameras(o.in[0]); file == "" {
			return splatfile.Unmoved(), usagef("name them: --cameras SCENE or --cameras OUT/cameras.json", "flag --orient: there are no cameras near %s", o.in[0])
		}
		a.note("up is taken from the cameras in " + file)
	}
	cams, err := a.camerasOf(file)
	if err != nil {
		return splatfile.Unmoved(), err
	}
	up, err := meanUp(cams)
	if err != nil {
		return splatfile.Unmoved(), &scene.Error{Op: "find up", Path: file, Err: err, Hint: "turn the model yourself: --transform \"rotate X,Y,Z\""}
	}
	return splatfile.Upright(up)
}

// findCameras returns the file of cameras that is nearest to a model, "" for none.
func findCameras(in string) string {
	dir := in
	if !isFolder(in) {
		dir = filepath.Dir(in)
	}
	for range foldersUp + 1 {
		for _, name := range camerasBeside {
			if file := filepath.Join(dir, name); isFile(file) {
				return file
			}
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// camerasOf reads the cameras of a capture, or of a file that train wrote.
func (a *app) camerasOf(file string) ([]scene.Camera, error) {
	if strings.EqualFold(filepath.Base(file), camerasBeside[0]) {
		cams, _, err := scene.ReadCameras(file)
		return cams, err
	}
	c, err := scene.Load(file, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		return nil, err
	}
	return c.Cameras, nil
}

// leastUp is how long the mean of the cameras' unit vectors up must be, for it to mean anything.
const leastUp = 0.1

// meanUp returns the mean direction up of cameras: against their y axis, which is the second row of R.
func meanUp(cams []scene.Camera) (up [3]float64, err error) {
	if len(cams) == 0 {
		return up, errors.New("there are no cameras")
	}
	for _, c := range cams {
		for k := range up {
			up[k] -= c.R[3+k] / float64(len(cams))
		}
	}
	if length := math.Sqrt(up[0]*up[0] + up[1]*up[1] + up[2]*up[2]); length < leastUp {
		return up, fmt.Errorf("the cameras look every way up: their mean is %.2g long", length)
	}
	return up, nil
}
