package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// originFile says beside cameras.json what was subtracted from its coordinates.
const originFile = "origin.json"

// maxOrigin bounds an origin that is read: beyond it float64 resolves no tenth of a unit.
const maxOrigin = 1e15

// originRecord is the content of originFile: written = capture - origin.
type originRecord struct {
	Origin [3]float64 `json:"origin"`
}

// moved returns copies of the cameras of c, and its points as files hold them,
// with the origin subtracted.
func moved(c *scene.Capture, origin [3]float64) ([]scene.Camera, []ply.FilePoint) {
	if origin == [3]float64{} {
		return slices.Clone(c.Cameras), ply.FilePoints(c, origin) // without rounding
	}
	return shifted(c.Cameras, origin), ply.FilePoints(c, origin)
}

// shifted returns copies of the cameras with the origin subtracted.
func shifted(cams []scene.Camera, origin [3]float64) []scene.Camera {
	out := make([]scene.Camera, len(cams))
	for i, c := range cams {
		out[i] = scene.Identity().ToCapture(c, origin)
	}
	return out
}

// readOrigin returns the origin recorded in the folder of a cameras.json, or
// otherwise where there is no record.
func readOrigin(dir string, otherwise [3]float64) ([3]float64, error) {
	path := filepath.Join(dir, originFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return otherwise, nil
	}
	var record originRecord
	if err == nil {
		err = strictjson.JSONError(json.Unmarshal(data, &record))
	}
	for _, x := range record.Origin {
		if err == nil && math.Abs(x) > maxOrigin {
			err = fmt.Errorf("the origin %g is beyond %g", x, float64(maxOrigin))
		}
	}
	if err != nil {
		return otherwise, &hintedError{err: fmt.Errorf("read %s: %w: %w", path, fault.ErrData, pathless(err)), hint: "train writes this file; remove it if cameras.json needs no origin"}
	}
	return record.Origin, nil
}
