package inria

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

func testCameras() []scene.Camera {
	cams := make([]scene.Camera, 3)
	for i := range cams {
		cams[i] = scene.Camera{Name: fmt.Sprintf("a/%d.png", i), Width: 100, Height: 80, Fx: 90.5, Fy: 91, Cx: 50,
			Cy: 40}
		scene.LookAt(&cams[i], geom.Vec{4, float64(i), 2}, geom.Vec{0.1, 0.2, 0.3})
	}
	cams[1].Cx, cams[1].Model = 47.25, scene.Fisheye
	return cams
}

func TestCamerasRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cameras.json")
	want := testCameras()
	must.Do(t, WriteCameras(path, want, 1))
	got, info, err := ReadCameras(path)
	if err != nil || len(got) != len(want) || info.Centred != 0 || len(info.HeldOut) != 1 ||
		!info.HeldOut[want[1].Name] {
		t.Fatalf("%d cameras, %+v, %v", len(got), info, err)
	}
	for i := range got {
		g, w := got[i], want[i]
		for k := range g.R {
			if math.Abs(g.R[k]-w.R[k]) > 1e-15 {
				t.Errorf("camera %d: R[%d] = %v, want %v", i, k, g.R[k], w.R[k])
			}
		}
		for k := range g.T {
			if math.Abs(g.T[k]-w.T[k]) > 1e-14 {
				t.Errorf("camera %d: T[%d] = %v, want %v", i, k, g.T[k], w.T[k])
			}
		}
		g.R, g.T = w.R, w.T
		if g != w {
			t.Errorf("camera %d: %+v, want %+v", i, g, w)
		}
	}
}

// The text is what INRIA's readers and SIBR look for: camera to world, rows.
func TestCamerasGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cameras.json")
	// The camera stands at (1, 2, 3) and looks along the world's x axis.
	c := scene.Camera{Name: "p.jpg", Width: 4, Height: 2, Fx: 3, Fy: 5, Cx: 2, Cy: 1,
		R: [9]float64{0, -1, 0, 0, 0, -1, 1, 0, 0}, T: [3]float64{2, 3, -1}}
	must.Do(t, WriteCameras(path, []scene.Camera{c}))
	got := must.Get(os.ReadFile(path))(t)
	want := `[{"id":0,"img_name":"p.jpg","width":4,"height":2,"position":[1,2,3],"rotation":[[0,0,1],[-1,0,0],[0,-1,0]],"fy":5,"fx":3,"cx":2,"cy":1}]` + "\n"
	if s := strings.ReplaceAll(string(got), "-0,", "0,"); strings.ReplaceAll(s, "-0]", "0]") != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReadCamerasRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cameras.json")
	entry := `{"img_name":"p","width":4,"height":2,"position":[1,2,3],"rotation":[[0,0,1],[-1,0,0],[0,-1,0]],"fy":5,"fx":3}`
	cases := map[string]string{
		``:                              "JSON",
		`{}`:                            "the file holds no JSON list",
		`[3]`:                           "entry 0: expected an object, got 3",
		`[]`:                            "empty",
		`[` + entry + `,` + entry + `]`: `entries 0 and 1 are both named "p"`,
		`[` + strings.Replace(entry, `"p"`, `"../p"`, 1) + `]`:                         "relative path",
		`[` + strings.Replace(entry, `"p"`, `"/etc/p"`, 1) + `]`:                       "relative path",
		`[` + strings.Replace(entry, `"p"`, `"`+strings.Repeat("p", 252)+`"`, 1) + `]`: "256 bytes",
		`[` + strings.Replace(entry, `[1,2,3]`, `[1,1e300,3]`, 1) + `]`:                "beyond 1e+15",
		`[` + strings.Replace(entry, `"p"`, `""`, 1) + `]`:                             "relative path",
		`[` + strings.Replace(entry, `[1,2,3]`, `[1,null,3]`, 1) +
			`]`: "entry 0: field position is null at 1",
		`[` + strings.Replace(entry, `[0,0,1]`, `[0,null,1]`, 1) +
			`]`: "entry 0: row 0 of field rotation is null at 1",
		`[` + strings.Replace(entry, `[1,2,3]`, `null`, 1) +
			`]`: "entry 0: there is no field position",
		`[` + strings.Replace(entry, `"fx":3`, `"fx":null`, 1) + `]`: "entry 0: there is no field fx",
		`[` + entry + `,` + strings.Replace(entry, `[1,2,3]`, `[1,NaN,3]`, 1) +
			`]`: "entry 1, line 1: not JSON: NaN is not a number",
		`[` + strings.Replace(entry, `"width":4`, `"width":0`, 1) + `]`:              "size",
		`[` + strings.Replace(entry, `"width":4`, `"width":1000000`, 1) + `]`:        "size",
		`[` + strings.Replace(entry, `"fx":3`, `"fx":0`, 1) + `]`:                    "focal",
		`[` + strings.Replace(entry, `"fx":3`, `"fx":3,"cx":1`, 1) + `]`:             "one of cx, cy",
		`[` + strings.Replace(entry, `"fx":3`, `"fx":3,"camera_model":"x"`, 1) + `]`: "camera_model",
		`[` + strings.Replace(entry, `[0,0,1]`, `[0,0,2]`, 1) + `]`:                  "off a rotation",
		`[` + strings.Replace(entry, `[0,0,1]`, `[0,0,-1]`, 1) + `]`:                 "mirror",
	}
	for key, bad := range map[string]string{
		`"img_name":"p"`: `"img_name":7`, `"width":4`: `"width":"4"`, `"height":2`: `"height":2.5`,
		`"position":[1,2,3]`: `"position":{"x":1}`, `"fy":5`: `"fy":[5]`,
		`"rotation":[[0,0,1]`: `"rotation":[["a",0,1]`, `"fx":3`: `"cx":"1","fx":3`,
	} {
		name := strings.Split(bad, `"`)[1]
		cases[`[`+strings.Replace(entry, key, bad, 1)+`]`] = "field " + name + " is "
		cases[`[`+entry+`,`+strings.Replace(strings.Replace(entry, key, bad, 1), `"p"`, `"q"`, 1)+`]`] = "entry 1: "
	}
	for key, bad := range map[string]string{`"position":[1,2,3]`: `"position":[1,2]`, `[0,0,1]`: `[0,0,1,0]`,
		`,[0,-1,0]]`: `]`, `,"fx":3`: ``, `"img_name":"p",`: ``} {
		cases[`[`+strings.Replace(entry, key, bad, 1)+`]`] = "entry 0: "
	}
	for text, want := range cases {
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		_, _, err := ReadCameras(path)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" || strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "scene.") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	must.Do(t, os.WriteFile(path, []byte(`[`+strings.ReplaceAll(entry, "[0,0,1]", "[0,0.0001,1]")+`]`),
		0o644))
	cams, _, err := ReadCameras(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, off, err := geom.NearestRotation(cams[0].R); err != nil || off > 1e-15 {
		t.Errorf("a rounded rotation is off by %g after reading", off)
	}
}

