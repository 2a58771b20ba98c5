package trajectory

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/inria"
	"vksplat/scene/transforms"
)

// File is a way through a scene as a file has it.
type File struct {
	Frames  []scene.Camera // one for each picture; nil where there are keyframes
	Keys    []Keyframe     // to fly through
	FPS     float64        // pictures a second, 0 where the file does not say
	OfModel bool           // the frame is that of the model's file; otherwise the capture's own
}

// maxTrajectory bounds the frames that a file asks for.
const maxTrajectory = 1 << 20

const opTrajectory = "read trajectory"

// Read reads a way through a scene: keyframes in this program's JSON (docs/render.md), a cameras.json, nerfstudio's
// camera_path.json, a transforms.json, or COLMAP's images.bin or images.txt with the cameras beside it. What a file
// does not say of the lens is as in like. With the file dataparser, nerfstudio's dataparser_transforms.json, the poses
// are brought back from nerfstudio's frame to the capture's.
func Read(path string, like scene.Camera, dataparser string) (*File, error) {
	t, err := readTrajectory(path, like)
	if err != nil || dataparser == "" {
		return t, err
	}
	data, err := os.ReadFile(dataparser)
	var back func(scene.Camera) scene.Camera
	if err == nil {
		back, err = parseDataparser(data)
	}
	if err != nil {
		return nil, &fault.Error{Op: "read dataparser transforms", Path: dataparser, Err: fault.TrimPath(err),
			Kind: fault.ReadKind(err),
			Hint: "give the dataparser_transforms.json of the nerfstudio run that the path was made with"}
	}
	for i := range t.Frames {
		t.Frames[i] = back(t.Frames[i])
	}
	for i := range t.Keys {
		t.Keys[i].Camera = back(t.Keys[i].Camera)
	}
	return t, nil
}

func readTrajectory(path string, like scene.Camera) (*File, error) {
	name := strings.ToLower(filepath.Base(path))
	for _, model := range []*colmap.Form{&colmap.BinaryModel, &colmap.TextModel} {
		if name == "images"+model.Ext {
			return colmapTrajectory(path, model)
		}
	}
	data, err := fault.ReadFile(path, math.MaxInt64)
	if err != nil {
		return nil, &fault.Error{Op: opTrajectory, Path: path, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: "give " + strings.Join(Names(), ", ") + " or a file: see docs/render.md"}
	}
	t, err := parseTrajectory(data, like)
	if err != nil {
		return nil, &fault.Error{Op: opTrajectory, Path: path, Err: err,
			Hint: "keyframes as docs/render.md describes them, a cameras.json, nerfstudio's camera_path.json, a " +
				"transforms.json or COLMAP's images.bin is expected"}
	}
	return t, nil
}

