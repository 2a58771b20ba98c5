package scene

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// translationOf returns T = -R p for a camera at p.
func translationOf(r [9]float64, p [3]float64) [3]float64 { return scaled(rotate(r, p), -1) }

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
func WriteCameras(path string, cameras []Camera, test ...int) error {
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
	return writeJSON(path, entries, "")
}

func toINRIA(id int, c *Camera) inriaCamera {
	e := inriaCamera{ID: id, Name: c.Name, Width: c.Width, Height: c.Height,
		Position: c.Center(), Fy: c.Fy, Fx: c.Fx, Cx: &c.Cx, Cy: &c.Cy}
	for i := range 3 {
		for j := range 3 {
			e.Rotation[i][j] = c.R[3*j+i]
		}
	}
	if c.Model == Fisheye {
		e.Model = Fisheye.String()
	}
	return e
}

// writeJSON writes v as JSON, one line when indent is empty.
func writeJSON(path string, v any, indent string) error {
	return WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", indent)
		return enc.Encode(v)
	})
}

// CamerasInfo says what ReadCameras had to assume.
type CamerasInfo struct {
	Centred int             // cameras without cx, cy: the principal point was put in the middle of the image
	HeldOut map[string]bool // names of those that were held out; nil where the file does not say
}

// maxImageSide bounds the sizes a cameras.json may ask for, in pixels.
const maxImageSide = 1 << 15

// ReadCameras reads a cameras.json of this program or of INRIA's. Name is
// img_name, Path is empty, the frame is that of the file, R is made exactly
// orthonormal. Errors are of kind ErrData and name the entry.
func ReadCameras(path string) ([]Camera, CamerasInfo, error) {
	var info CamerasInfo
	cameras, err := readCameras(path, &info)
	if err != nil {
		hint := "a list of {id, img_name, width, height, position, rotation, fx, fy} is expected, as INRIA's trainer writes it"
		if errors.Is(err, os.ErrNotExist) {
			hint = "check the spelling of the path"
		}
		return nil, CamerasInfo{}, &Error{Op: "read cameras", Path: path, Err: trimPath(err), Hint: hint}
	}
	return cameras, info, nil
}

func readCameras(path string, info *CamerasInfo) ([]Camera, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseCameras(data, info)
}

