package inspect

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

func TestInspectSmallPhotos(t *testing.T) {
	for _, test := range []struct {
		side, small int
		severity    Severity
	}{{16, 10, ""}, {15, 1, SeverityWarning}, {1, 7, SeverityWarning}, {1, 8, SeverityFatal}, {1, 10, SeverityFatal}} {
		c := scenetest.Ring(10, 1000)
		for i := range test.small {
			c.Cameras[i] = c.Cameras[i].Rescaled(test.side, test.side)
		}
		r := inspected(t, c, false)
		p, found := r.problem("small-photos")
		if found != (test.severity != "") || p.Severity != test.severity || found && (p.Count != test.small ||
			!strings.Contains(p.Remedy, "downscale")) {
			t.Errorf("%+v: %+v", test, r.Problems)
		}
	}
}

// lensOf makes the cameras of a capture views of photos of one calibration.
func lensOf(t *testing.T, c *scene.Capture, k scene.Calibration, n int) {
	for i := range c.Cameras[:n] {
		views := must.Get(k.Views(c.Cameras[i], k.Width, k.Height, 1))(t)
		c.Cameras[i] = views[0]
	}
}

func TestInspectLenses(t *testing.T) {
	opencv := func(d ...float64) scene.Calibration {
		return scene.Calibration{Model: scene.LensFullOpenCV, Width: 640, Height: 480,
			Params: append([]float64{500, 500, 320, 240}, append(d, make([]float64, 8-len(d))...)...)}
	}
	for name, test := range map[string]struct {
		k        scene.Calibration
		n        int
		severity Severity
		want     string
	}{
		"mild barrel":       {k: opencv(-0.1, 0.01), n: 10},
		"strong barrel":     {k: opencv(-0.3, 0.09), n: 10},
		"pincushion":        {k: opencv(0.2), n: 10},
		"folds in corners":  {k: opencv(-0.7), n: 10, severity: SeverityWarning, want: "folds over within the photo"},
		"one folds":         {k: opencv(-0.7), n: 1, severity: SeverityWarning, want: "1 of 10 cameras"},
		"folds near centre": {k: opencv(-50), n: 10, severity: SeverityFatal, want: "implausible"},
		"one is absurd":     {k: opencv(-50), n: 1, severity: SeverityWarning, want: "1 of 10 cameras is implausible"},
		"blown up":          {k: opencv(1e6), n: 10, severity: SeverityFatal, want: "implausible"},
		"tangential":        {k: opencv(0, 0, 0.3, 0.3), n: 10, severity: SeverityWarning, want: "folds over"},
		"fisheye": {k: scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 640, Height: 480,
			Params: []float64{250, 250, 320, 240, -0.02, 0.001, 0, 0}}, n: 10},
		"circular fisheye": {k: scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 640, Height: 480,
			Params: []float64{150, 150, 320, 240, 0.01, 0, 0, 0}}, n: 10},
		"fisheye that folds": {k: scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 640, Height: 480,
			Params: []float64{250, 250, 320, 240, -8, 0, 0, 0}}, n: 10, severity: SeverityFatal, want: "implausible"},
	} {
		c := scenetest.Ring(10, 1000)
		lensOf(t, c, test.k, test.n)
		t.Logf("%s: %+v", name, photo.LensSharesOf(&c.Cameras[0]))
		r := inspected(t, c, false)
		p, found := r.problem("folded-lenses")
		if found != (test.severity != "") || p.Severity != test.severity || !strings.Contains(p.Text, test.want) {
			t.Errorf("%s: %+v", name, r.Problems)
		}
	}
}

