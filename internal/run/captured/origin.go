package captured

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// maxOrigin bounds an origin that is read: beyond it float64 resolves no tenth of a unit.
const maxOrigin = 1e15

// OriginRecord is the content of originFile: written = capture - origin.
type OriginRecord struct {
	Origin [3]float64 `json:"origin"`
}

// Moved returns copies of the cameras of c, and its points as files hold them,
// with the origin subtracted.
func Moved(c *scene.Capture, origin [3]float64) ([]scene.Camera, []ply.FilePoint) {
	if origin == [3]float64{} {
		return slices.Clone(c.Cameras), ply.FilePoints(c, origin) // without rounding
	}
	return Shifted(c.Cameras, origin), ply.FilePoints(c, origin)
}

// Shifted returns copies of the cameras with the origin subtracted.
func Shifted(cams []scene.Camera, origin [3]float64) []scene.Camera {
	out := make([]scene.Camera, len(cams))
	for i, c := range cams {
		out[i] = scene.Identity().ToCapture(c, origin)
	}
	return out
}

// OfModel says whether a file of cameras is a model's own, in its frame.
func OfModel(file string) bool { return strings.HasSuffix(strings.ToLower(file), output.CamerasSuffix) }

// ReadOrigin returns the origin recorded beside a cameras.json, or otherwise where there is no record.
func ReadOrigin(file string, otherwise [3]float64) ([3]float64, error) {
	if OfModel(file) {
		return otherwise, nil
	}
	path := filepath.Join(filepath.Dir(file), output.OriginFile)
	var record OriginRecord
	err := strictjson.ReadFile(path, &record)
	if errors.Is(err, os.ErrNotExist) {
		return otherwise, nil
	}
	for _, x := range record.Origin {
		if err == nil && math.Abs(x) > maxOrigin {
			err = fmt.Errorf("the origin %g is beyond %g", x, float64(maxOrigin))
		}
	}
	if err != nil {
		return otherwise, fault.WithHint(fmt.Errorf("read %s: %w: %w", path, fault.ErrData, fault.Pathless(err)),
			"train writes this file; remove it if cameras.json needs no origin")
	}
	return record.Origin, nil
}
