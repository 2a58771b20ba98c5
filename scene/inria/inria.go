package inria

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// inriaCamera is an entry of cameras.json. Position and rotation are camera to
// world, OpenCV axes; rotation is a list of rows. INRIA's file has no principal
// point and no model: cx, cy (pixels, pixel centres at +0.5) are added always,
// camera_model where it is not "pinhole"; readers that do not know them look past
// them.
type inriaCamera struct {
	ID       int           `json:"id"`
	Name     string        `json:"img_name"`
	Width    int           `json:"width"`
	Height   int           `json:"height"`
	Position [3]float64    `json:"position"`
	Rotation [3][3]float64 `json:"rotation"`
	Fy       float64       `json:"fy"`
	Fx       float64       `json:"fx"`
	Cx       *float64      `json:"cx,omitempty"`
	Cy       *float64      `json:"cy,omitempty"`
	Model    string        `json:"camera_model,omitempty"`
	Split    string        `json:"split,omitempty"`
}

// What cameras.json says of photos where some were held out.
const (
	SplitTrain = "train"
	SplitTest  = "test"
)

// WriteCameras writes cameras.json in INRIA's form. The cameras must be in the
// frame of the files (see Frame.ToCapture); ids count from 0 in the order given.
// test are the indices of those that are held out.
func WriteCameras(path string, cameras []scene.Camera, test ...int) error {
	entries := make([]inriaCamera, len(cameras))
	for i := range cameras {
		entries[i] = toINRIA(i, &cameras[i])
		if len(test) > 0 {
			entries[i].Split = SplitTrain
		}
	}
	for _, i := range test {
		entries[i].Split = SplitTest
	}
	return atomicfile.WriteJSON(path, entries, "")
}

func toINRIA(id int, c *scene.Camera) inriaCamera {
	e := inriaCamera{ID: id, Name: c.Name, Width: c.Width, Height: c.Height,
		Position: c.Center(), Fy: c.Fy, Fx: c.Fx, Cx: &c.Cx, Cy: &c.Cy}
	for i := range 3 {
		for j := range 3 {
			e.Rotation[i][j] = c.R[3*j+i]
		}
	}
	if c.Model == scene.Fisheye {
		e.Model = scene.Fisheye.String()
	}
	return e
}

// CamerasInfo says what ReadCameras had to assume.
type CamerasInfo struct {
	Centred int             // cameras without cx, cy: the principal point was put in the middle of the image
	HeldOut map[string]bool // names of those that were held out; nil where the file does not say
}

// MaxImageSide bounds the sizes a cameras.json may ask for, in pixels.
const MaxImageSide = 1 << 15

// ReadCameras reads a cameras.json of this program or of INRIA's. Name is
// img_name, Path is empty, the frame is that of the file, R is made exactly
// orthonormal. Errors are of kind fault.ErrData and name the entry.
func ReadCameras(path string) ([]scene.Camera, CamerasInfo, error) {
	var info CamerasInfo
	cameras, err := readCameras(path, &info)
	if err != nil {
		hint := "a list of {id, img_name, width, height, position, rotation, fx, fy} is expected, as INRIA's trainer " +
			"writes it"
		if errors.Is(err, os.ErrNotExist) {
			hint = "check the spelling of the path"
		}
		return nil, CamerasInfo{}, &fault.Error{Op: "read cameras", Path: path, Err: fault.TrimPath(err), Hint: hint}
	}
	return cameras, info, nil
}

func readCameras(path string, info *CamerasInfo) ([]scene.Camera, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseCameras(data, info)
}

// ParseCameras reads a cameras.json without looking at any other file.
func ParseCameras(data []byte, info *CamerasInfo) ([]scene.Camera, error) {
	entries, err := strictjson.DecodeList(data)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("the list is empty")
	}
	seen := make(map[string]int, len(entries))
	cameras := make([]scene.Camera, len(entries))
	for i, raw := range entries {
		f, err := strictjson.Element(raw, "entry", i)
		if err != nil {
			return nil, err
		}
		e, err := parseINRIA(f)
		if err != nil {
			return nil, err
		}
		if cameras[i], err = fromINRIA(&e); err != nil {
			return nil, fmt.Errorf("entry %d (%q): %w", i, e.Name, err)
		}
		if j, ok := seen[e.Name]; ok {
			return nil, fmt.Errorf("entries %d and %d are both named %q", j, i, e.Name)
		}
		seen[e.Name] = i
		if e.Split != "" && info.HeldOut == nil {
			info.HeldOut = map[string]bool{}
		}
		if e.Split == SplitTest {
			info.HeldOut[e.Name] = true
		}
		if e.Cx == nil {
			info.Centred++
		}
	}
	return cameras, nil
}

// parseINRIA reads an entry of cameras.json. The id is not read: INRIA's own readers go by img_name.
func parseINRIA(f strictjson.Object) (e inriaCamera, err error) {
	for _, m := range []struct {
		name string
		dst  any
		want string
	}{
		{"img_name", &e.Name, "a text"}, {"width", &e.Width, "a whole number"}, {"height", &e.Height, "a whole number"},
		{"fx", &e.Fx, "a number"},
		{"fy", &e.Fy, "a number"}, {"cx", &e.Cx, "a number"}, {"cy", &e.Cy, "a number"},
		{"camera_model", &e.Model, "a text"}, {"split", &e.Split, "a text"},
	} {
		if err := f.Into(m.name, m.dst, m.want); err != nil {
			return e, err
		}
	}
	for _, name := range []string{"img_name", "width", "height", "fx", "fy", "position", "rotation"} {
		if !f.Has(name) {
			return e, f.Errorf("there is no field %s", name)
		}
	}
	if err := f.Numbers("position", e.Position[:]); err != nil {
		return e, err
	}
	turn, err := Rotation(f)
	for i := range e.Rotation {
		copy(e.Rotation[i][:], turn[3*i:])
	}
	return e, err
}

