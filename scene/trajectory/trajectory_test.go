package trajectory

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// circle gives n cameras on a circle of a radius and a height around a point, looking at it; z is up.
func circle(n int, radius, height float64, at [3]float64) []scene.Camera {
	like := scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24, R: geom.Identity}
	out := make([]scene.Camera, n)
	for i := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		out[i] = LookingAt(like, geom.Add(at, [3]float64{radius * cos, radius * sin, height}), at, [3]float64{0, 0, 1})
	}
	return out
}

// looksAt checks that a camera has a point in the middle of its picture and up at its top.
func looksAt(t *testing.T, c scene.Camera, at, up [3]float64) {
	t.Helper()
	p := c.ToCamera(at)
	if !(p[2] > 0 && math.Hypot(p[0], p[1]) < 1e-6*p[2]) {
		t.Errorf("the point is at %v of the camera", p)
	}
	if v := geom.Rotate(c.R, up); !(math.Abs(v[0]) < 1e-9 && v[1] < 0) {
		t.Errorf("up is %v in the camera's axes", v)
	}
	if d := geom.Det3(c.R); math.Abs(d-1) > 1e-9 {
		t.Errorf("the rotation's determinant is %v", d)
	}
}

func TestOrbitAndEllipse(t *testing.T) {
	at, up := [3]float64{3, -2, 5}, [3]float64{0, 0, 1}
	cams := circle(24, 4, 1, at)
	focus := must.Get(focusPoint(cams))(t)
	scenetest.IsAt(t, "focus point", focus, at, 1e-9)
	for _, kind := range []string{Orbit, Ellipse} {
		path, err := Make(kind, cams, 10, 0, 0)
		if err != nil || len(path) != 10 {
			t.Fatalf("%s: %d cameras, %v", kind, len(path), err)
		}
		for i, c := range path {
			looksAt(t, c, at, up)
			d := geom.Sub(c.Center(), at)
			if r := math.Hypot(d[0], d[1]); math.Abs(r-4) > 0.2 || math.Abs(d[2]-1) > 1e-9 {
				t.Errorf("%s: camera %d is at %v of the focus point", kind, i, d)
			}
			if next := path[(i+1)%10].Center(); math.Abs(geom.Length(geom.Sub(next,
				c.Center()))-geom.Length(geom.Sub(path[1].Center(), path[0].Center()))) > 0.01 {
				t.Errorf("%s: step %d is of another length", kind, i)
			}
		}
	}
}

// TestUncovered counts what of a circle nobody has photographed.
func TestUncovered(t *testing.T) {
	at := [3]float64{3, -2, 5}
	whole := circle(36, 4, 1, at)
	way := circle(360, 3, 0.5, at)
	for name, test := range map[string]struct {
		cams []scene.Camera
		want int // of 360, those farther than 30 degrees
	}{
		"all around": {whole, 0}, "few": {circle(6, 4, 1, at), 0}, "three": {circle(3, 4, 1, at), 177},
		"a quarter": {whole[:10], 209}, "across the beginning": {append(whole[34:36:36], whole[:8]...), 209},
		"all one way": {[]scene.Camera{whole[0], whole[0]}, 0},
	} {
		if n := Uncovered(way, test.cams); n < test.want-2 || n > test.want+2 {
			t.Errorf("%s: %d of 360 are uncovered, want %d", name, n, test.want)
		}
	}
}

// TestEllipseAxes wants the ellipse to be as long and wide as the cameras are spread, wherever they point.
func TestEllipseAxes(t *testing.T) {
	cams := circle(64, 1, 0, [3]float64{})
	sin, cos := math.Sincos(0.4)
	for i, c := range cams {
		p := c.Center()
		u, v := 6*p[0], 2*p[1]
		cams[i] = LookingAt(c, [3]float64{cos*u - sin*v, sin*u + cos*v, 0.5}, [3]float64{}, [3]float64{0, 0, 1})
	}
	path := must.Get(Make(Ellipse, cams, 400, 0, 0))(t)
	long, wide := 0.0, 0.0
	for _, c := range path {
		p := c.Center()
		long, wide = max(long, math.Abs(cos*p[0]+sin*p[1])), max(wide, math.Abs(cos*p[1]-sin*p[0]))
	}
	if math.Abs(long-6) > 0.3 || math.Abs(wide-2) > 0.1 {
		t.Errorf("half axes %v and %v, want about 6 and 2", long, wide)
	}
}

