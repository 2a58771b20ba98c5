package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// captureFile in OUT says how a run read its capture and which photos it held out, so that its model can be measured on the same later.
const captureFile = "capture.json"

// captureSource says where a capture is and how it is read.
type captureSource struct {
	Scene       string `json:"scene"` // absolute
	Format      string `json:"format"`
	Images      string `json:"images"`
	Downscale   int    `json:"downscale"` // 0: auto
	FullPhotos  bool   `json:"full_photos"`
	Model       int    `json:"model"` // of COLMAP's; -1: any
	Masks       string `json:"masks"`
	InvertMasks bool   `json:"invert_masks"`
	UndoApplied bool   `json:"undo_applied_transform"`
}

// sourceOf records how a capture is read.
func sourceOf(path string, l *loadFlags) captureSource {
	return captureSource{Scene: absolute(path), Format: l.format, Images: l.images, Downscale: int(l.downscale), FullPhotos: l.full, Model: int(l.model), Masks: l.masks,
		InvertMasks: l.inverted, UndoApplied: l.undo}
}

// captureRecord is the content of captureFile.
type captureRecord struct {
	captureSource

	HeldOut []string `json:"held_out"` // names of cameras

	Background [3]float32 `json:"background"`
	Near       float64    `json:"near"`     // in the training frame
	Exposure   bool       `json:"exposure"` // colour maps were learnt

	// Of runs by earlier versions: above 0, each training photo and each score had a near plane of its own, which no
	// file holds. See hiddenScores.
	Clearance float64 `json:"clearance,omitempty"`
}

// maxCaptureRecord bounds the bytes of a record: names of a million photos.
const maxCaptureRecord = 64 << 20

// readCaptureRecord returns the record in the folder of a run, nil where there is none.
func readCaptureRecord(out string) (*captureRecord, error) {
	path := filepath.Join(out, captureFile)
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!st.Mode().IsRegular() || st.Size() > maxCaptureRecord) {
		err = errors.New("this is no record of a capture")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	rec := &captureRecord{}
	if err == nil {
		err = strictjson.JSONError(json.Unmarshal(data, rec))
	}
	if err == nil && rec.Scene == "" {
		err = errors.New("it names no capture")
	}
	if err != nil {
		return nil, &hintedError{err: fmt.Errorf("read %s: %w: %w", path, fault.ErrData, pathless(err)), hint: "train writes this file; remove it, and say by flags what it said: eval needs --capture SCENE, and all --background unless that was black"}
	}
	return rec, nil
}

// options brings load to what is recorded, where no flag says otherwise.
func (rec *captureSource) options(load *loadFlags, given func(flag string) bool) {
	for flag, take := range map[string]func(){
		"format": func() { load.format = rec.Format }, "images": func() { load.images = rec.Images }, "downscale": func() { load.downscale = downscaleFlag(rec.Downscale) },
		"full-photos": func() { load.full = rec.FullPhotos }, "model": func() { load.model = modelFlag(rec.Model) }, "masks": func() { load.masks = rec.Masks },
		"invert-masks": func() { load.inverted = rec.InvertMasks }, "undo-applied-transform": func() { load.undo = rec.UndoApplied },
	} {
		if !given(flag) {
			take()
		}
	}
}

// flags are those of train that read the capture so.
func (rec *captureSource) flags() []string {
	var load loadFlags
	plain := newTrainOptions().load
	rec.options(&load, func(string) bool { return false })
	defaults := map[string]string{}
	for _, opt := range plain.table() {
		defaults[opt.name] = opt.value.String()
	}
	var list []string
	for _, opt := range load.table() {
		if text := opt.value.String(); text != defaults[opt.name] {
			list = append(list, "--"+opt.name+"="+text)
		}
	}
	return list
}

// describes tells whether a run was trained on the photos of c, which was read at a path: that of the record, or another to which they have moved.
func (rec *captureRecord) describes(c *scene.Capture, path string) bool {
	if rec.Scene == absolute(path) {
		return true
	}
	names := map[string]bool{}
	for i := range c.Cameras {
		names[c.Cameras[i].Name] = true
	}
	for _, name := range rec.HeldOut {
		if !names[name] {
			return false
		}
	}
	return len(rec.HeldOut) > 0
}