func TestCfgArgs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cfg_args")
	must.Do(t, WriteCfgArgs(path, CfgArgs{SHDegree: 3, SourcePath: "/d/it's \\ \u00e4\n\xff", ModelPath: "out",
		Images: "images", Resolution: -1, Eval: true}))
	got := must.Get(os.ReadFile(path))(t)
	want := `Namespace(sh_degree=3, source_path='/d/it\'s \\ ä\U0000000a\udcff', model_path='out', images='images', depths='', resolution=-1, ` +
		`white_background=False, train_test_exp=False, data_device='cuda', eval=True)`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Errors of package json name the key and no type of this program.
func TestJSONError(t *testing.T) {
	var v struct {
		List   []float64 `json:"list"`
		Inner  struct{ N uint32 }
		Text   map[string]string
		Whole  int
		Truth  bool
		Number float64
	}
	for text, want := range map[string]string{
		`{"list":"x"}`:       "field list: string is there, a list is expected",
		`{"list":["x"]}`:     "field list: string is there, a number is expected",
		`{"Inner":{"N":-1}}`: "field Inner.N: number -1 is there, a whole number from 0 is expected",
		`{"Text":[1]}`:       "field Text: array is there, an object is expected",
		`{"Whole":1.5}`:      "field Whole: number 1.5 is there, a whole number is expected",
		`{"Truth":"yes"}`:    "field Truth: string is there, true or false is expected",
		`[1]`:                "array is there, an object is expected",
	} {
		if err := strictjson.JSONError(json.Unmarshal([]byte(text), &v)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := strictjson.JSONError(os.ErrNotExist); err != os.ErrNotExist || strictjson.JSONError(nil) != nil {
		t.Error(err)
	}
}

func FuzzCameras(f *testing.F) {
	const entry = `{"img_name":"a/p","width":4,"height":2,"position":[1,2,3],"rotation":[[0,0,1],[-1,0,0],[0,-1,0]],"fy":5,"fx":3`
	f.Add([]byte(`[` + entry + `}]`))
	f.Add([]byte(`[` + entry + `,"cx":1e2,"cy":-1,"camera_model":"fisheye","id":"x"},` +
		strings.Replace(entry, "a/p", "b", 1) + `,"cx":null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var info CamerasInfo
		cams, err := ParseCameras(data, &info)
		if err != nil {
			if strings.Contains(err.Error(), "Go ") {
				t.Error(err)
			}
			return
		}
		for _, c := range cams {
			p := c.Center()
			if !geom.Finite(c.R[:]...) || !geom.Finite(c.T[:]...) || !geom.Finite(p[:]...) || !(c.Fx > 0 && c.Fy > 0) ||
				c.Width < 1 || c.Height < 1 || !filepath.IsLocal(c.Name) {
				t.Errorf("%+v", c)
			}
		}
	})
}
