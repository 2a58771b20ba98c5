package load_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
	"vksplat/scene/transforms"
)

// blenderScene writes a scene of five photos to train on and two to evaluate on.
func blenderScene(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	angle := 2 * math.Atan(scenetest.TinyWidth/2./30)
	write := func(name string, n int) {
		var frames []scenetest.JsonObject
		for i, c := range scenetest.TinyCameras()[:n] {
			c.T[2] += float64(len(name))
			frames = append(frames,
				scenetest.JsonObject{"file_path": fmt.Sprintf("./%s/r_%d", name, 9+i), "rotation": 0.01,
					"transform_matrix": scenetest.OpenGL(c)})
			scenetest.WritePhoto(t, filepath.Join(root, name, fmt.Sprintf("r_%d.png", 9+i)), scenetest.TinyWidth,
				scenetest.TinyHeight)
			scenetest.WritePhoto(t, filepath.Join(root, name, fmt.Sprintf("r_%d_depth_0000.png", 9+i)),
				scenetest.TinyWidth, scenetest.TinyHeight)
		}
		scenetest.PutJSON(t, filepath.Join(root, "transforms_"+name+".json"),
			scenetest.JsonObject{"camera_angle_x": angle, "frames": frames})
	}
	write("train", 5)
	write("test", 2)
	return root
}

func TestBlender(t *testing.T) {
	root := blenderScene(t)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if c.Format != scene.FormatBlender || !c.Synthetic || len(c.Points) > 0 || len(c.Warnings) > 0 {
		t.Errorf("%s, %d points, %v", c.Format, len(c.Points), c.Warnings)
	}
	var names []string
	for _, cam := range c.Cameras {
		names = append(names, cam.Name)
		if cam.Name != strings.TrimPrefix(filepath.ToSlash(cam.Path), filepath.ToSlash(root)+"/") ||
			!scenetest.Near(cam.Fx, 30, 1e-12) || cam.Fy != cam.Fx || cam.Cx != 16 || cam.Cy != 12 {
			t.Errorf("%+v", cam)
		}
	}
	want := []string{"test/r_10.png", "test/r_9.png", "train/r_10.png", "train/r_11.png", "train/r_12.png",
		"train/r_13.png", "train/r_9.png"}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	for _, every := range []int{0, 8} {
		if train, test := c.Split(every); !slices.Equal(test, []int{0, 1}) ||
			!slices.Equal(train, []int{2, 3, 4, 5, 6}) {
			t.Errorf("split %v, %v", train, test)
		}
	}
	if named := loadtest.MustLoad(t, filepath.Join(root, transforms.TrainFile),
		loadtest.AnyModel()); !slices.Equal(named.Cameras, c.Cameras) || named.Format != scene.FormatBlender {
		t.Error("the file's name gives another capture than its folder's")
	}
	// Validation photos are announced; without a test file the usual photos are held out.
	scenetest.Put(t, filepath.Join(root, transforms.ValFile), []byte("not even read"))
	if w, ok := scenetest.WarningOf(loadtest.MustLoad(t, root, loadtest.AnyModel()), "unused-split"); !ok ||
		!strings.Contains(w.Text, transforms.ValFile) {
		t.Error(w)
	}
	loadtest.Removed(transforms.TestFile)(t, root)
	c = loadtest.MustLoad(t, root, loadtest.AnyModel())
	if _, test := c.Split(8); c.HeldOut != nil || !slices.Equal(test, []int{0}) || c.Cameras[0].Name != "r_10.png" {
		t.Errorf("%v of %+v", test, c.Cameras[0])
	}
}

func TestSplitByLists(t *testing.T) {
	names := func(list ...int) (out []string) {
		for _, i := range list {
			out = append(out, fmt.Sprintf("./images/p%d.png", i))
		}
		return out
	}
	for _, test := range []struct {
		name                 string
		train, val, test     []string
		wantTrain, wantTests []string
		unused               int
	}{
		{"all", names(0, 1, 2), names(4), names(3), []string{"p0.png", "p1.png", "p2.png"}, []string{"p3.png"}, 1},
		{"no test", names(0, 1, 3), names(4, 2), nil, []string{"p0.png", "p1.png", "p3.png"},
			[]string{"p2.png", "p4.png"}, 0},
		{"only test", nil, nil, names(1), []string{"p0.png", "p2.png", "p3.png", "p4.png"}, []string{"p1.png"}, 0},
		{"some are in no list", names(0, 1, 2), nil, names(4), []string{"p0.png", "p1.png", "p2.png"},
			[]string{"p4.png"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := scenetest.TinyTop()
			for key, list := range map[string][]string{"train_filenames": test.train, "val_filenames": test.val,
				"test_filenames": test.test} {
				if list != nil {
					top[key] = list
				}
			}
			c := loadtest.MustLoad(t, tinyTransforms(t, top), loadtest.AnyModel())
			train, held := c.Split(8)
			of := func(ids []int) (out []string) {
				for _, i := range ids {
					out = append(out, c.Cameras[i].Name)
				}
				return out
			}
			if !slices.Equal(of(train), test.wantTrain) || !slices.Equal(of(held), test.wantTests) {
				t.Errorf("train %v, held out %v", of(train), of(held))
			}
			if w, _ := scenetest.WarningOf(c, "unused-split"); w.Count != test.unused {
				t.Error(w)
			}
		})
	}
}

