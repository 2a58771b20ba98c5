package captured

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// Source says where a capture is and how it is read.
type Source struct {
	Scene       string `json:"scene"` // absolute
	Format      string `json:"format"`
	Images      string `json:"images"`
	Downscale   int    `json:"downscale"` // 0: auto
	FullPhotos  bool   `json:"full_photos"`
	Model       int    `json:"model"` // of COLMAP's; -1: any
	Masks       string `json:"masks"`
	InvertMasks bool   `json:"invert_masks"`
	GrowMasks   int    `json:"grow_masks,omitempty"`
	UndoApplied bool   `json:"undo_applied_transform"`
	Cameras     string `json:"cameras,omitempty"` // a folder of OUT; "" for the capture's own
}

// SourceOf records how a capture is read, whose cameras are in a folder of OUT if they are not its own.
func SourceOf(path string, l *Options, cameras string) Source {
	if !l.Calibrated() {
		cameras = ""
	}
	return Source{Scene: output.Absolute(path), Format: l.Format, Images: l.Images, Downscale: int(l.Downscale),
		Cameras: cameras, FullPhotos: l.Full, Model: int(l.Model), Masks: l.Masks,
		InvertMasks: l.Inverted, GrowMasks: l.GrowMasks, UndoApplied: l.Undo}
}

// Record is the content of captureFile.
type Record struct {
	Source

	HeldOut []string `json:"held_out"` // names of cameras
	// Resplit: an earlier part of the run held out other photos, so it was trained on some of these.
	Resplit bool `json:"resplit,omitempty"`

	Background [3]float32 `json:"background"`
	Near       float64    `json:"near"`               // in the training frame
	Exposure   bool       `json:"exposure"`           // exposure, white balance or vignetting of the photos was learnt
	AsTaken    bool       `json:"as_taken,omitempty"` // scores are of photos as their lenses took them
	// RefinedAt is the step up to which training has refined Cameras: models of other steps were trained with others.
	RefinedAt int `json:"refined_at,omitempty"`
}

// ReadRecord returns the record in the folder of a run, nil where there is none.
func ReadRecord(out string) (*Record, error) {
	path := filepath.Join(out, output.CaptureFile)
	rec := &Record{}
	err := strictjson.ReadFile(path, rec)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && rec.Scene == "" {
		err = errors.New("it names no capture")
	}
	if err != nil {
		return nil, fault.WithHint(fmt.Errorf("read %s: %w: %w", path, fault.ErrData, fault.Pathless(err)),
			"train writes this file; remove it and give its settings as flags: eval needs "+fault.Setting("capture")+
				" SCENE, and all "+fault.Setting("background")+" unless that was black")
	}
	return rec, nil
}

// OwnFolder is where a run has the scene that it made of photos or a video.
const OwnFolder = "capture"

// Places in the folder of a scene that vksplat capture makes.
const (
	CaptureList      = ".capture-files.json" // what it wrote there; see output.Written
	ComponentsFolder = "components"          // a model for each part of the photos that hang together
	NotesFile        = "notes.json"          // there, if it found the cameras itself
	MoreFolder       = "more"                // there if it added photos to a model
)

// Place is where the photos of the run in out are now: where they were or, if that is gone, in out itself. A farm's
// result has a name in place of a path, which says nothing of this machine.
func (rec *Source) Place(out string) (string, error) {
	if _, err := os.Stat(rec.Scene); filepath.IsAbs(rec.Scene) && !errors.Is(err, os.ErrNotExist) {
		return rec.Scene, nil // what is wrong with it else is said when it is read
	}
	if own := filepath.Join(out, OwnFolder); filepath.Base(rec.Scene) == OwnFolder && output.IsFolder(own) {
		return own, nil
	}
	return "", &fault.Error{Op: "open capture", Path: rec.Scene, Err: errors.New("it is no longer where the run found " +
		"it"),
		Hint: "say where the photos of " + out + " are now: " + fault.Setting("capture") + " SCENE"}
}

// CamerasIn is the value of Options.Cameras for the cameras of a record in a folder.
func (rec *Source) CamerasIn(dir string) string {
	if rec.Cameras == "" {
		return CamerasGiven
	}
	return filepath.Join(dir, filepath.FromSlash(rec.Cameras))
}

// Options brings load to what is recorded in a folder, where no flag says otherwise.
func (rec *Source) Options(load *Options, dir string, given func(flag string) bool) {
	Adopt(given, "cameras", &load.Cameras, rec.CamerasIn(dir))
	Adopt(given, "format", &load.Format, rec.Format)
	Adopt(given, "images", &load.Images, rec.Images)
	Adopt(given, "downscale", &load.Downscale, DownscaleFlag(rec.Downscale))
	Adopt(given, "full-photos", &load.Full, rec.FullPhotos)
	Adopt(given, "model", &load.Model, modelFlag(rec.Model))
	Adopt(given, "masks", &load.Masks, rec.Masks)
	Adopt(given, "invert-masks", &load.Inverted, rec.InvertMasks)
	Adopt(given, "grow-masks", &load.GrowMasks, rec.GrowMasks)
	Adopt(given, "undo-applied-transform", &load.Undo, rec.UndoApplied)
}

// Adopt gives an option the value that a run was begun with, unless the call gives it.
func Adopt[T any](given func(flag string) bool, flag string, option *T, was T) {
	if !given(flag) {
		*option = was
	}
}

// Describes tells whether a run was trained on the photos of c, which was read at a path: that of the record, or
// another to which they have moved.
func (rec *Record) Describes(c *scene.Capture, path string) bool {
	if rec.Scene == output.Absolute(path) {
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
