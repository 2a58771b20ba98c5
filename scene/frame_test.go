package scene_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// frameCapture has cameras around a centre and points among them, moved and scaled.
func frameCapture(scale float64, move [3]float64) *scene.Capture {
	c := &scene.Capture{Cameras: scenetest.TinyCameras(), Points: scenetest.TinyPoints(), Frame: scene.Identity()}
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		cam.T = geom.Scale(cam.T, scale)
		cam.T = geom.Sub(cam.T, geom.Rotate(cam.R, move))
	}
	for i := range c.Points {
		c.Points[i].Pos = geom.Add(geom.Scale(c.Points[i].Pos, scale), move)
	}
	return c
}

func TestNormalise(t *testing.T) {
	c := frameCapture(1, [3]float64{3, -2, 7})
	c.Normalise()
	var mean [3]float64
	var distances []float64
	for _, cam := range c.Cameras {
		p := cam.Center()
		mean = geom.Add(mean, geom.Scale(p, 1./scenetest.TinyPhotos))
		distances = append(distances, geom.Length(p))
	}
	slices.Sort(distances)
	if geom.Length(mean) > 1e-12 || !scenetest.Near(distances[scenetest.TinyPhotos/2], 1, 1e-12) ||
		!scenetest.Near(c.SceneScale, 1.1*distances[scenetest.TinyPhotos-1], 1e-12) {
		t.Errorf("mean %v, distances %v, scene scale %v", mean, distances, c.SceneScale)
	}
}

func TestNormaliseOfAFarCapture(t *testing.T) {
	want := frameCapture(1, [3]float64{})
	far := frameCapture(1000, [3]float64{5e6, 5e6, 5e6})
	want.Normalise()
	far.Normalise()
	if !scenetest.Near(far.Frame.Scale*1000, want.Frame.Scale, 1e-9) ||
		!scenetest.Near(far.SceneScale, want.SceneScale, 1e-9) {
		t.Errorf("frame %+v, scene scale %v; want %+v, %v", far.Frame, far.SceneScale, want.Frame, want.SceneScale)
	}
	for i, cam := range far.Cameras {
		for k := range 3 {
			if !scenetest.Near(cam.T[k], want.Cameras[i].T[k], 1e-9) {
				t.Errorf("%s: T %v, want %v", cam.Name, cam.T, want.Cameras[i].T)
			}
		}
		if cam.R != want.Cameras[i].R {
			t.Errorf("%s: the rotation changed", cam.Name)
		}
	}
	for i, p := range far.Points {
		for k := range 3 {
			if !scenetest.Near(p.Pos[k], want.Points[i].Pos[k], 1e-9) {
				t.Errorf("point %v, want %v", p.Pos, want.Points[i].Pos)
			}
		}
	}
}

func TestToCaptureInverts(t *testing.T) {
	move, origin := [3]float64{40, -30, 20}, [3]float64{38, -29, 21}
	plain, moved, c := frameCapture(7, move), frameCapture(7, geom.Sub(move, origin)), frameCapture(7, move)
	c.Normalise()
	for i, cam := range c.Cameras {
		back, less := c.Frame.ToCapture(cam, [3]float64{}), c.Frame.ToCapture(cam, origin)
		for k := range 3 {
			if !scenetest.Near(back.T[k], plain.Cameras[i].T[k], 1e-12) ||
				!scenetest.Near(less.T[k], moved.Cameras[i].T[k], 1e-12) {
				t.Errorf("%v and %v, want %v and %v", back.T, less.T, plain.Cameras[i].T, moved.Cameras[i].T)
			}
		}
		if got, want := back.Center(), plain.Cameras[i].Center(); geom.Length(geom.Sub(got, want)) > 1e-11 {
			t.Errorf("centre %v, want %v", got, want)
		}
	}
}

func TestNormaliseDegenerate(t *testing.T) {
	c := &scene.Capture{Frame: scene.Identity()}
	c.Normalise()
	same := scenetest.TinyCameras()
	for i := range same {
		same[i] = same[0]
	}
	for _, c := range []*scene.Capture{c, {Cameras: same, Frame: scene.Identity()}} {
		c.Normalise()
		if !(c.Frame.Scale > 0) || math.IsInf(c.Frame.Scale, 0) || !(c.SceneScale > 0) {
			t.Errorf("frame %+v, scene scale %v", c.Frame, c.SceneScale)
		}
	}
}