// The lenses of real captures are no finding: TestInspectRealCaptures. What is not shown is not counted, and the
// findings are the same.
func TestInspectCoverage(t *testing.T) {
	for name, change := range map[string]func(c *scene.Capture){
		"good":   func(*scene.Capture) {},
		"unseen": func(c *scene.Capture) { displace(c, 1000, 1e4) },
		"most":   func(c *scene.Capture) { displace(c, 600, 1e2) },
		"few":    func(c *scene.Capture) { displace(c, 400, 1e2) },
		"blind":  func(c *scene.Capture) { c.Cameras[2].T[2] = -80 },
	} {
		c := scenetest.Ring(10, 1000)
		change(c)
		all := inspected(t, c, false)
		brief := must.Get(Capture(t.Context(), c, Options{}))(t)
		if !reflect.DeepEqual(all.Problems, brief.Problems) {
			t.Errorf("%s: %+v, with all points counted %+v", name, brief.Problems, all.Problems)
		}
		if brief.PointsSeen != 0 || brief.Cameras[0].Points != 0 || name == "good" && all.Cameras[0].Points != 1000 {
			t.Errorf("%s: %v %v %v", name, brief.PointsSeen, brief.Cameras[0].Points, all.Cameras[0].Points)
		}
	}
	c := scenetest.Ring(10, 300000)
	v := coverage{c: c, stride: 2, counted: 150000}
	v.countByCamera(false)
	if n := v.countSeen(false); v.inView[0] > scene.BlindCamera || 2*n < v.counted || n == v.counted {
		t.Errorf("%d in view of a camera, %d seen by any: counted further than warnings need", v.inView[0], n)
	}
}

func displace(c *scene.Capture, n int, by float64) {
	for i := range c.Points[:n] {
		c.Points[i].Pos[1] += by
	}
}

// TestInspectPanoramas warns, with the size, of panoramas that cannot be whole; a row too many is none.
func TestInspectPanoramas(t *testing.T) {
	for _, test := range []struct {
		width, height int
		want          string
	}{{2000, 1000, ""}, {2000, 1002, ""},
		{2000, 900, "3 of 3 panoramas are not twice as wide as high, the first has 2000 x 900 pixels"},
		{2000, 2000, "2000 x 2000"}} {
		c := scenetest.Ring(3, 1000)
		k := scene.Calibration{Model: scene.LensEquirectangular, Width: test.width, Height: test.height,
			Params: []float64{float64(test.width), float64(test.height)}}
		var faces []scene.Camera
		for _, cam := range c.Cameras {
			views := must.Get(k.Views(cam, k.Width, k.Height, 4))(t)
			faces = append(faces, views...)
		}
		c.Cameras = faces
		r := inspected(t, c, false)
		p, found := r.problem("odd-panoramas")
		if found != (test.want != "") || !strings.Contains(p.Text, test.want) || found &&
			(p.Severity != SeverityWarning || p.Remedy == "") {
			t.Errorf("%+v: %+v", test, r.Problems)
		}
	}
}

// TestInspectFaces wants panoramas to be judged whole: each has faces that are smooth, or black, or show no point.
func TestInspectFaces(t *testing.T) {
	dir := t.TempDir()
	k := scene.Calibration{Model: scene.LensEquirectangular, Width: 256, Height: 128, Params: []float64{256, 128}}
	panoramas := func(sky, blurred, dark int) *scene.Capture {
		c := scenetest.Ring(8, 1000)
		cams := c.Cameras
		c.Cameras = nil
		for i, cam := range cams {
			cam.Path = filepath.Join(dir, cam.Name+".png")
			scenetest.WriteImage(t, cam.Path, scenetest.Paint(256, 128, func(x, y int) [4]uint8 {
				v := uint8(255 * ((x/2 + y/2) & 1))
				switch {
				case i == dark || i == sky && y < 40:
					v = 2
				case i == blurred:
					v = uint8(x / 2)
				case y > 90:
					v = 200
				}
				return [4]uint8{v, v, v, 255}
			}))
			if i == sky {
				cam.T[2] = 100
			}
			views := must.Get(k.Views(cam, 256, 128, 1))(t)
			c.Cameras = append(c.Cameras, views...)
		}
		return c
	}
	if r := inspected(t, panoramas(-1, -1, -1), true); len(r.Problems) > 0 {
		t.Errorf("%v", r.Problems)
	}
	r := inspected(t, panoramas(1, 2, 3), true)
	for code, name := range map[string]string{"far-cameras": "b", "blurred-photos": "c", "dark-photos": "d"} {
		if p, ok := r.problem(code); !ok || p.Count != 1 || !slices.Equal(p.Names, []string{name}) ||
			!strings.Contains(p.Text, "1 of 8 ") {
			t.Errorf("%s: %+v", code, p)
		}
	}
	for _, code := range []string{"blind-cameras", "small-photos"} {
		if p, ok := r.problem(code); ok {
			t.Errorf("%+v", p)
		}
	}
}
