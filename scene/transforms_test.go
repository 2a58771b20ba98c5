package scene

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// jsonObject is a JSON object of a fixture.
type jsonObject map[string]any

func (o jsonObject) with(name string, v any) jsonObject {
	out := jsonObject{name: v}
	for k, old := range o {
		if k != name {
			out[k] = old
		}
	}
	return out
}

// openGL gives the 4x4 camera-to-world matrix of a camera, as transforms.json has it.
func openGL(c Camera) [][]float64 {
	p := c.Center()
	m := make([][]float64, 4)
	for i := range 3 {
		m[i] = []float64{c.R[i], -c.R[3+i], -c.R[6+i], p[i]}
	}
	m[3] = []float64{0, 0, 0, 1}
	return m
}

// tinyFrames gives the frames of the tiny capture.
func tinyFrames(folder string) []jsonObject {
	var frames []jsonObject
	for _, c := range tinyCameras() {
		frames = append(frames, jsonObject{"file_path": folder + c.Name, "transform_matrix": openGL(c)})
	}
	return frames
}

func tinyTop() jsonObject {
	return jsonObject{"fl_x": 30, "fl_y": 31, "cx": 16, "cy": 12.5, "w": tinyWidth, "h": tinyHeight, "frames": tinyFrames("images/")}
}

func putJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, data)
}

// tinyTransforms writes the tiny capture with a transforms.json.
func tinyTransforms(t testing.TB, top jsonObject) string {
	t.Helper()
	root := tinyCapture(t)
	removed("sparse")(t.(*testing.T), root)
	putJSON(t, filepath.Join(root, "transforms.json"), top)
	return root
}

// sameCameras compares cameras but for their paths.
func sameCameras(t *testing.T, got, want []Camera, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d cameras, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		a, b := slices.Concat(g.R[:], g.T[:], []float64{g.Fx, g.Fy, g.Cx, g.Cy}), slices.Concat(w.R[:], w.T[:], []float64{w.Fx, w.Fy, w.Cx, w.Cy})
		for k := range a {
			if !near(a[k], b[k], tolerance) {
				t.Fatalf("camera %+v, want %+v", g, w)
			}
		}
		if g.Name != w.Name || g.Width != w.Width || g.Height != w.Height {
			t.Fatalf("camera %+v, want %+v", g, w)
		}
	}
}