// The six faces of a panorama are held out together.
func TestHeldOutPanoramas(t *testing.T) {
	c := &scene.Capture{}
	for photo := range 4 {
		for face := range 6 {
			c.Cameras = append(c.Cameras,
				scene.Camera{Name: fmt.Sprintf("%d/%d", photo, face), Photo: fmt.Sprint(photo)})
		}
	}
	if _, test := c.Split(2); !slices.Equal(test, []int{0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17}) {
		t.Error(test)
	}
	c.HeldOut = map[string]bool{"3": true}
	if _, test := c.Split(2); !slices.Equal(test, []int{18, 19, 20, 21, 22, 23}) {
		t.Error(test)
	}
}

// A panorama in either format becomes six cameras of one photo.
func TestPanoramas(t *testing.T) {
	root := loadtest.TinyCapture(t)
	loadtest.Edit(t, root, "cameras.bin",
		func([]byte) []byte { return scenetest.CameraOfModel(int(scene.LensEquirectangular)) })
	scenetest.PutJSON(t, filepath.Join(root, "transforms.json"),
		scenetest.JsonObject{"camera_model": "EQUIRECTANGULAR", "frames": scenetest.TinyFrames("images/")})
	a := loadtest.MustLoad(t, root, loadtest.AnyModel())
	b := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatTransforms})
	sameCameras(t, b.Cameras, a.Cameras, 1e-12)
	train, test := a.Split(8)
	if len(a.Cameras) != 6*scenetest.TinyPhotos || len(test) != 6 || len(train) != 24 ||
		a.Cameras[7].Photo != "p1.png" {
		t.Errorf("%d cameras, %d to train on, %v held out", len(a.Cameras), len(train), test)
	}
	if r := inspected(t, a); r.Photos != scenetest.TinyPhotos {
		t.Errorf("%d photos", r.Photos)
	}
}