// parseCameras reads a cameras.json without looking at any other file.
func parseCameras(data []byte, info *CamerasInfo) ([]Camera, error) {
	entries, err := decodeList(data)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("the list is empty")
	}
	seen := make(map[string]int, len(entries))
	cameras := make([]Camera, len(entries))
	for i, raw := range entries {
		f, err := element(raw, "entry", i)
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
func parseINRIA(f fields) (e inriaCamera, err error) {
	for _, m := range []struct {
		name string
		dst  any
		want string
	}{
		{"img_name", &e.Name, "a text"}, {"width", &e.Width, "a whole number"}, {"height", &e.Height, "a whole number"}, {"fx", &e.Fx, "a number"},
		{"fy", &e.Fy, "a number"}, {"cx", &e.Cx, "a number"}, {"cy", &e.Cy, "a number"}, {"camera_model", &e.Model, "a text"}, {"split", &e.Split, "a text"},
	} {
		if err := f.into(m.name, m.dst, m.want); err != nil {
			return e, err
		}
	}
	for _, name := range []string{"img_name", "width", "height", "fx", "fy", "position", "rotation"} {
		if !f.has(name) {
			return e, f.errorf("there is no field %s", name)
		}
	}
	if err := f.numbers("position", e.Position[:]); err != nil {
		return e, err
	}
	rows, err := f.list("rotation")
	if err == nil && len(rows) != len(e.Rotation) {
		err = f.errorf("field rotation has %d rows, %d are expected", len(rows), len(e.Rotation))
	}
	for i := 0; i < len(rows) && err == nil; i++ {
		row := fields{members: map[string]json.RawMessage{"rotation": rows[i]}, where: fmt.Sprintf("%srow %d of ", f.where, i)}
		err = row.numbers("rotation", e.Rotation[i][:])
	}
	return e, err
}

func fromINRIA(e *inriaCamera) (Camera, error) {
	c := Camera{Name: e.Name, Width: e.Width, Height: e.Height, Fx: e.Fx, Fy: e.Fy,
		Cx: float64(e.Width) / 2, Cy: float64(e.Height) / 2}
	// Pictures are named after the camera: a name must not lead out of the
	// folder that they are written to.
	if !filepath.IsLocal(filepath.FromSlash(e.Name)) {
		return c, errors.New("img_name is not a relative path")
	}
	if err := usableName(e.Name); err != nil {
		return c, err
	}
	if min(e.Width, e.Height) < 1 || max(e.Width, e.Height) > maxImageSide {
		return c, fmt.Errorf("size %dx%d is not within 1 to %d pixels", e.Width, e.Height, maxImageSide)
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
	if !inRange(e.Position) || !inRange([3]float64{e.Fx, c.Cx, 0}) || !inRange([3]float64{e.Fy, c.Cy, 0}) {
		return c, fmt.Errorf("position %v, focal lengths %v, %v or principal point %v, %v beyond %g", e.Position, e.Fx, e.Fy, c.Cx, c.Cy, float64(maxCoordinate))
	}
	switch e.Model {
	case "", Pinhole.String():
		c.Model = Pinhole
	case Fisheye.String():
		c.Model = Fisheye
	default:
		return c, fmt.Errorf("camera_model %q is not %s or %s", e.Model, Pinhole, Fisheye)
	}
	rotation, err := orthonormal(e.Rotation)
	if err != nil {
		return c, err
	}
	for i := range 3 {
		for j := range 3 {
			c.R[3*i+j] = rotation[j][i]
		}
	}
	c.T = translationOf(c.R, e.Position)
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

// orthonormal returns the rotation nearest to a matrix that is one up to the
// rounding of a text file: Newton's iteration for the polar factor,
// M <- (3M - M M^T M) / 2. A matrix further off, or a mirror, is an error.
func orthonormal(m [3][3]float64) ([3][3]float64, error) {
	const tolerance = 1e-3
	if off := orthogonalityError(&m); !(off <= tolerance) {
		return m, fmt.Errorf("rotation is not orthonormal: off by %.2g", off)
	}
	det := m[0][0]*(m[1][1]*m[2][2]-m[1][2]*m[2][1]) -
		m[0][1]*(m[1][0]*m[2][2]-m[1][2]*m[2][0]) +
		m[0][2]*(m[1][0]*m[2][1]-m[1][1]*m[2][0])
	if det < 0 {
		return m, errors.New("rotation is a mirror: its determinant is negative")
	}
	for range 3 {
		g := gram(&m)
		var next [3][3]float64
		for i := range 3 {
			for j := range 3 {
				gm := g[i][0]*m[0][j] + g[i][1]*m[1][j] + g[i][2]*m[2][j]
				next[i][j] = 1.5*m[i][j] - 0.5*gm
			}
		}
		m = next
	}
	return m, nil
}

// gram returns M M^T.
func gram(m *[3][3]float64) (g [3][3]float64) {
	for i := range 3 {
		for j := range 3 {
			g[i][j] = m[i][0]*m[j][0] + m[i][1]*m[j][1] + m[i][2]*m[j][2]
		}
	}
	return g
}

// orthogonalityError is the largest entry of |M M^T - I|, NaN if M holds one.
func orthogonalityError(m *[3][3]float64) float64 {
	var worst float64
	for i, row := range gram(m) {
		for j, v := range row {
			if i == j {
				v--
			}
			worst = math.Max(worst, math.Abs(v))
		}
	}
	return worst
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
	return WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
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

// ViewScore is the quality of one held-out view.
type ViewScore struct {
	Name string  // of the photo
	PSNR float64 // dB
	SSIM float64
}

// StepScores are the held-out views at one training step.
type StepScores struct {
	Step  int
	Views []ViewScore
	Drawn *Drawn // nil: an earlier version measured it
}

// maxPSNR replaces the infinite PSNR of equal images in files, in dB: JSON has
// no infinity. It belongs to a mean squared error of 1e-10.
const maxPSNR = 100

// inriaMean and inriaViews are the values of results.json and per_view.json.
// LPIPS, INRIA's third key, is absent because it is not measured. The protocol is added, and how the model was drawn.
type inriaMean struct {
	SSIM     float64
	PSNR     float64
	Protocol string `json:"protocol"`
	Drawn    *Drawn `json:"drawn,omitempty"`
}

type inriaViews struct {
	SSIM     map[string]float64
	PSNR     map[string]float64
	Protocol string `json:"protocol"`
	Drawn    *Drawn `json:"drawn,omitempty"`
}

// Mean returns the mean PSNR and SSIM over the views, each PSNR capped at 100 dB.
func (s StepScores) Mean() (psnr, ssim float64) {
	for _, v := range s.Views {
		psnr += math.Min(v.PSNR, maxPSNR)
		ssim += v.SSIM
	}
	n := float64(len(s.Views))
	return psnr / n, ssim / n
}

// WriteResults writes results.json and per_view.json into dir with INRIA's
// keys: ours_<step> -> SSIM, PSNR, of a protocol. All steps that the files shall show
// are given together. With goesOn what the files hold of other protocols and of other methods than steps stays. A view whose score is NaN is an error.
func WriteResults(dir, protocol string, steps []StepScores, goesOn bool) error {
	means, perView := map[string]any{}, map[string]any{}
	if goesOn {
		means, perView = foreignResults(filepath.Join(dir, resultsFile), protocol), foreignResults(filepath.Join(dir, perViewFile), protocol)
	}
	for _, s := range steps {
		if len(s.Views) == 0 {
			return fmt.Errorf("scene: write results: step %d: no view was measured", s.Step)
		}
		views := inriaViews{make(map[string]float64), make(map[string]float64), protocol, s.Drawn}
		for _, v := range s.Views {
			if math.IsNaN(v.PSNR) || math.IsNaN(v.SSIM) {
				return fmt.Errorf("scene: write results: step %d: %q: PSNR %v, SSIM %v: %w", s.Step, v.Name, v.PSNR, v.SSIM, errNotFinite)
			}
			views.PSNR[v.Name] = math.Min(v.PSNR, maxPSNR)
			views.SSIM[v.Name] = v.SSIM
		}
		key := MethodName(s.Step)
		if means[key] != nil {
			continue // measured since, by another protocol
		}
		psnr, ssim := s.Mean()
		means[key], perView[key] = inriaMean{SSIM: ssim, PSNR: psnr, Protocol: protocol, Drawn: s.Drawn}, views
	}
	return writeResults(dir, means, perView)
}
