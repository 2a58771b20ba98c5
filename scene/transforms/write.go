package transforms

import (
	"encoding/json"
	"fmt"
	"path"

	"vksplat/internal/atomicfile"
	"vksplat/internal/geom"
	"vksplat/scene"
)

// readoutSeconds is the time that Write says photos of cameras that moved were read out in, a phone's.
const readoutSeconds = 0.03

// writtenLens is what transforms.json calls a lens and its parameters after the principal point.
type writtenLens struct {
	name   string
	params []string
}

var writtenLenses = map[scene.LensModel]writtenLens{
	scene.LensPinhole:       {"PINHOLE", nil},
	scene.LensOpenCV:        {"OPENCV", []string{"k1", "k2", "p1", "p2"}},
	scene.LensOpenCVFisheye: {"OPENCV_FISHEYE", []string{"k1", "k2", "k3", "k4"}},
	scene.LensFullOpenCV:    {"FULL_OPENCV", []string{"k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"}},
}

// Write writes cameras in the dialect of nerfstudio, with the velocities of Spectacular AI where cameras moved. Photos
// are those in folder, points the file of that name, both as seen from the file.
func Write(file, folder, points string, cams []scene.Camera) error {
	top := map[string]any{"ply_file_path": points, "rolling_shutter_time": readoutSeconds}
	frames := make([]map[string]any, len(cams))
	for i := range cams {
		var err error
		if frames[i], err = writtenFrame(&cams[i]); err != nil {
			return fmt.Errorf("write %s: photo %s: %w", path.Base(file), cams[i].Name, err)
		}
		frames[i]["file_path"] = path.Join(folder, cams[i].Name)
	}
	top["frames"] = frames
	text, err := json.MarshalIndent(top, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path.Base(file), err)
	}
	return atomicfile.WriteText(file, append(text, '\n'))
}

func writtenFrame(c *scene.Camera) (map[string]any, error) {
	k := scene.Calibration{Model: scene.LensPinhole, Width: c.Width, Height: c.Height,
		Params: []float64{c.Fx, c.Fy, c.Cx, c.Cy}}
	if c.Lens != nil {
		k = c.Lens.Calibration
	}
	lens, ok := writtenLenses[k.Model]
	if !ok {
		return nil, fmt.Errorf("there is no name for the lens model %s", k.Model)
	}
	f := map[string]any{"camera_model": lens.name, "w": k.Width, "h": k.Height, "fl_x": k.Params[0],
		"fl_y": k.Params[1], "cx": k.Params[2], "cy": k.Params[3]}
	for i, name := range lens.params {
		f[name] = k.Params[4+i]
	}
	// Rows of R are the camera's axes; y and z change sign.
	r, at := c.R, c.Center()
	rows := [4][4]float64{3: {3: 1}}
	for i := range 3 {
		rows[i] = [4]float64{r[i], -r[3+i], -r[6+i], at[i]}
	}
	f["transform_matrix"] = rows
	if c.Moved() {
		for name, v := range map[string][3]float64{
			"camera_linear_velocity": c.Motion.Move, "camera_angular_velocity": c.Motion.Turn,
		} {
			v = geom.Scale(v, 1/readoutSeconds)
			f[name] = [3]float64{v[0], -v[1], -v[2]}
		}
	}
	return f, nil
}