func TestBadTransforms(t *testing.T) {
	frame := func(change scenetest.JsonObject) scenetest.JsonObject {
		frames := scenetest.TinyFrames("images/")
		for k, v := range change {
			frames[2][k] = v
		}
		return scenetest.TinyTop().With("frames", frames)
	}
	mirrored := scenetest.OpenGL(scenetest.TinyCameras()[0])
	mirrored[0], mirrored[1] = mirrored[1], mirrored[0]
	sheared := scenetest.OpenGL(scenetest.TinyCameras()[0])
	sheared[0][0] += 0.3
	for _, test := range []struct {
		name string
		top  any
		want string
	}{
		{"no object", []int{1}, "no JSON object"},
		{"no frames", scenetest.JsonObject{"fl_x": 1}, "no field frames"},
		{"frames no list", scenetest.JsonObject{"frames": "x"}, `field frames is "x", a list is expected`},
		{"no frame", scenetest.JsonObject{"frames": []int{}}, "field frames is empty"},
		{"frame no object", scenetest.JsonObject{"frames": []int{7}}, "frame 0: expected an object, got 7"},
		{"no path", frame(scenetest.JsonObject{"file_path": nil}), "frame 2: field file_path names no photo"},
		{"path no text", frame(scenetest.JsonObject{"file_path": 5}),
			"frame 2: field file_path is 5, a text is expected"},
		{"twice", frame(scenetest.JsonObject{"file_path": `.\images\p1.png`}),
			"frame 2: field file_path is \".\\\\images\\\\p1.png\", as in frame 1"},
		{"twice, extension", frame(scenetest.JsonObject{"file_path": "images/p1"}), "name the same photo"},
		{"no pose", frame(scenetest.JsonObject{"transform_matrix": nil}),
			"frame 2: there is no field transform_matrix"},
		{"pose of text", frame(scenetest.JsonObject{"transform_matrix": [][]string{{"a"}}}),
			"frame 2: field transform_matrix is"},
		{"short pose", frame(scenetest.JsonObject{"transform_matrix": [][]float64{{1, 0, 0, 0}}}), "has 1 rows"},
		{"narrow pose", frame(scenetest.JsonObject{"transform_matrix": [][]float64{{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}}),
			"row 0 of field transform_matrix has 3 numbers"},
		{"last row", frame(scenetest.JsonObject{"transform_matrix": append(
			scenetest.OpenGL(scenetest.TinyCameras()[0])[:3:3], []float64{0, 0, 1, 1})}), "the last row"},
		{"pose with null", frame(scenetest.JsonObject{"transform_matrix": [][]any{{1, 0, 0, nil}, {0, 1, 0, 0},
			{0, 0, 1, 0}}}), "frame 2: row 0 of field transform_matrix is null at 3"},
		{"mirror", frame(scenetest.JsonObject{"transform_matrix": mirrored}),
			"frame 2: field transform_matrix: it mirrors"},
		{"shear", frame(scenetest.JsonObject{"transform_matrix": sheared}), "off a rotation by"},
		{"zero", frame(scenetest.JsonObject{"transform_matrix": make([][4]float64, 3)}), "not a rotation"},
		{"no focal", scenetest.JsonObject{"frames": scenetest.TinyFrames("images/")},
			"frame 0: there is neither a field fl_x"},
		{"focal 0", scenetest.TinyTop().With("fl_x", 0), "field fl_x is 0, it must be"},
		{"focal null", scenetest.TinyTop().With("fl_x", nil), "field fl_x is null, a number is expected"},
		{"focal height null", scenetest.TinyTop().With("fl_y", nil), "field fl_y is null, a number is expected"},
		{"wide angle", scenetest.JsonObject{"camera_angle_x": 3.2, "frames": scenetest.TinyFrames("images/")},
			"camera_angle_x is 3.2"},
		{"model", scenetest.TinyTop().With("camera_model", "FTHETA"), `camera_model is "FTHETA"`},
		{"half pixel", scenetest.TinyTop().With("w", 32.5), "field w is 32.5"},
		{"no h", scenetest.TinyTop().With("h", nil), "w and h"},
		{"k1 text", frame(scenetest.JsonObject{"k1": "no"}), `frame 2: field k1 is "no", a number is expected`},
		{"both lists", scenetest.TinyTop().With("train_filenames", []string{"images/p1.png"}).With("test_filenames",
			[]string{"images/p1.png"}), "is in train_filenames and in test_filenames"},
		{"all held out", scenetest.TinyTop().With("test_filenames",
			[]string{"images/p0.png", "images/p1.png", "images/p2.png", "images/p3.png", "images/p4.png"}),
			"no photo to train on"},
		{"scale", scenetest.TinyTop().With("applied_scale", -1), "applied_scale is -1"},
		{"aspect", scenetest.TinyTop().With("w", 24).With("h", 32), "the aspects differ"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := tinyTransforms(t, scenetest.JsonObject{})
			scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), test.top)
			_, err := load.Capture(root, loadtest.AnyModel())
			if err == nil {
				t.Fatal("it was accepted")
			}
			scenetest.CheckRefusal(t, err, []string{test.want}, "", nil)
		})
	}
}

func TestBadJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "line 1: not JSON: the file ends too early",
		"{\"frames\": [\n":               "the file ends too early",
		"{\n\"frames\": [{\"a\": None}]": "line 2: not JSON: invalid character 'N'",
		"null":                           "not a JSON object",
		"\xef\xbb\xbf{\"frames\": {}}":   "field frames is {}",
		"{\"a\": " + strings.Repeat("[", 100000) + "}":  "max depth",
		"{\"frames\": [" + strings.Repeat("{},", 1<<10): "",
	} {
		_, err := transforms.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestJSONAllocation(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 1<<20), `{"frames":[` + strings.Repeat("{},", 1<<18) + `{}]}`,
		`{"frames":[{"file_path":"` + strings.Repeat("x", 1<<20) + `"}]}`} {
		if n := scenetest.HeapGrowth(func() { _, _ = transforms.Parse([]byte(text)) }); n > uint64(200*len(text)) {
			t.Errorf("%.20q: %d bytes allocated for %d", text, n, len(text))
		}
	}
}

