package transforms

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// matrix4 is a 4x4 matrix of a file: camera to world, y up, looking along -z.
type matrix4 [4][4]float64

// moving is the pose of a camera of the file at a time in seconds from the middle of the readout, by the file's own
// convention: it moves and turns along its own axes.
func moving(seconds float64, velocity, turn [3]float64) (m matrix4) {
	r := geom.RotationFromVector([3]float64{0.7, 0.2, -1.1})
	at := geom.Add([3]float64{1, 2, 3}, geom.Scale(geom.Rotate(r, velocity), seconds))
	r = geom.Product(r, geom.RotationFromVector(geom.Scale(turn, seconds)))
	for i := range 3 {
		m[i] = [4]float64{r[3*i], r[3*i+1], r[3*i+2], at[i]}
	}
	m[3][3] = 1
	return m
}

// parsed reads a file of one frame with these fields beside what it needs.
func parsed(t *testing.T, top, frame map[string]any) (*File, error) {
	t.Helper()
	frame["file_path"], frame["fl_x"] = "a.png", 100
	top["frames"] = []any{frame}
	data := must.Get(json.Marshal(top))(t)
	return Parse(data)
}

var velocity, turning = [3]float64{0.8, -0.5, 0.3}, [3]float64{0.9, 0.4, -1.2}

// TestMotion reads a camera that moves in every way that files say it and wants the pose of each row.
func TestMotion(t *testing.T) {
	at := func(seconds float64) matrix4 { return moving(seconds, velocity, turning) }
	const readout = 0.04
	for name, c := range map[string]struct{ top, frame map[string]any }{
		"velocities": {map[string]any{"rolling_shutter_time": readout}, map[string]any{"transform_matrix": at(0),
			"camera_linear_velocity": velocity, "camera_angular_velocity": turning}},
		"velocities, time of the frame": {map[string]any{"rolling_shutter_time": 7}, map[string]any{
			"transform_matrix": at(0), "rolling_shutter_time": readout, "camera_linear_velocity": velocity,
			"camera_angular_velocity": turning}},
		"two poses": {map[string]any{"rolling_shutter": []float64{3, 2, 1}}, map[string]any{
			"transform_matrix": at(-readout / 2), "transform_matrix_end": at(readout / 2),
			"rolling_shutter": []float64{0, 0, 1, 0}}},
		"instant-ngp": {map[string]any{"rolling_shutter": []float64{0, 0, 1}}, map[string]any{
			"transform_matrix_start": at(-readout / 2), "transform_matrix_end": at(readout / 2)}},
		// the poses are those of a longer time, in which the photo is read out from 0.25 to 0.65 on, exposed for 0.1
		"instant-ngp, exposed": {map[string]any{"rolling_shutter": []float64{0.25, 0, 0.4, 0.1}}, map[string]any{
			"transform_matrix_start": at(-0.5 * readout / 0.4), "transform_matrix_end": at(0.5 * readout / 0.4)}},
	} {
		f, err := parsed(t, c.top, c.frame)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cam := scene.Camera{R: f.Frames[0].Pose.R, T: f.Frames[0].Pose.T, Motion: f.Frames[0].Motion}
		for _, time := range []float64{-0.5, -0.1, 0, 0.5} {
			want, got := poseOf(t, at(time*readout)), cam.At(time)
			for i, x := range append(want.R[:], want.T[:]...) {
				if y := append(got.R[:], got.T[:]...)[i]; math.Abs(x-y) > 1e-12 {
					t.Errorf("%s: number %d of the pose at time %g is %g, want %g", name, i, time, y, x)
				}
			}
		}
	}
}

// TestMotionNone: what says nothing of a readout's time, or of a motion, stands still, at the very pose that is given.
func TestMotionNone(t *testing.T) {
	pose, end := moving(0, velocity, turning), moving(1, velocity, turning)
	for name, c := range map[string]struct{ top, frame map[string]any }{
		"time is 0":   {map[string]any{"rolling_shutter_time": 0}, map[string]any{"camera_linear_velocity": velocity}},
		"no speed":    {map[string]any{}, map[string]any{"camera_linear_velocity": []int{0, 0, 0}}},
		"no velocity": {map[string]any{"rolling_shutter_time": 0.03}, map[string]any{}},
		"null":        {map[string]any{"rolling_shutter_time": nil}, map[string]any{"camera_angular_velocity": nil}},
		"no times":    {map[string]any{}, map[string]any{"transform_matrix_end": end}},
		"times are 0": {map[string]any{"rolling_shutter": []float64{0, 0, 0, 0}},
			map[string]any{"transform_matrix_end": end}},
		"no end": {map[string]any{"rolling_shutter": []float64{0, 0, 1}}, map[string]any{}},
	} {
		c.frame["transform_matrix"] = pose
		f, err := parsed(t, c.top, c.frame)
		if err != nil || f.Frames[0].Motion != (scene.Motion{}) || f.Frames[0].unclear != nil ||
			f.Frames[0].Pose != poseOf(t, pose) {
			t.Errorf("%s: %+v, error %v", name, f, err)
		}
	}
}