func fromINRIA(e *inriaCamera) (scene.Camera, error) {
	c := scene.Camera{Name: e.Name, Width: e.Width, Height: e.Height, Fx: e.Fx, Fy: e.Fy,
		Cx: float64(e.Width) / 2, Cy: float64(e.Height) / 2}
	// Pictures are named after the camera: a name must not lead out of the
	// folder that they are written to.
	if !filepath.IsLocal(filepath.FromSlash(e.Name)) {
		return c, errors.New("img_name is not a relative path")
	}
	if err := usableName(e.Name); err != nil {
		return c, err
	}
	if min(e.Width, e.Height) < 1 || max(e.Width, e.Height) > MaxImageSide {
		return c, fmt.Errorf("size %dx%d is not within 1 to %d pixels", e.Width, e.Height, MaxImageSide)
	}
	if (e.Cx == nil) != (e.Cy == nil) {
		return c, errors.New("one of cx, cy is missing")
	}
	if e.Cx != nil {
		c.Cx, c.Cy = *e.Cx, *e.Cy
	}
	if !(e.Fx > 0) || !(e.Fy > 0) {
		return c, fmt.Errorf("focal lengths %v, %v are not positive", e.Fx, e.Fy)
	}
	// Sums and products of these must stay finite.
	if !scene.InRange(e.Position) || !scene.InRange([3]float64{e.Fx, c.Cx, 0}) ||
		!scene.InRange([3]float64{e.Fy, c.Cy, 0}) {
		return c, fmt.Errorf("position %v, focal lengths %v, %v or principal point %v, %v beyond %g", e.Position, e.Fx,
			e.Fy, c.Cx, c.Cy, float64(scene.MaxCoordinate))
	}
	switch e.Model {
	case "", scene.Pinhole.String():
		c.Model = scene.Pinhole
	case scene.Fisheye.String():
		c.Model = scene.Fisheye
	default:
		return c, fmt.Errorf("camera_model %q is not %s or %s", e.Model, scene.Pinhole, scene.Fisheye)
	}
	for i := range 3 {
		for j := range 3 {
			c.R[3*i+j] = e.Rotation[j][i]
		}
	}
	c.T = geom.TranslationOf(c.R, e.Position)
	return c, nil
}

// maxNameBytes bounds each part of a path on all common file systems.
const maxNameBytes = 255

// usableName checks that pictures can be named after a camera: with .png in the
// place of the photo's extension.
func usableName(name string) error {
	if strings.ContainsRune(name, 0) {
		return errors.New("img_name holds a zero byte")
	}
	parts := strings.Split(filepath.ToSlash(name), "/")
	last := parts[len(parts)-1]
	parts = append(parts, strings.TrimSuffix(last, filepath.Ext(last))+".png")
	for _, p := range parts {
		if len(p) > maxNameBytes {
			return fmt.Errorf("img_name has a part of %d bytes, file systems take %d", len(p), maxNameBytes)
		}
	}
	return nil
}

// Rotation reads the field rotation, three rows, and returns the rotation nearest to it. A matrix that is off one by
// more than the rounding of a text file, or a mirror, is an error.
func Rotation(f strictjson.Object) (turn [9]float64, err error) {
	const tolerance = 1e-3
	rows, err := f.List("rotation")
	if err == nil && len(rows) != 3 {
		err = f.Errorf("field rotation has %d rows, 3 are expected", len(rows))
	}
	for i := 0; i < len(rows) && err == nil; i++ {
		row := strictjson.Object{Members: map[string]json.RawMessage{"rotation": rows[i]},
			Where: fmt.Sprintf("%srow %d of ", f.Where, i)}
		err = row.Numbers("rotation", turn[3*i:3*i+3])
	}
	if err != nil {
		return turn, err
	}
	turn, scale, skew, err := geom.NearestRotation(turn)
	if err == nil && !(max(skew, math.Abs(scale-1)) <= tolerance) {
		err = fmt.Errorf("the matrix is not orthonormal: off by %.2g", max(skew, math.Abs(scale-1)))
	}
	if err != nil {
		return turn, f.Errorf("field rotation: %v", err)
	}
	return turn, nil
}

// CfgArgs is the part of INRIA's cfg_args that viewers and scripts read.
type CfgArgs struct {
	SHDegree        int
	SourcePath      string // the capture
	ModelPath       string // the output folder
	Images          string // folder of photos in the capture, usually "images"
	Resolution      int    // -r: -1 for auto, or 1, 2, 4, 8
	WhiteBackground bool
	Eval            bool
}

// WriteCfgArgs writes cfg_args: the Python expression Namespace(...) that
// INRIA's scripts evaluate and SIBR searches for its keys.
func WriteCfgArgs(path string, a CfgArgs) error {
	text := fmt.Sprintf("Namespace(sh_degree=%d, source_path=%s, model_path=%s, images=%s, depths='', resolution=%d, "+
		"white_background=%s, train_test_exp=False, data_device='cuda', eval=%s)",
		a.SHDegree, pythonString(a.SourcePath), pythonString(a.ModelPath), pythonString(a.Images), a.Resolution,
		pythonBool(a.WhiteBackground), pythonBool(a.Eval))
	return atomicfile.WriteText(path, text)
}

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// pythonString quotes a string as a Python literal in single quotes. Bytes that
// are not text become the code points surrogateescape gives them, as in Python.
func pythonString(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\uFFFD' && s[i] >= 0x80 && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\udc%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
