package evaluate

import (
	"fmt"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/inria"
)

// Cameras count as others where they are farther away than this share of the median distance from their mean, or turned
// by more than otherTurn radians.
const otherPlace, otherTurn = 0.005, 0.005

// warnOtherCameras warns where the views' cameras of the capture, which is in its own frame, are not those that the
// model has beside it: it was trained with these, and is drawn from other places than the photos were taken at.
func (j *Job) warnOtherCameras(views []int) {
	file := captured.FindCameras(j.file, captured.CamerasBeside[:1], false)
	if file == "" {
		return
	}
	cams, _, err := inria.ReadCameras(file)
	if err != nil {
		return // it says where a model is drawn from, which nothing here goes by
	}
	beside := make(map[string]*scene.Camera, len(cams))
	for i := range cams {
		beside[cams[i].Name] = &cams[i]
	}
	moved := *j.capture
	moved.Cameras, moved.Points = slices.Clone(moved.Cameras), nil
	moved.Normalise() // in which the median distance is 1
	size := otherPlace / moved.Frame.Scale
	var names []string
	for _, i := range views {
		c := &j.capture.Cameras[i]
		was := beside[c.Name]
		if was == nil {
			continue
		}
		turn := geom.VectorFromRotation(geom.Product(c.R, geom.Transposed(was.R)))
		if away := geom.Sub(geom.Sub(c.Center(), j.origin), was.Center()); geom.Length(away) > size ||
			geom.Length(turn) > otherTurn {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		j.console.Warn(scene.Warning{Count: len(names), Names: scene.FirstNames(names), Text: fmt.Sprintf(
			"%d of %d cameras are not where %s has them, which the model was trained with, so that scores say less of it "+
				"(leave out %s, or give the cameras that train left in OUT)", len(names), len(views), file,
			fault.Setting("cameras"))}.String())
	}
}
