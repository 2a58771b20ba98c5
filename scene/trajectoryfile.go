package scene

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// TrajectoryFile is a way through a scene as a file has it.
type TrajectoryFile struct {
	Frames  []Camera   // one for each picture; nil where there are keyframes
	Keys    []Keyframe // to fly through
	FPS     float64    // pictures a second, 0 where the file does not say
	OfModel bool       // the frame is that of the model's file; otherwise the capture's own
}

// maxTrajectory bounds the frames that a file asks for.
const maxTrajectory = 1 << 20

const opTrajectory = "read trajectory"

// ReadTrajectory reads a way through a scene: keyframes in this program's JSON (docs/render.md), a cameras.json, nerfstudio's camera_path.json, a
// transforms.json, or COLMAP's images.bin or images.txt with the cameras beside it. What a file does not say of the lens is as in like. With the file
// dataparser, nerfstudio's dataparser_transforms.json, the poses are brought back from nerfstudio's frame to the capture's.
func ReadTrajectory(path string, like Camera, dataparser string) (*TrajectoryFile, error) {
	t, err := readTrajectory(path, like)
	if err != nil || dataparser == "" {
		return t, err
	}
	data, err := os.ReadFile(dataparser)
	var back func(Camera) Camera
	if err == nil {
		back, err = parseDataparser(data)
	}
	if err != nil {
		return nil, &Error{Op: "read dataparser transforms", Path: dataparser, Err: trimPath(err), Kind: readKind(err), Hint: "give the dataparser_transforms.json of the nerfstudio run that the path was made with"}
	}
	for i := range t.Frames {
		t.Frames[i] = back(t.Frames[i])
	}
	for i := range t.Keys {
		t.Keys[i].Camera = back(t.Keys[i].Camera)
	}
	return t, nil
}

func readTrajectory(path string, like Camera) (*TrajectoryFile, error) {
	name := strings.ToLower(filepath.Base(path))
	for _, model := range []*colmapFiles{&binaryModel, &textModel} {
		if name == "images"+model.ext {
			return colmapTrajectory(path, model)
		}
	}
	err := regular(path)
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &Error{Op: opTrajectory, Path: path, Err: trimPath(err), Kind: readKind(err), Hint: "give " + strings.Join(Trajectories(), ", ") + " or a file: see docs/render.md"}
	}
	t, err := parseTrajectory(data, like)
	if err != nil {
		return nil, &Error{Op: opTrajectory, Path: path, Err: err, Hint: "keyframes as docs/render.md describes them, a cameras.json, nerfstudio's camera_path.json, a transforms.json or COLMAP's images.bin is expected"}
	}
	return t, nil
}