func TestSpiral(t *testing.T) {
	var cams []scene.Camera
	like := scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24, R: geom.Identity}
	for i := range 25 {
		c := like
		c.T = [3]float64{float64(i%5) - 2, float64(i/5)*0.5 - 1, 0}
		cams = append(cams, c)
	}
	if _, err := Make(Orbit, cams, 10, 0, 0); err == nil || fault.Hint(err) == "" {
		t.Errorf("orbit of parallel cameras: %v", err)
	}
	path := must.Get(Make(Spiral, cams, 60, 2, 10))(t)
	for _, c := range path {
		looksAt(t, c, [3]float64{0, 0, 1 / (0.25/2 + 0.75/10)}, [3]float64{0, -1, 0})
		if p := c.Center(); math.Abs(p[0]) > 2.001 || math.Abs(p[1]) > 1.001 || math.Abs(p[2]) > 1e-9 {
			t.Errorf("camera at %v", p)
		}
	}
}

func TestInterp(t *testing.T) {
	cams := circle(7, 4, 1, [3]float64{})
	cams[3].Fx, cams[3].Fy = 90, 90
	path := must.Get(Make(Interp, cams, 6*10+1, 0, 0))(t)
	for i, c := range cams { // each tenth frame is a camera
		got := path[10*i]
		scenetest.IsAt(t, "centre", got.Center(), c.Center(), 1e-9)
		for k := range c.R {
			if math.Abs(got.R[k]-c.R[k]) > 1e-9 {
				t.Errorf("camera %d: rotation %v, want %v", i, got.R, c.R)
				break
			}
		}
		if math.Abs(got.Fx-c.Fx) > 1e-9 {
			t.Errorf("camera %d: focal length %v, want %v", i, got.Fx, c.Fx)
		}
	}
	worst := 0.0
	for i := 2; i < len(path); i++ { // no corners
		worst = max(worst, geom.Length(geom.Add(geom.Sub(path[i].Center(), geom.Scale(path[i-1].Center(), 2)),
			path[i-2].Center())))
	}
	if worst > 0.12 {
		t.Errorf("the way bends by %v from one frame to the next", worst)
	}
}

// TestFlyTimes wants keyframes at their times however uneven, and uniform motion kept.
func TestFlyTimes(t *testing.T) {
	like := scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24, R: geom.Identity}
	var keys []Keyframe
	for _, at := range []float64{0, 1, 4, 4.5} {
		c := like
		c.T = [3]float64{-2 * at, 0, 0}
		keys = append(keys, Keyframe{at, c})
	}
	times := []float64{-1, 0, 0.5, 2, 4, 4.25, 4.5, 9}
	for i, c := range Fly(keys, times) {
		scenetest.IsAt(t, "centre", c.Center(), [3]float64{2 * min(max(times[i], 0), 4.5), 0, 0}, 1e-9)
	}
}

func TestFramed(t *testing.T) {
	c := scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 33, Cy: 24}
	if got := Framed(c, 128, 96); got.Fx != 120 || got.Cx != 66 {
		t.Errorf("same aspect: %+v", got)
	}
	if got := Framed(c, 96, 48); got.Fx != 60 || got.Fy != 60 || got.Cx != 49 || got.Width != 96 {
		t.Errorf("wider: %+v", got)
	}
	if got := WithFOV(c, math.Pi/2); math.Abs(got.Fy-24) > 1e-9 || got.Cx != 32 {
		t.Errorf("field of view: %+v", got)
	}
}

func TestTrajectoryFiles(t *testing.T) {
	like := scene.Camera{Name: "a", Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24, R: geom.Identity}
	at, _ := parseTrajectory([]byte(`{"fps": 24, "width": 128, "height": 96, "keyframes": [
		{"time": 0, "position": [1, 2, 3], "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "fov": 90},
		{"time": 2, "position": [1, 2, 5], "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "focal": 96}]}`), like)
	if at == nil || at.FPS != 24 || len(at.Keys) != 2 || !at.OfModel {
		t.Fatalf("keyframes: %+v", at)
	}
	c := at.Keys[0].Camera
	scenetest.IsAt(t, "keyframe", c.Center(), [3]float64{1, 2, 3}, 1e-12)
	if c.Width != 128 || math.Abs(c.Fy-48) > 1e-9 || at.Keys[1].Camera.Fx != 96 {
		t.Errorf("lenses: %+v", at.Keys)
	}
	path, err := parseTrajectory(
		[]byte(`{"camera_type": "perspective", "render_height": 96, "render_width": 128, "fps": 30, "seconds": 1, "keyframes": [{"matrix": "[1,0,0]", "fov": 50}],
		"camera_path": [{"camera_to_world": [1,0,0,4, 0,1,0,5, 0,0,1,6, 0,0,0,1], "fov": 90, "aspect": 1.3}]}`), like)
	if err != nil || len(path.Frames) != 1 || path.OfModel {
		t.Fatalf("camera path: %+v, %v", path, err)
	}
	got := path.Frames[0]
	scenetest.IsAt(t, "camera path", got.Center(), [3]float64{4, 5, 6}, 1e-12)
	scenetest.IsAt(t, "ahead", [3]float64(got.R[6:9]), [3]float64{0, 0, -1}, 1e-12)
	scenetest.IsAt(t, "down", [3]float64(got.R[3:6]), [3]float64{0, -1, 0}, 1e-12)
	// x' = 0.5 (turn x + move): back to where it was.
	back, err := parseDataparser([]byte(`{"transform": [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3]], "scale": 0.5}`))
	if err != nil {
		t.Fatal(err)
	}
	scenetest.IsAt(t, "dataparser", back(got).Center(), [3]float64{10 - 2, -(8 - 1), 12 - 3}, 1e-9)
	frames, err := parseTrajectory(
		[]byte(`{"camera_angle_x": 0.9, "frames": [{"file_path": "a.png", "transform_matrix": [[1,0,0,1],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}]}`), like)
	if err != nil || len(frames.Frames) != 1 || frames.Frames[0].Width != 64 {
		t.Fatalf("transforms: %+v, %v", frames, err)
	}
}

