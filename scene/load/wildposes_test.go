package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
	"vksplat/scene/synth"
	"vksplat/scene/trajectory"
)

// walkAround is a capture of photos around things on a table, some 4 units away, with points unless there are to be
// none.
func walkAround(t *testing.T, photos, points int) *scene.Capture {
	t.Helper()
	s := must.Get(synth.New(synth.Options{Images: photos, Width: 64, Height: 48, Points: max(points, 4)}))(t)
	c := &scene.Capture{Cameras: s.Cameras(), Frame: scene.Identity()}
	if points > 0 {
		c.Points = s.Points()
	}
	return c
}

// placed is a camera at a place with the rotation of another.
func placed(cam scene.Camera, at [3]float64) scene.Camera {
	cam.T = geom.Scale(geom.Rotate(cam.R, at), -1)
	return cam
}

// backwards is a camera that far back along its axis, with a lens that many times as long.
func backwards(cam scene.Camera, by, lens float64) scene.Camera {
	cam = placed(cam, geom.Sub(cam.Center(), geom.Scale([3]float64(cam.R[6:]), by)))
	cam.Fx, cam.Fy = cam.Fx*lens, cam.Fy*lens
	return cam
}

func TestWildPoses(t *testing.T) {
	away := [3]float64{0, -1, 0} // up, where no camera looks
	move := func(at float64, which ...int) func(c *scene.Capture) {
		return func(c *scene.Capture) {
			for k, i := range which {
				turn := [3]float64{0.1 * float64(k), 0, 0.2 * float64(k)}
				c.Cameras[i] = placed(c.Cameras[i], geom.Scale(geom.Add(away, turn), at*(1+float64(k))))
			}
		}
	}
	spot := func(c *scene.Capture) { // most photos are taken from one place
		for i := range 7 {
			c.Cameras[i] = placed(c.Cameras[i], [3]float64{1, 2, 3})
		}
	}
	both := func(a, b func(c *scene.Capture)) func(c *scene.Capture) { return func(c *scene.Capture) { a(c); b(c) } }
	for _, test := range []struct {
		name           string
		photos, points int
		change         func(c *scene.Capture)
		want           []int // left out
	}{
		{"none", 13, 300, func(*scene.Capture) {}, nil},
		{"a translation of 1e7", 13, 300, func(c *scene.Capture) { c.Cameras[4].T[0] = 1e7 }, []int{4}},
		{"the same without points", 13, 0, func(c *scene.Capture) { c.Cameras[4].T[0] = 1e7 }, []int{4}},
		{"of 1e15", 13, 300, func(c *scene.Capture) { c.Cameras[0].T[2] = 1e15 }, []int{0}},
		{"not a number", 13, 300, func(c *scene.Capture) { c.Cameras[0].T[2] = math.NaN() }, []int{0}},
		{"the first and the last", 13, 300, move(1e7, 0, 12), []int{0, 12}},
		{"just below half", 13, 300, move(1e7, 0, 2, 4, 6, 8, 10), []int{0, 2, 4, 6, 8, 10}},
		{"just below half, without points", 13, 0, move(1e7, 0, 2, 4, 6, 8, 10), []int{0, 2, 4, 6, 8, 10}},
		{"less wild", 13, 300, move(1000, 3), []int{3}},
		{"less wild, without points", 13, 0, move(1000, 3), nil},
		{"a hill, 20 times as far", 13, 300, move(80, 3), nil},
		{"far, looking at the scene by telephoto lens", 13, 300,
			func(c *scene.Capture) { c.Cameras[3] = backwards(c.Cameras[3], 800, 100) }, nil},
		{"far, the scene on a few pixels", 13, 300,
			func(c *scene.Capture) { c.Cameras[3] = backwards(c.Cameras[3], 4e4, 1) }, []int{3}},
		{"one place", 13, 300, spot, nil},
		{"one place, without points", 13, 0, spot, nil},
		{"one place and a wild pose", 13, 300, both(spot, move(1e7, 9)), []int{9}},
		{"one place and a wild pose, without points", 13, 0, both(spot, move(1e7, 9)), []int{9}},
		{"one place for all", 7, 0, spot, nil},
		{"four photos", 4, 300, move(1e7, 1), []int{1}},
		{"a circle", 400, 0, func(*scene.Capture) {}, nil},
		{"far from the origin", 13, 300, func(c *scene.Capture) {
			c.Cameras, c.Points = slices.Clone(c.Cameras), slices.Clone(c.Points)
			at := [3]float64{5e5, 5e6, 100}
			for i, cam := range c.Cameras {
				c.Cameras[i] = placed(cam, geom.Add(cam.Center(), at))
			}
			for i := range c.Points {
				c.Points[i].Pos = geom.Add(c.Points[i].Pos, at)
			}
			c.Cameras[7] = placed(c.Cameras[7], [3]float64{})
		}, []int{7}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := walkAround(t, test.photos, test.points)
			test.change(c)
			checkWild(t, c, test.want)
		})
	}
}