func TestSplit(t *testing.T) {
	c := &scene.Capture{Cameras: make([]scene.Camera, 17)}
	train, test := c.Split(8)
	if !slices.Equal(test, []int{0, 8, 16}) || len(train) != 14 {
		t.Error(train, test)
	}
	if train, test = c.Split(0); len(train) != 17 || test != nil {
		t.Error(train, test)
	}
}

func TestOrigin(t *testing.T) {
	close, far := frameCapture(1, [3]float64{90, 80, 70}), frameCapture(1, [3]float64{5e5, 4e6, -70})
	origin := func(c *scene.Capture, mode string) [3]float64 {
		t.Helper()
		o, err := c.Origin(mode)
		if err != nil {
			t.Error(err)
		}
		return o
	}
	if o := origin(close, "auto"); o != [3]float64{} {
		t.Error("auto moves a capture that is close:", o)
	}
	o := origin(far, "auto")
	var mean [3]float64
	for _, cam := range far.Cameras {
		mean = geom.Add(mean, geom.Scale(cam.Center(), 1./scenetest.TinyPhotos))
	}
	for k := range o {
		if o[k] != math.Trunc(o[k]) || math.Abs(o[k]-mean[k]) > 0.5001 {
			t.Errorf("origin %v of cameras around %v", o, mean)
		}
	}
	far.Normalise()
	if after := origin(far, "auto"); after != o {
		t.Errorf("origin %v after Normalise, %v before", after, o)
	}
	// A small scene is far away sooner: float32 would blur it.
	if o := origin(frameCapture(0.001, [3]float64{900, 800, 700}), "auto"); o == [3]float64{} {
		t.Error("auto leaves a small capture far away")
	}
	// One stray point is no reason.
	close.Points[0].Pos[1] = 2e4
	if o := origin(close, "auto"); o != [3]float64{} {
		t.Error("origin", o)
	}
	if o := origin(far, "keep"); o != [3]float64{} {
		t.Error("keep moves:", o)
	}
	if o := origin(far, "1, -2.5,3e5"); o != [3]float64{1, -2.5, 3e5} {
		t.Error("given origin", o)
	}
	for _, mode := range []string{"", "1,2", "1,2,x", "1,2,NaN", "1,2,3,4", "Auto"} {
		if _, err := far.Origin(mode); !errors.Is(err, fault.ErrUsage) || fault.Hint(err) == "" {
			t.Errorf("%q: %v", mode, err)
		}
	}
}

// The faces of a panorama are held out together.
func TestSplitKeepsPhotosTogether(t *testing.T) {
	c := &scene.Capture{}
	for _, p := range []string{"a", "b", "b", "b", "c", "d", "d", "e"} {
		cam := scene.Camera{Photo: p}
		if p == "a" || p == "c" || p == "e" {
			cam.Photo = ""
		}
		c.Cameras = append(c.Cameras, cam)
	}
	train, test := c.Split(3)
	if !slices.Equal(test, []int{0, 5, 6}) || !slices.Equal(train, []int{1, 2, 3, 4, 7}) {
		t.Error(train, test)
	}
	if _, test = c.Split(2); !slices.Equal(test, []int{0, 4, 7}) {
		t.Error(test)
	}
}

// TestMedian takes the mean of the two middle values of an even number: neither is more of a middle than the other.
func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 2}, 5.5}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 5, 1, 9}, 4.5}} {
		if got := scene.Median(slices.Clone(tt.values)); got != tt.want {
			t.Errorf("%v: %g, want %g", tt.values, got, tt.want)
		}
	}
}

// Photos that cannot be read hold their places, those that are missing do not.
func TestSplitCountsUnreadable(t *testing.T) {
	whole := scene.Capture{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		whole.Cameras = append(whole.Cameras, scene.Camera{Name: name})
	}
	held := func(c *scene.Capture) (names string) {
		_, test := c.Split(3)
		for _, i := range test {
			names += c.Cameras[i].Name
		}
		return names
	}
	for lost, want := range map[string]string{"": "adg", "a": "dg", "b": "adg", "c": "adg", "abf": "dg", "g": "ad", "de": "ag"} {
		c := scene.Capture{}
		for _, cam := range whole.Cameras {
			if strings.Contains(lost, cam.Name) {
				c.LeaveOut(cam.Name, true)
			} else {
				c.Cameras = append(c.Cameras, cam)
			}
		}
		c.LeaveOut("aa", false)
		if got := held(&c); got != want {
			t.Errorf("without %q: %q, want %q", lost, got, want)
		}
	}
}