func TestTrajectoryColmap(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"cameras.txt": "1 PINHOLE 64 48 60 61 32 24\n",
		"images.txt":  "1 1 0 0 0 -1 -2 -3 1 b.png\n\n2 1 0 0 0 0 0 0 1 a.png\n\n",
	}
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	path, err := Read(filepath.Join(dir, "images.txt"), scene.Camera{}, "")
	if err != nil || len(path.Frames) != 2 {
		t.Fatalf("%+v, %v", path, err)
	}
	scenetest.IsAt(t, "centre", path.Frames[1].Center(), [3]float64{1, 2, 3}, 1e-12)
	if path.Frames[0].Name != "a.png" || path.Frames[0].Fy != 61 {
		t.Errorf("%+v", path.Frames[0])
	}
}

func TestTrajectoryRefuses(t *testing.T) {
	like := scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24, R: geom.Identity}
	turn := `"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]`
	for text, want := range map[string]string{
		`{}`:               "none of the fields",
		`{"keyframes": 3}`: "field keyframes is 3",
		`{"frames": [{"file_path": "a.png", "fl_x": 30, "k1": NaN, "w": 4, "h": 3, "transform_matrix": ` +
			`[[1,0,0,1],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}]}`: "frame 0: field k1 is not a finite number",
		`{"keyframes": [{"position": [0, 0], ` + turn +
			`}]}`: "keyframe 0: field position has 2 numbers",
		`{"keyframes": [{"time": 1, "position": [0, 0, 0], ` + turn + `}, {"time": 1, "position": [0, 0, 0], ` + turn +
			`}]}`: "keyframe 1: field time is 1",
		`{"keyframes": [{"position": [0, 0, 0], ` + turn +
			`, "fov": 180}]}`: "field fov is 180",
		`{"keyframes": [{"position": [0, 0, 0], "rotation": [[1, 0, 0], [0, -1, 0], [0, 0, 1]]}]}`: "mirror",
		`{"width": 100000, "height": 5, "keyframes": [{}]}`:                                        "100000x5",
		`{"camera_type": "equirectangular", "camera_path": [{}]}`:                                  "projection equirect",
		`{"camera_path": [{"camera_to_world": [0,0,0,0, 0,0,0,0, 0,0,0,0, 0,0,0,1]}]}`:             "not a rotation",
		`{"fps": -1, "camera_path": [{"camera_to_world": [1,0,0,4, 0,1,0,5, 0,0,1,6, 0,0,0,1]}]}`:  "field fps is -1",
	} {
		if _, err := parseTrajectory([]byte(text), like); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzTrajectory(f *testing.F) {
	like := scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24, R: geom.Identity}
	turn := `"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]`
	f.Add([]byte(`{"fps": 24, "width": 8, "height": 6, "keyframes": [{"time": 0, "position": [1, 2, 3], ` + turn +
		`, "fov": 90}, {"time": 2, "position": [1, 2, 5], ` + turn + `}]}`))
	f.Add([]byte(`{"camera_path": [{"camera_to_world": [1,0,0,4, 0,1,0,5, 0,0,1,6, 0,0,0,1], "fov": 90}]}`))
	f.Add([]byte(`{"camera_angle_x": 0.9, "frames": [{"file_path": "a.png", "transform_matrix": [[1,0,0,1],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if back, err := parseDataparser(data); err == nil {
			back(like)
		}
		path, err := parseTrajectory(data, like)
		if err != nil {
			return
		}
		cams := path.Frames
		if path.Keys != nil {
			cams = Fly(path.Keys, []float64{-1, 0, 0.5, 1, 2})
		}
		if len(cams) == 0 {
			t.Fatal("no camera and no error")
		}
		for _, c := range cams {
			if c.Width < 1 || c.Height < 1 || !geom.Finite(c.R[:]...) || !geom.Finite(c.T[:]...) {
				t.Fatalf("%+v", c)
			}
		}
	})
}