// poseOf reads a matrix.
func poseOf(t *testing.T, m matrix4) pose {
	t.Helper()
	p := must.Get(PoseFromOpenGL([12]float64(slices.Concat(m[0][:], m[1][:], m[2][:]))))(t)
	return p
}

// TestMotionAcross: of a photo that is read out column by column the pose in the middle is taken, and a camera that
// stands still.
func TestMotionAcross(t *testing.T) {
	for name, times := range map[string][]float64{"across": {0.1, 0.4, 0}, "both": {0.1, 0.3, -0.2, 0.3}} {
		f, err := parsed(t, map[string]any{"rolling_shutter": times}, map[string]any{
			"transform_matrix":     moving(0, velocity, turning),
			"transform_matrix_end": moving(0.1, velocity, turning)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, middle := &f.Frames[0], times[0]+0.2
		want := poseOf(t, moving(0.1*middle, velocity, turning))
		for i, x := range append(want.R[:], want.T[:]...) {
			if y := append(got.Pose.R[:], got.Pose.T[:]...)[i]; math.Abs(x-y) > 1e-12 {
				t.Errorf("%s: number %d of the pose is %g, want %g", name, i, y, x)
			}
		}
		if got.Motion != (scene.Motion{}) || got.unclear == nil || got.Bad != nil ||
			!strings.Contains(got.unclear.Error(), "only photos that are read out row by row") {
			t.Errorf("%s: motion %v, error %v", name, got.Motion, got.unclear)
		}
	}
}

// TestMotionUndone: what nerfstudio did to a capture is undone of the way that cameras moved, too.
func TestMotionUndone(t *testing.T) {
	turn := geom.RotationFromVector([3]float64{0.4, 0.1, -0.8})
	m := [12]float64{turn[0], turn[1], turn[2], 1, turn[3], turn[4], turn[5], 2, turn[6], turn[7], turn[8], 3}
	f := must.Get(parsed(t, map[string]any{"rolling_shutter_time": 1, "applied_transform": [3][4]float64{
		[4]float64(m[0:4]), [4]float64(m[4:8]), [4]float64(m[8:12])}, "applied_scale": 0.5}, map[string]any{
		"transform_matrix": moving(0, velocity, turning), "camera_linear_velocity": velocity}))(t)
	cam := scene.Camera{R: f.Frames[0].Pose.R, T: f.Frames[0].Pose.T, Motion: f.Frames[0].Motion}
	records := []scene.Record{{Cam: cam}}
	must.Do(t, UndoApplied(&scene.Capture{Applied: f.applied}, records))
	was := records[0].Cam.At(0.5).Center() // recorded = 0.5 (turn was + move)
	got := geom.Scale(geom.Add(geom.Rotate(turn, was), [3]float64{1, 2, 3}), 0.5)
	if want := cam.At(0.5).Center(); geom.Length(geom.Sub(got, want)) > 1e-12 {
		t.Errorf("the last row's pose was recorded at %v, want %v", got, want)
	}
}

// TestMotionUnclear: a motion that cannot be told leaves a photo its pose, and the camera still; errors name the field.
func TestMotionUnclear(t *testing.T) {
	pose := moving(0, velocity, turning)
	bad := pose
	bad[0][3] = 1e300
	far := pose
	far[0][3] = 1e14
	fast := [3]float64{1, 2, 1e10}
	two := func(end, shutter any) map[string]any {
		return map[string]any{"transform_matrix_end": end, "rolling_shutter": shutter}
	}
	rows := []float64{0, 0, 1}
	for want, frame := range map[string]map[string]any{
		"camera_linear_velocity has 2 numbers": {"camera_linear_velocity": []float64{1, 2}},
		"camera_linear_velocity is null":       {"camera_linear_velocity": []any{1, 2, nil}},
		"rolling_shutter_time is \"fast\"":     {"rolling_shutter_time": "fast"},
		"camera_angular_velocity has 1 numbers": {"camera_linear_velocity": velocity,
			"camera_angular_velocity": []int{1}},
		"camera_angular_velocity is":                 {"rolling_shutter_time": 1e99, "camera_angular_velocity": fast},
		"rolling_shutter has 2 numbers":              two(pose, []float64{0, 1}),
		"field transform_matrix_end has 1 rows":      two([][]float64{{1, 0, 0, 0}}, rows),
		"field transform_matrix_end: the camera is":  two(bad, rows),
		"field rolling_shutter is [1e+300 0 1]":      two(pose, []float64{1e300, 0, 1}),
		"in the middle of the photo and moves by":    two(far, []float64{1e3, 0, 1}),
		"field rolling_shutter is \"no\", a list of": two(pose, "no"),
		"field transform_matrix_start has 1 rows":    {"transform_matrix_start": [][]float64{{1, 0, 0, 0}}},
		"field transform_matrix_start: the camera":   {"transform_matrix_start": bad},
	} {
		frame["transform_matrix"] = pose
		f, err := parsed(t, map[string]any{"rolling_shutter_time": 0.03}, frame)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		got := &f.Frames[0]
		if got.Bad != nil || got.Motion != (scene.Motion{}) || got.Pose != poseOf(t, pose) || got.unclear == nil ||
			!strings.Contains(got.unclear.Error(), want) {
			t.Errorf("%+v, want an error %q", got, want)
		}
	}
	// Velocities without a time are none that can be told, and the field that is wanted is named.
	for _, top := range []map[string]any{{}, {"rolling_shutter_time": nil}} {
		f, err := parsed(t, top, map[string]any{"transform_matrix": pose, "camera_angular_velocity": turning})
		if err != nil || f.Frames[0].unclear == nil || f.Frames[0].Motion != (scene.Motion{}) ||
			!strings.Contains(f.Frames[0].unclear.Error(), "no field rolling_shutter_time here or at the top") {
			t.Errorf("no time: %+v, error %v", f, err)
		}
	}
	// Without a pose there is no photo.
	if _, err := parsed(t, map[string]any{}, two(pose, rows)); err == nil ||
		!strings.Contains(err.Error(), "there is no field transform_matrix") {
		t.Errorf("no pose: error %v", err)
	}
	f, err := parsed(t, map[string]any{}, map[string]any{"transform_matrix_start": bad})
	if err != nil || f.Frames[0].Bad == nil || !strings.Contains(f.Frames[0].Bad.Error(), "transform_matrix_start") {
		t.Errorf("a bad pose at the start alone: %v, %v", f, err)
	}
}

// TestWrite: what is written comes back, lenses and motions too.
func TestWrite(t *testing.T) {
	var cams []scene.Camera
	for i, k := range []scene.Calibration{
		{Model: scene.LensPinhole, Params: []float64{100, 101, 33, 24}},
		{Model: scene.LensOpenCV, Params: []float64{100, 101, 33, 24, -0.2, 0.05, 0.001, 0.002}},
		{Model: scene.LensOpenCVFisheye, Params: []float64{60, 61, 33, 24, 0.01, 0.02, -0.01, 0.001}},
		{Model: scene.LensFullOpenCV,
			Params: []float64{100, 101, 33, 24, 0.3, 0.02, 0.001, 0.002, 0.01, 0.6, 0.1, 0.03}},
	} {
		k.Width, k.Height = 64, 48
		c := scene.Camera{Name: string(rune('a'+i)) + ".png", Width: 64, Height: 48, Fx: 100, Fy: 101, Cx: 33, Cy: 24,
			R: geom.RotationFromVector([3]float64{0.3, float64(i), -0.2}), T: [3]float64{1, 2, 3}}
		if i > 0 {
			c.Lens = &scene.Lens{Calibration: k}
		}
		if i != 1 {
			c.Motion = scene.Motion{Turn: [3]float64{0.01, 0.02, 0.03}, Move: [3]float64{-0.1, 0.1, 0.2}}
		}
		cams = append(cams, c)
	}
	file := filepath.Join(t.TempDir(), "transforms.json")
	must.Do(t, Write(file, "images", "points.ply", cams))
	data := must.Get(os.ReadFile(file))(t)
	f := must.Get(Parse(data))(t)
	if f.points != "points.ply" || len(f.Frames) != len(cams) {
		t.Fatalf("%+v", f)
	}
	for i, c := range cams {
		got := &f.Frames[i]
		k := got.Lens.Calibration(64, 48)
		want := []float64{c.Fx, c.Fy, c.Cx, c.Cy}
		if c.Lens != nil {
			want = c.Lens.Calibration.Params
			if k.Model != c.Lens.Calibration.Model {
				t.Errorf("camera %d: lens %v, want %v", i, k.Model, c.Lens.Calibration.Model)
			}
		}
		numbers := append(append(append(got.Pose.R[:], got.Pose.T[:]...), got.Motion.Turn[:]...), got.Motion.Move[:]...)
		numbers = append(numbers, k.Params...)
		wanted := append(append(append(c.R[:], c.T[:]...), c.Motion.Turn[:]...), c.Motion.Move[:]...)
		wanted = append(wanted, want...)
		if got.File != "images/"+c.Name || len(numbers) != len(wanted) {
			t.Fatalf("camera %d: %s with %d numbers", i, got.File, len(numbers))
		}
		for n, x := range wanted {
			if math.Abs(numbers[n]-x) > 1e-13 {
				t.Errorf("camera %d: number %d is %g, want %g", i, n, numbers[n], x)
			}
		}
	}
	cams[1].Lens = &scene.Lens{Calibration: scene.Calibration{Model: scene.LensFOV, Params: make([]float64, 5)}}
	if err := Write(file, "images", "points.ply", cams); err == nil || !strings.Contains(err.Error(), "FOV") {
		t.Errorf("error %v", err)
	}
}
