package load_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
	"vksplat/scene/transforms"
)

// tinyTransforms writes the tiny capture with a transforms.json.
func tinyTransforms(t testing.TB, top scenetest.JsonObject) string {
	t.Helper()
	root := loadtest.TinyCapture(t)
	loadtest.Removed("sparse")(t.(*testing.T), root)
	scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), top)
	return root
}

// sameCameras compares cameras but for their paths.
func sameCameras(t *testing.T, got, want []scene.Camera, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d cameras, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		a, b := slices.Concat(g.R[:], g.T[:], []float64{g.Fx, g.Fy, g.Cx, g.Cy}),
			slices.Concat(w.R[:], w.T[:], []float64{w.Fx, w.Fy, w.Cx, w.Cy})
		for k := range a {
			if !scenetest.Near(a[k], b[k], tolerance) {
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
	perFrame := scenetest.TinyFrames("./images/")
	for i := range perFrame {
		perFrame[i] = perFrame[i].With("fl_x", 30).With("fl_y", 31).With("cx", 16).With("cy", 12.5).With("w",
			scenetest.TinyWidth).With("h", float64(scenetest.TinyHeight))
	}
	noExtension := scenetest.TinyFrames("images/")
	backslash := scenetest.TinyFrames("")
	foreign := scenetest.TinyFrames("")
	rows := scenetest.TinyFrames("images/")
	for i, c := range scenetest.TinyCameras() {
		noExtension[i]["file_path"] = "images/" + strings.TrimSuffix(c.Name, ".png")
		backslash[i]["file_path"] = `.\images\` + c.Name
		foreign[i]["file_path"] = []string{`C:\Users\me\scene\images\` + c.Name, "/home/me/scene/images/" + c.Name,
			"../scene/images/" + c.Name}[i%3]
		rows[i]["transform_matrix"] = scenetest.OpenGL(c)[:3]
	}
	top := scenetest.TinyTop()
	for name, top := range map[string]scenetest.JsonObject{
		"global":    top,
		"per frame": {"frames": perFrame, "fl_x": 999, "w": 77, "h": 55, "k1": nil},
		"floats": top.With("w", 32.0).With("h", 24.0).With("aabb_scale", 4).With("enable_depth_loading",
			true).With("integer_depth_scale", 0.001),
		"angles": {"camera_angle_x": angle(scenetest.TinyWidth, 30),
			"camera_angle_y": angle(scenetest.TinyHeight, 31), "cy": 12.5, "frames": scenetest.TinyFrames("images/")},
		"double size": {"fl_x": 60, "fl_y": 62, "cx": 32, "cy": 25, "w": 64, "h": 48.0,
			"frames": scenetest.TinyFrames("images/")},
		"no size":        {"fl_x": 30, "fl_y": 31, "cx": 16, "cy": 12.5, "frames": scenetest.TinyFrames("images/")},
		"no extension":   top.With("frames", noExtension),
		"backslashes":    top.With("frames", backslash),
		"other machines": top.With("frames", foreign),
		"3x4":            top.With("frames", rows),
		"no distortion":  top.With("camera_model", "OPENCV").With("k1", 0).With("k2", 0).With("p1", 0).With("p2", 0.0),
	} {
		t.Run(name, func(t *testing.T) {
			c := loadtest.MustLoad(t, tinyTransforms(t, top), scene.LoadOptions{Model: scene.AnyModel, Strict: true})
			sameCameras(t, c.Cameras, scenetest.TinyCameras(), 1e-12)
			if len(c.Warnings) > 0 || c.Format != scene.FormatTransforms || filepath.Base(c.Images) != "images" ||
				c.HeldOut != nil {
				t.Errorf("%s in %s, warnings %v", c.Format, c.Images, c.Warnings)
			}
		})
	}
}

func TestAbsolutePaths(t *testing.T) {
	root := tinyTransforms(t, scenetest.JsonObject{})
	frames := scenetest.TinyFrames(root + "/images/")
	scenetest.PutJSON(t, filepath.Join(root, "json", "transforms.json"), scenetest.TinyTop().With("frames", frames))
	sameCameras(t, loadtest.MustLoad(t, filepath.Join(root, "json"), loadtest.AnyModel()).Cameras,
		scenetest.TinyCameras(), 1e-12)
	// ../, and a file in the folder's place.
	file := filepath.Join(root, "json", "other.json")
	scenetest.PutJSON(t, file, scenetest.TinyTop().With("frames", scenetest.TinyFrames("../images/")))
	sameCameras(t, loadtest.MustLoad(t, file, loadtest.AnyModel()).Cameras, scenetest.TinyCameras(), 1e-12)
	// Photos of another folder.
	c := loadtest.MustLoad(t, file, scene.LoadOptions{Model: scene.AnyModel, Images: filepath.Join(root, "images")})
	sameCameras(t, c.Cameras, scenetest.TinyCameras(), 1e-12)
}

// Which lens the coefficients of a frame stand for.
func TestFrameLenses(t *testing.T) {
	all := func(n int) scenetest.JsonObject {
		o := scenetest.JsonObject{"fl_x": 50, "w": 40, "h": 30}
		for i := range n {
			o[fmt.Sprintf("k%d", i+1)] = float64(i+1) / 100
		}
		return o.With("p1", 0.1).With("p2", 0.2)
	}
	for _, test := range []struct {
		name   string
		fields scenetest.JsonObject
		want   scene.Calibration
	}{
		{"opencv", all(2), scene.Calibration{Model: scene.LensOpenCV, Width: 40, Height: 30,
			Params: []float64{50, 50, 20, 15, 0.01, 0.02, 0.1, 0.2}}},
		{"polynomial", all(4),
			scene.Calibration{Model: scene.LensPolynomial, Width: 40, Height: 30,
				Params: []float64{50, 50, 20, 15, 0.01, 0.02, 0.03, 0.04, 0.1, 0.2}}},
		{"rational", all(6), scene.Calibration{Model: scene.LensFullOpenCV, Width: 40, Height: 30,
			Params: []float64{50, 50, 20, 15, 0.01, 0.02, 0.1, 0.2, 0.03, 0.04, 0.05, 0.06}}},
		{"full", all(3).With("camera_model", "FULL_OPENCV"),
			scene.Calibration{Model: scene.LensFullOpenCV, Width: 40, Height: 30,
				Params: []float64{50, 50, 20, 15, 0.01, 0.02, 0.1, 0.2, 0.03, 0, 0, 0}}},
		{"fisheye", all(4).With("camera_model", "OPENCV_FISHEYE"),
			scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 40, Height: 30,
				Params: []float64{50, 50, 20, 15, 0.01, 0.02, 0.03, 0.04}}},
		{"ngp fisheye", all(2).With("is_fisheye", true),
			scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 40, Height: 30,
				Params: []float64{50, 50, 20, 15, 0.01, 0.02, 0, 0}}},
		{"panorama", scenetest.JsonObject{"camera_model": "EQUIRECTANGULAR"},
			scene.Calibration{Model: scene.LensEquirectangular, Width: 400, Height: 200, Params: []float64{400, 200}}},
		{"pinhole", scenetest.JsonObject{"fl_y": 70, "camera_model": "simple_pinhole", "cx": 3},
			scene.Calibration{Model: scene.LensPinhole, Width: 400, Height: 200, Params: []float64{70, 70, 3, 100}}},
		{"angle", scenetest.JsonObject{"camera_angle_x": math.Pi / 2},
			scene.Calibration{Model: scene.LensPinhole, Width: 400, Height: 200,
				Params: []float64{200, 200, 200, 100}}},
		{"angle of height", scenetest.JsonObject{"fl_x": 90, "camera_angle_y": math.Pi / 2},
			scene.Calibration{Model: scene.LensPinhole, Width: 400, Height: 200, Params: []float64{90, 100, 200, 100}}},
	} {
		for level := range 2 {
			f, top := strictjson.Object{}, strictjson.Object{}
			data, _ := json.Marshal(test.fields)
			decoded, err := strictjson.DecodeObject(data)
			if err != nil {
				t.Fatal(err)
			}
			if level == 0 {
				f = decoded
			} else {
				top = decoded
			}
			l, err := transforms.ParseLens(f, top)
			if err != nil {
				t.Fatal(test.name, err)
			}
			got := l.Calibration(400, 200)
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
	root := tinyTransforms(t, scenetest.TinyTop().With("ply_file_path", `.\cloud.ply`))
	scenetest.Put(t, filepath.Join(root, "cloud.ply"),
		[]byte("ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"+
			"property uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n0 0 0 255 1 2\n1 .5 -.25 3 4 "+
			"5\n-1 .125 3 6 7 8\n"))
	if c := loadtest.MustLoad(t, root, loadtest.AnyModel()); !reflect.DeepEqual(c.Points, scenetest.TinyPoints()) {
		t.Error(c.Points)
	}
	loadtest.Removed("cloud.ply")(t, root)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "missing-points"); !ok || len(c.Points) > 0 {
		t.Errorf("%v", w)
	}
}

func TestTransformsMasks(t *testing.T) {
	frames := scenetest.TinyFrames("images/")
	frames[1]["mask_path"], frames[2]["mask_path"] = "elsewhere/one.png", `nowhere\two.png`
	root := tinyTransforms(t, scenetest.TinyTop().With("frames", frames))
	scenetest.WritePhoto(t, filepath.Join(root, "elsewhere", "one.png"), scenetest.TinyWidth, scenetest.TinyHeight)
	scenetest.WritePhoto(t, filepath.Join(root, "masks", "p1.png"), scenetest.TinyWidth, scenetest.TinyHeight)
	scenetest.WritePhoto(t, filepath.Join(root, "masks", "p3.png"), scenetest.TinyWidth, scenetest.TinyHeight)
	c := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, InvertMasks: true})
	for i, want := range []string{"", "elsewhere/one.png", "", "masks/p3.png", ""} {
		rel, _ := filepath.Rel(root, c.Cameras[i].Mask)
		if got := filepath.ToSlash(rel); c.Cameras[i].Mask != "" && got != want ||
			(want == "") != (c.Cameras[i].Mask == "") || c.Cameras[i].MaskInverted != (want != "") {
			t.Errorf("camera %d: mask %q, want %q", i, c.Cameras[i].Mask, want)
		}
	}
	if w, ok := scenetest.WarningOf(c, "missing-masks"); !ok || w.Count != 1 {
		t.Errorf("%v", w)
	}
	_, err := load.Capture(root, scene.LoadOptions{Model: scene.AnyModel, Strict: true})
	scenetest.CheckRefusal(t, err, []string{"masks are missing: 1"}, "strict", nil)
}

func TestUndoAppliedTransform(t *testing.T) {
	turn, _ := geom.RotationFromQuat([4]float64{1, 2, 3, 4})
	move, scale := [3]float64{5, 6, 7}, 2.0
	apply := func(p [3]float64) [3]float64 { return geom.Scale(geom.Add(geom.Rotate(turn, p), move), scale) }
	frames := scenetest.TinyFrames("images/")
	for i, c := range scenetest.TinyCameras() {
		centre := apply(c.Center())
		for col := range 3 {
			v := geom.Rotate(turn, [3]float64{c.R[3*col], c.R[3*col+1], c.R[3*col+2]})
			copy(c.R[3*col:], v[:])
		}
		c.T = geom.Scale(geom.Rotate(c.R, centre), -1)
		frames[i]["transform_matrix"] = scenetest.OpenGL(c)
	}
	matrix := [][]float64{append(slices.Clone(turn[:3]), 5), append(slices.Clone(turn[3:6]), 6),
		append(slices.Clone(turn[6:]), 7)}
	root := tinyTransforms(t, scenetest.TinyTop().With("frames", frames).With("applied_transform",
		matrix).With("applied_scale", 2).With("ply_file_path", "cloud.ply"))
	p := apply([3]float64{1, 2, 3})
	scenetest.Put(t, filepath.Join(root, "cloud.ply"),
		fmt.Appendf(nil, "ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\nproperty double y\nproperty "+
			"double z\nend_header\n%v %v %v\n", p[0], p[1], p[2]))

	kept := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if kept.Applied == nil || kept.Applied.Scale != 2 || kept.Applied.Undone || kept.Applied.Matrix[7] != 6 ||
		kept.Points[0].Pos != p {
		t.Errorf("%+v, %v", kept.Applied, kept.Points)
	}
	undone := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, UndoAppliedTransform: true})
	sameCameras(t, undone.Cameras, scenetest.TinyCameras(), 1e-9)
	if w, ok := scenetest.WarningOf(loadtest.MustLoad(t, loadtest.TinyCapture(t),
		scene.LoadOptions{Model: scene.AnyModel, UndoAppliedTransform: true}), "no-applied-transform"); !ok {
		t.Error(w)
	}
	if q := undone.Points[0].Pos; !undone.Applied.Undone || geom.Length(geom.Sub(q, [3]float64{1, 2, 3})) > 1e-9 {
		t.Errorf("%+v, %v", undone.Applied, q)
	}
}

func TestSkewedPoses(t *testing.T) {
	frames := scenetest.TinyFrames("images/")
	frames[1]["transform_matrix"].([][]float64)[0][0] += 1e-3
	for i := range 3 {
		for j := range 3 {
			frames[2]["transform_matrix"].([][]float64)[i][j] *= 2.5
		}
	}
	frames[3]["transform_matrix"].([][]float64)[0][1] += 1e-7
	c := loadtest.MustLoad(t, tinyTransforms(t, scenetest.TinyTop().With("frames", frames)), loadtest.AnyModel())
	sameCameras(t, c.Cameras, scenetest.TinyCameras(), 5e-3)
	for _, cam := range c.Cameras {
		if r, s, skew, err := geom.NearestRotation(cam.R); err != nil || skew > 1e-14 || math.Abs(s-1) > 1e-14 ||
			math.Abs(r[0]-cam.R[0]) > 1e-14 {
			t.Errorf("%s: %v is not a rotation", cam.Name, cam.R)
		}
	}
	for code, name := range map[string]string{"skewed-poses": "images/p1.png", "scaled-poses": "images/p2.png"} {
		if w, ok := scenetest.WarningOf(c, code); !ok || !slices.Equal(w.Names, []string{name}) {
			t.Errorf("%s: %v", code, w)
		}
	}
}

// TestUnclearMotion: a capture whose file tells no motion that can be understood is read all the same, with a warning
// that has a remedy.
func TestUnclearMotion(t *testing.T) {
	frames := scenetest.TinyFrames("images/")
	frames[1]["camera_linear_velocity"] = "north"
	frames[3]["transform_matrix_end"] = frames[3]["transform_matrix"]
	c := loadtest.MustLoad(t, tinyTransforms(t, scenetest.TinyTop().With("frames", frames).With("rolling_shutter",
		[]float64{0, 1, 0, 0})), loadtest.AnyModel())
	sameCameras(t, c.Cameras, scenetest.TinyCameras(), 1e-12)
	w, ok := scenetest.WarningOf(c, "unclear-motion")
	if !ok || !slices.Equal(w.Names, []string{"images/p1.png", "images/p3.png"}) || scene.Remedies[w.Code] == "" ||
		!strings.Contains(w.Text, "2 of 5 cameras") || !strings.Contains(w.Text, "camera_linear_velocity is") {
		t.Errorf("%v", w)
	}
}

func TestFormats(t *testing.T) {
	root := loadtest.TinyCapture(t)
	scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), scenetest.TinyTop().With("fl_x", 40))
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "other-format"); c.Format != scene.FormatColmap || c.Cameras[0].Fx != 30 ||
		!ok || !strings.Contains(w.Text, "format transforms") {
		t.Errorf("%s, %v", c.Format, c.Warnings)
	}
	c = loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatTransforms})
	if c.Format != scene.FormatTransforms || c.Cameras[0].Fx != 40 || len(c.Warnings) > 0 {
		t.Errorf("%s, %v", c.Format, c.Warnings)
	}
	must.Do(t, os.Remove(filepath.Join(root, "images", "p4.png")))
	scenetest.WritePhoto(t, filepath.Join(root, "images", "extra.png"), 3, 3)
	c = loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatTransforms})
	if _, ok := scenetest.WarningOf(c, "missing-photos"); !ok || len(c.Cameras) != 4 {
		t.Error(c.Warnings)
	}
	if w, ok := scenetest.WarningOf(c, "unregistered-photos"); !ok || w.Count != 1 {
		t.Error(c.Warnings)
	}
	// The folder of reduced photos is used here too.
	for i := range 4 {
		scenetest.WritePhoto(t, filepath.Join(root, "images_2", fmt.Sprintf("p%d.png", i)), scenetest.TinyWidth/2,
			scenetest.TinyHeight/2)
	}
	c = loadtest.MustLoad(t, root,
		scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatTransforms, Downscale: 2})
	if cam := c.Cameras[0]; filepath.Base(c.Images) != "images_2" || cam.Width != scenetest.TinyWidth/2 ||
		filepath.Dir(cam.Path) != c.Images || cam.Fx != 20 {
		t.Errorf("%s: %+v", c.Images, cam)
	}
}

// JSON lacks numbers that are not finite; Python writes them all the same. Texts stay what they are.
func TestNotFiniteJSON(t *testing.T) {
	capture := func() string {
		frames := scenetest.TinyFrames("images/")
		frames[1]["fl_x"], frames[1]["k1"], frames[1]["note"] = 61.25, 0.0625, "NaN, -nan(ind), \\\" inf"
		frames[2]["camera_angle_x"] = 0.7775
		return tinyTransforms(t, scenetest.TinyTop().With("frames", frames))
	}
	check := func(from, to string) {
		t.Helper()
		loadtest.CheckNotFinite(t, capture, "transforms.json", from, to, "bad-poses", loadtest.NotFiniteJSON)
	}
	for _, number := range []string{"61.25", "0.0625", "0.7775"} {
		check(number, "@")
	}
	data := must.Get(os.ReadFile(filepath.Join(capture(), "transforms.json")))(t)
	row := string(regexp.MustCompile(`"transform_matrix":\s*\[\s*\[[^]]*\]`).Find(data))
	numbers := regexp.MustCompile(`-?\d[^,\]\s]*`).FindAllStringIndex(row, -1)
	if len(numbers) != 4 {
		t.Fatalf("%q", row)
	}
	for _, at := range numbers {
		check(row, row[:at[0]]+"@"+row[at[1]:])
	}
}