// colmapTrajectory takes the images of a model, sorted by name, as frames.
func colmapTrajectory(path string, f *colmapFiles) (*TrajectoryFile, error) {
	var cameras map[uint32]colmapCamera
	var views []colmapImage
	err := f.read(filepath.Join(filepath.Dir(path), "cameras"+f.ext), func(r io.Reader) (err error) {
		cameras, err = f.cameras(r)
		return err
	})
	if err == nil {
		err = f.read(path, func(r io.Reader) (err error) {
			views, err = f.images(r)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	records, err := colmapRecords(path, cameras, views)
	if err != nil {
		return nil, err
	}
	t := &TrajectoryFile{}
	for _, r := range records {
		if err := t.addRecord(r, 0, 0); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// addRecord adds a photo's view, or views, as it would be trained on at full size; width and height are the photo's where the calibration does not know them.
func (t *TrajectoryFile) addRecord(r record, width, height int) error {
	if r.bad != nil {
		return r.bad
	}
	lens := r.lens.calibration(width, height)
	views, err := lens.Views(r.cam, lens.Width, lens.Height, 1)
	if err != nil {
		return err
	}
	for _, v := range views {
		v.Lens, v.Photo = nil, ""
		t.Frames = append(t.Frames, v)
	}
	return nil
}

// parseTrajectory reads any of the JSON files, without looking at another file.
func parseTrajectory(data []byte, like Camera) (*TrajectoryFile, error) {
	if bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), []byte("[")) {
		cams, err := parseCameras(data, &CamerasInfo{})
		return &TrajectoryFile{Frames: cams, OfModel: true}, err
	}
	top, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	switch {
	case top.has("camera_path"): // nerfstudio's have keyframes, too, of another form
		return parseCameraPath(top, like)
	case top.has("keyframes"):
		return parseKeyframes(top, like)
	case top.has("frames"):
		return transformsTrajectory(data, like)
	}
	return nil, errors.New("there is none of the fields keyframes, camera_path and frames")
}

// transformsTrajectory takes the frames of a transforms.json in their order.
func transformsTrajectory(data []byte, like Camera) (*TrajectoryFile, error) {
	parsed, err := parseTransforms(data)
	if err != nil {
		return nil, err
	}
	t := &TrajectoryFile{}
	for _, f := range parsed.frames {
		width, height := like.Width, like.Height
		if f.lens.width > 0 {
			width, height = f.lens.width, f.lens.height
		}
		if err := t.addRecord(record{cam: Camera{Name: cleanSlashes(f.file), R: f.pose.r, T: f.pose.t}, lens: f.lens, bad: f.bad}, width, height); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseKeyframes reads this program's own form.
func parseKeyframes(top fields, like Camera) (*TrajectoryFile, error) {
	list, err := top.list("keyframes")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || len(list) > maxTrajectory {
		return nil, fmt.Errorf("field keyframes has %d entries, 1 to %d are possible", len(list), maxTrajectory)
	}
	if like, err = sized(top, "width", "height", like); err != nil {
		return nil, err
	}
	t := &TrajectoryFile{Keys: make([]Keyframe, len(list)), OfModel: true}
	if t.FPS, err = rate(top); err != nil {
		return nil, err
	}
	for i, raw := range list {
		f, err := element(raw, "keyframe", i)
		if err != nil {
			return nil, err
		}
		k := &t.Keys[i]
		if k.Time, err = f.number("time"); err != nil {
			return nil, err
		}
		if !f.has("time") {
			k.Time = float64(i)
		}
		if !finite(k.Time) || math.Abs(k.Time) > maxTrajectory || i > 0 && !(k.Time > t.Keys[i-1].Time) {
			return nil, f.errorf("field time is %g, times in seconds that rise are expected", k.Time)
		}
		if k.Camera, err = parseKeyCamera(f, like); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseKeyCamera reads a keyframe's pose, camera to world with OpenCV's axes as in cameras.json, and its field of view.
func parseKeyCamera(f fields, like Camera) (Camera, error) {
	c := like.asPinhole()
	c.Name = ""
	var p [3]float64
	if err := f.numbers("position", p[:]); err != nil {
		return c, err
	}
	if !inRange(p) {
		return c, f.errorf("field position is %g", p)
	}
	rows, err := f.list("rotation")
	if err != nil {
		return c, err
	}
	var m [3][3]float64
	if len(rows) != len(m) {
		return c, f.errorf("field rotation has %d rows, %d are expected", len(rows), len(m))
	}
	for i := range m {
		row := fields{members: map[string]json.RawMessage{"rotation": rows[i]}, where: fmt.Sprintf("%srow %d of ", f.where, i)}
		if err := row.numbers("rotation", m[i][:]); err != nil {
			return c, err
		}
	}
	if m, err = orthonormal(m); err != nil {
		return c, f.errorf("%v", err)
	}
	for i := range 3 {
		for j := range 3 {
			c.R[3*i+j] = m[j][i]
		}
	}
	c.T = translationOf(c.R, p)
	switch {
	case f.has("focal"):
		focal, err := f.number("focal")
		if err != nil {
			return c, err
		}
		if !(focal > 0) || focal > maxCoordinate {
			return c, f.errorf("field focal is %g, pixels above 0 are expected", focal)
		}
		c.Fx, c.Fy, c.Cx, c.Cy = focal, focal, float64(c.Width)/2, float64(c.Height)/2
	case f.has("fov"):
		return withDegrees(f, "fov", c)
	}
	return c, nil
}

// withDegrees sets the vertical field of view that a field holds in degrees.
func withDegrees(f fields, name string, c Camera) (Camera, error) {
	fov, err := f.number(name)
	if err != nil {
		return c, err
	}
	if !(fov >= MinFOV && fov <= MaxFOV) {
		return c, f.errorf("field %s is %g, %g to %g degrees are expected", name, fov, MinFOV, MaxFOV)
	}
	return c.WithFOV(fov * math.Pi / 180), nil
}

// MinFOV and MaxFOV bound vertical fields of view, in degrees.
const (
	MinFOV = 0.1
	MaxFOV = 170.0
)

// sized reads the size of pictures, if the file has one, and gives a camera like like of that size.
func sized(f fields, width, height string, like Camera) (Camera, error) {
	if f.has(width) != f.has(height) {
		return like, f.errorf("one of the fields %s and %s is missing", width, height)
	}
	if !f.has(width) {
		return like, nil
	}
	w, err := f.side(width)
	if err != nil {
		return like, err
	}
	h, err := f.side(height)
	if err != nil {
		return like, err
	}
	if max(w, h) > maxImageSide {
		return like, f.errorf("a size of %dx%d is not within 1 to %d pixels", w, h, maxImageSide)
	}
	return like.Framed(w, h), nil
}

// rate reads fps.
func rate(f fields) (float64, error) {
	fps, err := f.number("fps")
	if err == nil && f.has("fps") && !(fps > 0 && fps <= 1000) {
		err = f.errorf("field fps is %g, a number above 0 and up to 1000 is expected", fps)
	}
	return fps, err
}

// parseCameraPath reads nerfstudio's camera_path.json: a matrix for every frame, camera to world with OpenGL's axes, and a vertical field of view in degrees.
func parseCameraPath(top fields, like Camera) (*TrajectoryFile, error) {
	list, err := top.list("camera_path")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || len(list) > maxTrajectory {
		return nil, fmt.Errorf("field camera_path has %d entries, 1 to %d are possible", len(list), maxTrajectory)
	}
	kind := "perspective"
	if err := top.into("camera_type", &kind, "a text"); err != nil {
		return nil, err
	}
	if !strings.EqualFold(kind, "perspective") {
		return nil, fmt.Errorf("field camera_type is %s, perspective is expected; panoramas are made with --projection equirect", shown([]byte(kind)))
	}
	if like, err = sized(top, "render_width", "render_height", like); err != nil {
		return nil, err
	}
	t := &TrajectoryFile{Frames: make([]Camera, len(list))}
	if t.FPS, err = rate(top); err != nil {
		return nil, err
	}
	for i, raw := range list {
		f, err := element(raw, "entry", i)
		if err != nil {
			return nil, err
		}
		if t.Frames[i], err = parsePathCamera(f, like); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func parsePathCamera(f fields, like Camera) (Camera, error) {
	c := like.asPinhole()
	c.Name = ""
	var m [16]float64
	if err := f.numbers("camera_to_world", m[:]); err != nil {
		return c, err
	}
	p, err := poseFromOpenGL([12]float64(m[:12]))
	if err != nil {
		return c, f.errorf("field camera_to_world: %v", err)
	}
	c.R, c.T = p.r, p.t
	if f.has("fov") {
		return withDegrees(f, "fov", c)
	}
	return c, nil
}

// parseDataparser reads what nerfstudio did to the poses of a capture, x' = scale (transform [x 1]), and gives what undoes it.
func parseDataparser(data []byte) (func(Camera) Camera, error) {
	top, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"transform", "scale"} {
		if !top.has(name) {
			return nil, fmt.Errorf("there is no field %s", name)
		}
	}
	m, err := top.matrix("transform")
	if err != nil {
		return nil, err
	}
	scale, err := top.number("scale")
	if err != nil {
		return nil, err
	}
	turn, own, _, err := nearestRotation([9]float64{m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]})
	if err != nil {
		return nil, fmt.Errorf("field transform: %w", err)
	}
	move := [3]float64{m[3], m[7], m[11]}
	if !(scale*own > 1e-12) || !inRange([3]float64{scale, 1 / scale, 0}) || !inRange(move) {
		return nil, fmt.Errorf("field scale is %g, it must be positive", scale)
	}
	back := transposed(turn)
	return func(c Camera) Camera {
		centre := rotate(back, scaled(sub(scaled(c.Center(), 1/scale), move), 1/own))
		for row := range 3 {
			v := rotate(back, [3]float64(c.R[3*row:3*row+3]))
			copy(c.R[3*row:], v[:])
		}
		c.T = translationOf(c.R, centre)
		return c
	}, nil
}