// checkWild wants these cameras to be left out, and the frame to be that of a capture that never had them.
func checkWild(t *testing.T, c *scene.Capture, want []int) {
	t.Helper()
	good, names := &scene.Capture{Frame: scene.Identity()}, []string{}
	for i, cam := range c.Cameras {
		if slices.Contains(want, i) {
			names = append(names, cam.PhotoName())
		} else {
			good.Cameras = append(good.Cameras, cam)
		}
	}
	names = slices.Compact(names)
	must.Do(t, load.DropWildPoses(c, false))
	w, warned := scenetest.WarningOf(c, "wild-poses")
	if warned != (len(names) > 0) || w.Count != len(names) || !slices.Equal(w.Names, scene.FirstNames(names)) {
		t.Errorf("warning %+v, want one of %q", w, names)
	}
	if !slices.Equal(c.Cameras, good.Cameras) {
		t.Fatalf("%d cameras are left, want %d", len(c.Cameras), len(good.Cameras))
	}
	c.Points = nil
	c.Normalise()
	if good.Normalise(); c.Frame != good.Frame || c.SceneScale != good.SceneScale || !(c.SceneScale < 100) {
		t.Errorf("frame %+v, scene scale %g, want %+v, %g", c.Frame, c.SceneScale, good.Frame, good.SceneScale)
	}
}

// TestWildLine has a drone fly along a line, the faces of panoramas, and one of these go astray as a whole.
func TestWildLine(t *testing.T) {
	line := walkAround(t, 40, 0)
	for i := range line.Cameras {
		line.Cameras[i] = placed(line.Cameras[i], [3]float64{float64(i), 0, 0})
	}
	checkWild(t, line, nil)
	panoramas := &scene.Capture{Frame: scene.Identity()}
	for photo, cam := range walkAround(t, 7, 0).Cameras {
		at := cam.Center()
		if photo == 5 {
			at = [3]float64{-1e8, 0, 0}
		}
		for face := range 6 {
			part := placed(cam, at)
			part.Name, part.Photo = fmt.Sprintf("%d/%d", photo, face), fmt.Sprintf("%d.png", photo)
			panoramas.Cameras = append(panoramas.Cameras, part)
		}
	}
	checkWild(t, panoramas, []int{30, 31, 32, 33, 34, 35})
}

// TestTooManyWildPoses refuses what would leave too little, or what is to be strict.
func TestTooManyWildPoses(t *testing.T) {
	for _, photos := range []int{3, 13} {
		c := walkAround(t, photos, 300)
		name := c.Cameras[1].Name
		c.Cameras[1].T[1] = -1e7
		err := load.DropWildPoses(c, photos > 3)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "1e+07") ||
			fault.Hint(err) == "" {
			t.Errorf("%d photos: %v, hint %q", photos, err, fault.Hint(err))
		}
	}
}