// The fox in both formats.
func TestFoxTransforms(t *testing.T) {
	root := scenetest.SharedCapture(t, "fox")
	c := &scene.Capture{Root: root, Model: filepath.Join(root, "sparse", "0"), Format: scene.FormatColmap}
	colmap := must.Get(colmap.Read(c))(t)
	j := &scene.Capture{Root: root, Model: filepath.Join(root, "transforms.json"), Format: scene.FormatTransforms}
	records := must.Get(transforms.Read(j, loadtest.AnyModel()))(t)
	must.Get(load.FindPhotos(j, records, loadtest.AnyModel()))(t)
	if len(records) != 50 || len(colmap) != 50 || len(j.Points) != len(c.Points) {
		t.Fatalf("%d and %d photos, %d and %d points", len(records), len(colmap), len(j.Points), len(c.Points))
	}
	for i, r := range records {
		want := colmap[i]
		if a, b := r.Lens.Calibration(540, 960), want.Lens.Calibration(540, 960); r.Cam.Name != want.Cam.Name ||
			fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%s: %v, want %s: %v", r.Cam.Name, a, want.Cam.Name, b)
		}
		got, pose := append(r.Cam.R[:], r.Cam.T[:]...), append(want.Cam.R[:], want.Cam.T[:]...)
		for k := range got {
			if math.Abs(got[k]-pose[k]) > 1e-6 {
				t.Fatalf("%s: pose %v, want %v", r.Cam.Name, got, pose)
			}
		}
	}
	for i, p := range j.Points {
		if q := c.Points[i]; p.Color != q.Color || geom.Length(geom.Sub(p.Pos, q.Pos)) > 1e-6*(1+geom.Length(q.Pos)) {
			t.Fatalf("point %d is %v, want %v", i, p, q)
		}
	}
}

func TestFoxUpstream(t *testing.T) {
	c := loadtest.MustLoad(t, filepath.Join(scenetest.SharedCapture(t, "fox"), "transforms_upstream.json"),
		loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "missing-photos"); len(c.Cameras) != 50 || !ok || w.Count != 17 ||
		len(w.Names) != 5 {
		t.Errorf("%d cameras, %v", len(c.Cameras), c.Warnings)
	}
	same := loadtest.MustLoad(t, scenetest.SharedCapture(t, "fox"),
		scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatTransforms})
	sameCameras(t, c.Cameras, same.Cameras, 1e-6)
}

func TestChair(t *testing.T) {
	begin := time.Now()
	c := loadtest.MustLoad(t, scenetest.SharedCapture(t, "chair_400"),
		scene.LoadOptions{Model: scene.AnyModel, Strict: true})
	train, test := c.Split(0)
	if !c.Synthetic || len(train) != 100 || len(test) != 25 || len(c.Warnings) > 0 ||
		time.Since(begin) > 5*time.Second {
		t.Errorf("%d and %d photos, %v", len(train), len(test), c.Warnings)
	}
	if cam := c.Cameras[0]; cam.Width != 400 || !scenetest.Near(cam.Fx, 555.5555, 1e-5) {
		t.Errorf("%+v", cam)
	}
	// Cameras on a sphere look at its centre.
	for _, cam := range c.Cameras {
		p := cam.ToCamera([3]float64{})
		if math.Hypot(p[0], p[1]) > 1e-3 || !scenetest.Near(p[2], 4.031, 1e-2) {
			t.Fatalf("%s sees the origin at %v", cam.Name, p)
		}
	}
}

func FuzzTransforms(f *testing.F) {
	// Short, because inputs are made shorter one byte at a time.
	const pose = `"transform_matrix":[[1,0,0,9],[0,1,0,0],[0,0,1,0]]`
	f.Add([]byte(`{"fl_x":3,"k1":1,"w":4,"h":2.0,"frames":[{"file_path":"a\\b",` + pose + `}]}`))
	f.Add([]byte(`{"camera_model":"OPENCV_FISHEYE","camera_angle_y":1,"frames":[{"file_path":"a","mask_path":"m",` +
		pose + `}],"test_filenames":["b"]}`))
	f.Add([]byte(`{"frames":[{"file_path":"/a","fl_y":1,"k3":1,"k6":0,` + pose +
		`}],"applied_scale":2,"ply_file_path":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := transforms.Parse(data)
		if err != nil {
			return
		}
		for _, fr := range tr.Frames {
			k := fr.Lens.Calibration(40, 30)
			if !geom.Finite(fr.Pose.R[:]...) || !geom.Finite(fr.Pose.T[:]...) || k.Width <= 0 || k.Height <= 0 ||
				len(k.Params) != k.Model.NumParams() || !geom.Finite(k.Params...) {
				t.Errorf("%+v, %+v", fr, k)
			}
			photo.NativePath("/a", fr.File)
		}
	})
}