// The same capture in every dialect of perspective cameras.
func TestDialects(t *testing.T) {
	angle := func(side, f float64) float64 { return 2 * math.Atan(side/2/f) }
	perFrame := tinyFrames("./images/")
	for i := range perFrame {
		perFrame[i] = perFrame[i].with("fl_x", 30).with("fl_y", 31).with("cx", 16).with("cy", 12.5).with("w", tinyWidth).with("h", float64(tinyHeight))
	}
	noExtension := tinyFrames("images/")
	backslash := tinyFrames("")
	foreign := tinyFrames("")
	rows := tinyFrames("images/")
	for i, c := range tinyCameras() {
		noExtension[i]["file_path"] = "images/" + strings.TrimSuffix(c.Name, ".png")
		backslash[i]["file_path"] = `.\images\` + c.Name
		foreign[i]["file_path"] = []string{`C:\Users\me\scene\images\` + c.Name, "/home/me/scene/images/" + c.Name, "../scene/images/" + c.Name}[i%3]
		rows[i]["transform_matrix"] = openGL(c)[:3]
	}
	top := tinyTop()
	for name, top := range map[string]jsonObject{
		"global":         top,
		"per frame":      {"frames": perFrame, "fl_x": 999, "w": 77, "h": 55, "k1": nil},
		"floats":         top.with("w", 32.0).with("h", 24.0).with("aabb_scale", 4).with("enable_depth_loading", true).with("integer_depth_scale", 0.001),
		"angles":         {"camera_angle_x": angle(tinyWidth, 30), "camera_angle_y": angle(tinyHeight, 31), "cy": 12.5, "frames": tinyFrames("images/")},
		"double size":    {"fl_x": 60, "fl_y": 62, "cx": 32, "cy": 25, "w": 64, "h": 48.0, "frames": tinyFrames("images/")},
		"no size":        {"fl_x": 30, "fl_y": 31, "cx": 16, "cy": 12.5, "frames": tinyFrames("images/")},
		"no extension":   top.with("frames", noExtension),
		"backslashes":    top.with("frames", backslash),
		"other machines": top.with("frames", foreign),
		"3x4":            top.with("frames", rows),
		"no distortion":  top.with("camera_model", "OPENCV").with("k1", 0).with("k2", 0).with("p1", 0).with("p2", 0.0),
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, tinyTransforms(t, top), LoadOptions{Model: AnyModel, Strict: true})
			sameCameras(t, c.Cameras, tinyCameras(), 1e-12)
			if len(c.Warnings) > 0 || c.Format != FormatTransforms || filepath.Base(c.Images) != "images" || c.HeldOut != nil {
				t.Errorf("%s in %s, warnings %v", c.Format, c.Images, c.Warnings)
			}
		})
	}
}

func TestAbsolutePaths(t *testing.T) {
	root := tinyTransforms(t, jsonObject{})
	frames := tinyFrames(root + "/images/")
	putJSON(t, filepath.Join(root, "json", "transforms.json"), tinyTop().with("frames", frames))
	sameCameras(t, mustLoad(t, filepath.Join(root, "json"), anyModel()).Cameras, tinyCameras(), 1e-12)
	// ../, and a file in the folder's place.
	file := filepath.Join(root, "json", "other.json")
	putJSON(t, file, tinyTop().with("frames", tinyFrames("../images/")))
	sameCameras(t, mustLoad(t, file, anyModel()).Cameras, tinyCameras(), 1e-12)
	// Photos of another folder.
	c := mustLoad(t, file, LoadOptions{Model: AnyModel, Images: filepath.Join(root, "images")})
	sameCameras(t, c.Cameras, tinyCameras(), 1e-12)
}

// Which lens the coefficients of a frame stand for.
func TestFrameLenses(t *testing.T) {
	all := func(n int) jsonObject {
		o := jsonObject{"fl_x": 50, "w": 40, "h": 30}
		for i := range n {
			o[fmt.Sprintf("k%d", i+1)] = float64(i+1) / 100
		}
		return o.with("p1", 0.1).with("p2", 0.2)
	}
	for _, test := range []struct {
		name   string
		fields jsonObject
		want   Calibration
	}{
		{"opencv", all(2), Calibration{lensOpenCV, 40, 30, []float64{50, 50, 20, 15, 0.01, 0.02, 0.1, 0.2}}},
		{"polynomial", all(4), Calibration{LensPolynomial, 40, 30, []float64{50, 50, 20, 15, 0.01, 0.02, 0.03, 0.04, 0.1, 0.2}}},
		{"rational", all(6), Calibration{lensFullOpenCV, 40, 30, []float64{50, 50, 20, 15, 0.01, 0.02, 0.1, 0.2, 0.03, 0.04, 0.05, 0.06}}},
		{"full", all(3).with("camera_model", "FULL_OPENCV"), Calibration{lensFullOpenCV, 40, 30, []float64{50, 50, 20, 15, 0.01, 0.02, 0.1, 0.2, 0.03, 0, 0, 0}}},
		{"fisheye", all(4).with("camera_model", "OPENCV_FISHEYE"), Calibration{lensOpenCVFisheye, 40, 30, []float64{50, 50, 20, 15, 0.01, 0.02, 0.03, 0.04}}},
		{"ngp fisheye", all(2).with("is_fisheye", true), Calibration{lensOpenCVFisheye, 40, 30, []float64{50, 50, 20, 15, 0.01, 0.02, 0, 0}}},
		{"panorama", jsonObject{"camera_model": "EQUIRECTANGULAR"}, Calibration{LensEquirectangular, 400, 200, []float64{400, 200}}},
		{"pinhole", jsonObject{"fl_y": 70, "camera_model": "simple_pinhole", "cx": 3}, Calibration{LensPinhole, 400, 200, []float64{70, 70, 3, 100}}},
		{"angle", jsonObject{"camera_angle_x": math.Pi / 2}, Calibration{LensPinhole, 400, 200, []float64{200, 200, 200, 100}}},
		{"angle of height", jsonObject{"fl_x": 90, "camera_angle_y": math.Pi / 2}, Calibration{LensPinhole, 400, 200, []float64{90, 100, 200, 100}}},
	} {
		for level := range 2 {
			f, top := fields{}, fields{}
			data, _ := json.Marshal(test.fields)
			decoded, err := decodeObject(data)
			if err != nil {
				t.Fatal(err)
			}
			if level == 0 {
				f = decoded
			} else {
				top = decoded
			}
			l, err := parseLens(f, top)
			if err != nil {
				t.Fatal(test.name, err)
			}
			got := l.calibration(400, 200)
			for i, p := range got.Params {
				got.Params[i] = math.Round(p*1e9) / 1e9
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: %v, want %v", test.name, got, test.want)
			}
		}
	}
}

func TestTransformsPoints(t *testing.T) {
	root := tinyTransforms(t, tinyTop().with("ply_file_path", `.\cloud.ply`))
	put(t, filepath.Join(root, "cloud.ply"), []byte("ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"+
		"property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n0 0 0 255 1 2\n1 .5 -.25 3 4 5\n-1 .125 3 6 7 8\n"))
	if c := mustLoad(t, root, anyModel()); !reflect.DeepEqual(c.Points, tinyPoints()) {
		t.Error(c.Points)
	}
	removed("cloud.ply")(t, root)
	c := mustLoad(t, root, anyModel())
	if w, ok := c.warning("missing-points"); !ok || len(c.Points) > 0 {
		t.Errorf("%v", w)
	}
}

func TestTransformsMasks(t *testing.T) {
	frames := tinyFrames("images/")
	frames[1]["mask_path"], frames[2]["mask_path"] = "elsewhere/one.png", `nowhere\two.png`
	root := tinyTransforms(t, tinyTop().with("frames", frames))
	writePhoto(t, filepath.Join(root, "elsewhere", "one.png"), tinyWidth, tinyHeight)
	writePhoto(t, filepath.Join(root, "masks", "p1.png"), tinyWidth, tinyHeight)
	writePhoto(t, filepath.Join(root, "masks", "p3.png"), tinyWidth, tinyHeight)
	c := mustLoad(t, root, LoadOptions{Model: AnyModel, InvertMasks: true})
	for i, want := range []string{"", "elsewhere/one.png", "", "masks/p3.png", ""} {
		rel, _ := filepath.Rel(root, c.Cameras[i].Mask)
		if got := filepath.ToSlash(rel); c.Cameras[i].Mask != "" && got != want || (want == "") != (c.Cameras[i].Mask == "") || c.Cameras[i].MaskInverted != (want != "") {
			t.Errorf("camera %d: mask %q, want %q", i, c.Cameras[i].Mask, want)
		}
	}
	if w, ok := c.warning("missing-masks"); !ok || w.Count != 1 {
		t.Errorf("%v", w)
	}
	_, err := Load(root, LoadOptions{Model: AnyModel, Strict: true})
	checkRefusal(t, err, []string{"masks are missing: 1"}, "--strict", nil)
}

func TestUndoAppliedTransform(t *testing.T) {
	turn, _ := rotationFromQuat([4]float64{1, 2, 3, 4})
	move, scale := [3]float64{5, 6, 7}, 2.0
	apply := func(p [3]float64) [3]float64 { return scaled(add(rotate(turn, p), move), scale) }
	frames := tinyFrames("images/")
	for i, c := range tinyCameras() {
		centre := apply(c.Center())
		for col := range 3 {
			v := rotate(turn, [3]float64{c.R[3*col], c.R[3*col+1], c.R[3*col+2]})
			copy(c.R[3*col:], v[:])
		}
		c.T = scaled(rotate(c.R, centre), -1)
		frames[i]["transform_matrix"] = openGL(c)
	}
	matrix := [][]float64{append(slices.Clone(turn[:3]), 5), append(slices.Clone(turn[3:6]), 6), append(slices.Clone(turn[6:]), 7)}
	root := tinyTransforms(t, tinyTop().with("frames", frames).with("applied_transform", matrix).with("applied_scale", 2).with("ply_file_path", "cloud.ply"))
	p := apply([3]float64{1, 2, 3})
	put(t, filepath.Join(root, "cloud.ply"), fmt.Appendf(nil, "ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\nproperty double y\nproperty double z\nend_header\n%v %v %v\n", p[0], p[1], p[2]))

	kept := mustLoad(t, root, anyModel())
	if kept.Applied == nil || kept.Applied.Scale != 2 || kept.Applied.Undone || kept.Applied.Matrix[7] != 6 || kept.Points[0].Pos != p {
		t.Errorf("%+v, %v", kept.Applied, kept.Points)
	}
	undone := mustLoad(t, root, LoadOptions{Model: AnyModel, UndoAppliedTransform: true})
	sameCameras(t, undone.Cameras, tinyCameras(), 1e-9)
	if w, ok := mustLoad(t, tinyCapture(t), LoadOptions{Model: AnyModel, UndoAppliedTransform: true}).warning("no-applied-transform"); !ok {
		t.Error(w)
	}
	if q := undone.Points[0].Pos; !undone.Applied.Undone || length(sub(q, [3]float64{1, 2, 3})) > 1e-9 {
		t.Errorf("%+v, %v", undone.Applied, q)
	}
}

func TestSkewedPoses(t *testing.T) {
	frames := tinyFrames("images/")
	frames[1]["transform_matrix"].([][]float64)[0][0] += 1e-3
	for i := range 3 {
		for j := range 3 {
			frames[2]["transform_matrix"].([][]float64)[i][j] *= 2.5
		}
	}
	frames[3]["transform_matrix"].([][]float64)[0][1] += 1e-7
	c := mustLoad(t, tinyTransforms(t, tinyTop().with("frames", frames)), anyModel())
	sameCameras(t, c.Cameras, tinyCameras(), 5e-3)
	for _, cam := range c.Cameras {
		if r, s, skew, err := nearestRotation(cam.R); err != nil || skew > 1e-14 || math.Abs(s-1) > 1e-14 || math.Abs(r[0]-cam.R[0]) > 1e-14 {
			t.Errorf("%s: %v is no rotation", cam.Name, cam.R)
		}
	}
	for code, name := range map[string]string{"skewed-poses": "images/p1.png", "scaled-poses": "images/p2.png"} {
		if w, ok := c.warning(code); !ok || !slices.Equal(w.Names, []string{name}) {
			t.Errorf("%s: %v", code, w)
		}
	}
}

func TestFormats(t *testing.T) {
	root := tinyCapture(t)
	putJSON(t, filepath.Join(root, "transforms.json"), tinyTop().with("fl_x", 40))
	c := mustLoad(t, root, anyModel())
	if w, ok := c.warning("other-format"); c.Format != FormatColmap || c.Cameras[0].Fx != 30 || !ok || !strings.Contains(w.Text, "--format transforms") {
		t.Errorf("%s, %v", c.Format, c.Warnings)
	}
	c = mustLoad(t, root, LoadOptions{Model: AnyModel, Format: FormatTransforms})
	if c.Format != FormatTransforms || c.Cameras[0].Fx != 40 || len(c.Warnings) > 0 {
		t.Errorf("%s, %v", c.Format, c.Warnings)
	}
	if err := os.Remove(filepath.Join(root, "images", "p4.png")); err != nil {
		t.Fatal(err)
	}
	writePhoto(t, filepath.Join(root, "images", "extra.png"), 3, 3)
	c = mustLoad(t, root, LoadOptions{Model: AnyModel, Format: FormatTransforms})
	if _, ok := c.warning("missing-photos"); !ok || len(c.Cameras) != 4 {
		t.Error(c.Warnings)
	}
	if w, ok := c.warning("unregistered-photos"); !ok || w.Count != 1 {
		t.Error(c.Warnings)
	}
	// The folder of reduced photos is used here too.
	for i := range 4 {
		writePhoto(t, filepath.Join(root, "images_2", fmt.Sprintf("p%d.png", i)), tinyWidth/2, tinyHeight/2)
	}
	c = mustLoad(t, root, LoadOptions{Model: AnyModel, Format: FormatTransforms, Downscale: 2})
	if cam := c.Cameras[0]; filepath.Base(c.Images) != "images_2" || cam.Width != tinyWidth/2 || filepath.Dir(cam.Path) != c.Images || cam.Fx != 20 {
		t.Errorf("%s: %+v", c.Images, cam)
	}
}