// TestLoadWildPoses reads captures of both formats with wild poses, whose photos are in no split and in inspect's
// report.
func TestLoadWildPoses(t *testing.T) {
	cams := scenetest.TinyCameras()
	cams[0].T[2] = 1e7
	colmap := loadtest.TinyCapture(t)
	loadtest.TinyModel(t, colmap, cams, scenetest.TinyPoints())
	frames := scenetest.TinyFrames("images/")
	frames[0]["transform_matrix"] = scenetest.OpenGL(cams[0])
	for name, root := range map[string]string{"colmap": colmap,
		"transforms": tinyTransforms(t, scenetest.TinyTop().With("frames", frames))} {
		c := loadtest.MustLoad(t, root, loadtest.AnyModel())
		if _, test := c.Split(8); len(c.Cameras) != scenetest.TinyPhotos-1 || c.Cameras[test[0]].Name != "p1.png" {
			t.Errorf("%s: %d cameras, %v held out", name, len(c.Cameras), test)
		}
		r := must.Get(inspect.Capture(context.Background(), c, inspect.Options{}))(t)
		i := slices.IndexFunc(r.Problems, func(p inspect.Problem) bool { return p.Code == "wild-poses" })
		if i < 0 || r.Problems[i].Severity != inspect.SeverityWarning || r.Problems[i].Remedy == "" ||
			!strings.Contains(r.Problems[i].String(), "1e+07") ||
			!slices.Equal(r.Problems[i].Names, []string{"p0.png"}) {
			t.Errorf("%s: %+v", name, r.Problems)
		}
	}
}

// TestBadPoses leaves out photos with invalid poses: in COLMAP's files, and in a transforms.json, which has no NaN.
func TestBadPoses(t *testing.T) {
	for name, values := range map[string][]float64{
		"NaN rotation": {math.NaN()}, "no rotation": {0, 0, 0, 0}, "NaN translation": {1, 0, 0, 0, math.NaN()},
		"far": {1, 0, 0, 0, 0, 0, -1e16},
	} {
		root := loadtest.TinyCapture(t)
		loadtest.Edit(t, root, "images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, values...) })
		checkBad(t, name, root, "p0.png")
		if _, err := trajectory.Read(filepath.Join(root, "sparse", "0", "images.bin"), scene.Camera{}, ""); err == nil {
			t.Errorf("%s: a trajectory of it was read", name)
		}
	}
	frames := scenetest.TinyFrames("images/")
	frames[2]["transform_matrix"] = [][]float64{{1, 0, 0, 1e20}, {0, 1, 0, 0}, {0, 0, 1, 0}}
	checkBad(t, "transforms", tinyTransforms(t, scenetest.TinyTop().With("frames", frames)), "p2.png")
}

func checkBad(t *testing.T, name, root, photo string) {
	t.Helper()
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "bad-poses"); !ok || len(c.Warnings) != 1 ||
		!slices.Equal(w.Names, []string{photo}) || len(c.Cameras) != scenetest.TinyPhotos-1 {
		text, _ := json.Marshal(c.Warnings)
		t.Errorf("%s: %d cameras, warnings %s", name, len(c.Cameras), text)
	}
	_, err := load.Capture(root, scene.LoadOptions{Model: scene.AnyModel, Strict: true})
	scenetest.CheckRefusal(t, err, nil, "", nil)
}

func TestInspectLoadWarnings(t *testing.T) {
	root := loadtest.TinyCapture(t)
	loadtest.Removed("images/p1.png")(t, root)
	scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), scenetest.TinyTop())
	r := inspected(t, loadtest.MustLoad(t, root, loadtest.AnyModel()))
	var codes []string
	for _, w := range r.Warnings() {
		codes = append(codes, w.Code)
	}
	slices.Sort(codes)
	if !slices.Equal(codes, []string{"few-points", "missing-photos", "other-format"}) {
		t.Errorf("%q", codes)
	}
	if p, _ := problem(r, "other-format"); p.Severity != inspect.SeverityNote {
		t.Errorf("%+v", p)
	}
	_, err := load.Capture(filepath.Join(root, "nowhere"), loadtest.AnyModel())
	failed := inspect.FailedReport("x", err)
	if err := failed.Fatal(); err == nil || !strings.Contains(err.Error(), "no such folder") || fault.Hint(err) == "" {
		t.Error(err)
	}
}