// colmapTrajectory takes the images of a model, sorted by name, as frames.
func colmapTrajectory(path string, f *colmap.Form) (*File, error) {
	records, err := f.Records(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	t := &File{}
	for _, r := range records {
		if err := t.addRecord(r, 0, 0); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// addRecord adds a photo's view, or views, as it would be trained on at full size; width and height are the photo's
// where the calibration does not know them.
func (t *File) addRecord(r scene.Record, width, height int) error {
	if err := r.Unusable(); err != nil {
		return err
	}
	lens := r.Lens.Calibration(width, height)
	views, err := lens.Views(r.Cam, lens.Width, lens.Height, 1)
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
func parseTrajectory(data []byte, like scene.Camera) (*File, error) {
	if bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), []byte("[")) {
		cams, err := inria.ParseCameras(data, &inria.CamerasInfo{})
		return &File{Frames: cams, OfModel: true}, err
	}
	top, err := strictjson.DecodeObject(strictjson.Finite(data)) // so that errors name the field
	if err != nil {
		return nil, err
	}
	switch {
	case top.Has("camera_path"): // nerfstudio's have keyframes, too, of another form
		return parseCameraPath(top, like)
	case top.Has("keyframes"):
		return parseKeyframes(top, like)
	case top.Has("frames"):
		return transformsTrajectory(data, like)
	}
	return nil, errors.New("there is none of the fields keyframes, camera_path and frames")
}

// transformsTrajectory takes the frames of a transforms.json in their order.
func transformsTrajectory(data []byte, like scene.Camera) (*File, error) {
	parsed, err := transforms.Parse(data)
	if err != nil {
		return nil, err
	}
	t := &File{}
	for i, f := range parsed.Frames {
		if f.Lens.Beyond != "" {
			return nil, fmt.Errorf("frame %d: field %s is not a finite number, or beyond %g", i, f.Lens.Beyond,
				scene.MaxCoordinate)
		}
		width, height := like.Width, like.Height
		if f.Lens.Width > 0 {
			width, height = f.Lens.Width, f.Lens.Height
		}
		if err := t.addRecord(scene.Record{Cam: scene.Camera{Name: transforms.CleanSlashes(f.File), R: f.Pose.R,
			T: f.Pose.T}, Lens: f.Lens, Bad: f.Bad}, width, height); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseKeyframes reads this program's own form.
func parseKeyframes(top strictjson.Object, like scene.Camera) (*File, error) {
	list, err := top.List("keyframes")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || len(list) > maxTrajectory {
		return nil, fmt.Errorf("field keyframes has %d entries, 1 to %d are allowed", len(list), maxTrajectory)
	}
	if like, err = sized(top, "width", "height", like); err != nil {
		return nil, err
	}
	t := &File{Keys: make([]Keyframe, len(list)), OfModel: true}
	if t.FPS, err = rate(top); err != nil {
		return nil, err
	}
	for i, raw := range list {
		f, err := strictjson.Element(raw, "keyframe", i)
		if err != nil {
			return nil, err
		}
		k := &t.Keys[i]
		if k.Time, err = f.Number("time"); err != nil {
			return nil, err
		}
		if !f.Has("time") {
			k.Time = float64(i)
		}
		if !geom.Finite(k.Time) || math.Abs(k.Time) > maxTrajectory || i > 0 && !(k.Time > t.Keys[i-1].Time) {
			return nil, f.Errorf("field time is %g, increasing times in seconds are expected", k.Time)
		}
		if k.Camera, err = parseKeyCamera(f, like); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseKeyCamera reads a keyframe's pose, camera to world with OpenCV's axes as in cameras.json, and its field of view.
func parseKeyCamera(f strictjson.Object, like scene.Camera) (scene.Camera, error) {
	c := asPinhole(like)
	c.Name = ""
	var p [3]float64
	if err := f.Numbers("position", p[:]); err != nil {
		return c, err
	}
	if !scene.InRange(p) {
		return c, f.Errorf("field position is %g", p)
	}
	turn, err := inria.Rotation(f)
	if err != nil {
		return c, err
	}
	c.R = geom.Transposed(turn)
	c.T = geom.TranslationOf(c.R, p)
	switch {
	case f.Has("focal"):
		focal, err := f.Number("focal")
		if err != nil {
			return c, err
		}
		if !(focal > 0) || focal > scene.MaxCoordinate {
			return c, f.Errorf("field focal is %g, pixels above 0 are expected", focal)
		}
		c.Fx, c.Fy, c.Cx, c.Cy = focal, focal, float64(c.Width)/2, float64(c.Height)/2
	case f.Has("fov"):
		return withDegrees(f, "fov", c)
	}
	return c, nil
}

// withDegrees sets the vertical field of view that a field holds in degrees.
func withDegrees(f strictjson.Object, name string, c scene.Camera) (scene.Camera, error) {
	fov, err := f.Number(name)
	if err != nil {
		return c, err
	}
	if !(fov >= MinFOV && fov <= MaxFOV) {
		return c, f.Errorf("field %s is %g, %g to %g degrees are expected", name, fov, MinFOV, MaxFOV)
	}
	return WithFOV(c, fov*math.Pi/180), nil
}

// MinFOV and MaxFOV bound vertical fields of view, in degrees.
const (
	MinFOV = 0.1
	MaxFOV = 170.0
)

// sized reads the size of pictures, if the file has one, and gives a camera like like of that size.
func sized(f strictjson.Object, width, height string, like scene.Camera) (scene.Camera, error) {
	if f.Has(width) != f.Has(height) {
		return like, f.Errorf("one of the fields %s and %s is missing", width, height)
	}
	if !f.Has(width) {
		return like, nil
	}
	w, err := f.Side(width)
	if err != nil {
		return like, err
	}
	h, err := f.Side(height)
	if err != nil {
		return like, err
	}
	if max(w, h) > inria.MaxImageSide {
		return like, f.Errorf("a size of %dx%d is not within 1 to %d pixels", w, h, inria.MaxImageSide)
	}
	return Framed(like, w, h), nil
}

// rate reads fps.
func rate(f strictjson.Object) (float64, error) {
	fps, err := f.Number("fps")
	if err == nil && f.Has("fps") && !(fps > 0 && fps <= 1000) {
		err = f.Errorf("field fps is %g, a number above 0 and up to 1000 is expected", fps)
	}
	return fps, err
}

// parseCameraPath reads nerfstudio's camera_path.json: a matrix for every frame, camera to world with OpenGL's axes,
// and a vertical field of view in degrees.
func parseCameraPath(top strictjson.Object, like scene.Camera) (*File, error) {
	list, err := top.List("camera_path")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || len(list) > maxTrajectory {
		return nil, fmt.Errorf("field camera_path has %d entries, 1 to %d are allowed", len(list), maxTrajectory)
	}
	kind := "perspective"
	if err := top.Into("camera_type", &kind, "a text"); err != nil {
		return nil, err
	}
	if !strings.EqualFold(kind, "perspective") {
		return nil, fmt.Errorf("field camera_type is %s, perspective is expected; panoramas are made with %s equirect",
			strictjson.Shown([]byte(kind)), fault.Setting("projection"))
	}
	if like, err = sized(top, "render_width", "render_height", like); err != nil {
		return nil, err
	}
	t := &File{Frames: make([]scene.Camera, len(list))}
	if t.FPS, err = rate(top); err != nil {
		return nil, err
	}
	for i, raw := range list {
		f, err := strictjson.Element(raw, "entry", i)
		if err != nil {
			return nil, err
		}
		if t.Frames[i], err = parsePathCamera(f, like); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func parsePathCamera(f strictjson.Object, like scene.Camera) (scene.Camera, error) {
	c := asPinhole(like)
	c.Name = ""
	var m [16]float64
	if err := f.Numbers("camera_to_world", m[:]); err != nil {
		return c, err
	}
	p, err := transforms.PoseFromOpenGL([12]float64(m[:12]))
	if err != nil {
		return c, f.Errorf("field camera_to_world: %v", err)
	}
	c.R, c.T = p.R, p.T
	if f.Has("fov") {
		return withDegrees(f, "fov", c)
	}
	return c, nil
}

// parseDataparser reads what nerfstudio did to the poses of a capture, x' = scale (transform [x 1]), and gives what
// undoes it.
func parseDataparser(data []byte) (func(scene.Camera) scene.Camera, error) {
	top, err := strictjson.DecodeObject(data)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"transform", "scale"} {
		if !top.Has(name) {
			return nil, fmt.Errorf("there is no field %s", name)
		}
	}
	m, err := top.Matrix("transform")
	if err != nil {
		return nil, err
	}
	scale, err := top.Number("scale")
	if err != nil {
		return nil, err
	}
	undo, err := transforms.Undo(m, scale)
	if err != nil {
		return nil, fmt.Errorf("field transform: %w", err)
	}
	if !(undo.Scale() > 1e-12) || !scene.InRange([3]float64{scale, 1 / scale, 0}) ||
		!scene.InRange([3]float64{m[3], m[7], m[11]}) {
		return nil, fmt.Errorf("field scale is %g, it must be positive", scale)
	}
	return func(c scene.Camera) scene.Camera {
		undo.Camera(&c)
		return c
	}, nil
}
