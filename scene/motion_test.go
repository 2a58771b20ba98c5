package scene

import (
	"errors"
	"math"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
)

// movingCamera is a camera that moves, of a pose that is no special one.
func movingCamera() Camera {
	c := Camera{Name: "photo", Width: 640, Height: 480, Fx: 500, Fy: 510, Cx: 330, Cy: 235,
		R:      geom.RotationFromVector([3]float64{0.4, -0.9, 0.3}),
		Motion: Motion{Turn: [3]float64{0.02, -0.03, 0.01}, Move: [3]float64{0.1, 0.2, -0.05}}}
	c.T = geom.TranslationOf(c.R, [3]float64{3, -2, 5})
	return c
}

// TestAt: the middle is the camera's own pose, the centre moves along the camera's axes from one edge to the other, and
// what the camera looks at moves against its turn.
func TestAt(t *testing.T) {
	c := movingCamera()
	if got := c.At(0); geom.Length(geom.Sub(got.T, c.T)) > 1e-14 {
		t.Errorf("the pose in the middle is %v, want %v", got.T, c.T)
	}
	way := geom.Sub(c.At(0.5).Center(), c.At(-0.5).Center())
	if d := geom.Sub(geom.Rotate(c.R, way), c.Motion.Move); geom.Length(d) > 1e-14 {
		t.Errorf("the centre moves by %v along the axes of the camera, want %v", geom.Rotate(c.R, way), c.Motion.Move)
	}
	c.Motion = Motion{Turn: [3]float64{0, 0.1, 0}} // to the right, as y points down
	ahead := geom.Add(c.Center(), geom.Rotate(geom.Transposed(c.R), [3]float64{0, 0, 1}))
	if p := c.At(1).ToCamera(ahead); math.Abs(math.Atan2(p[0], p[2])+0.1) > 1e-14 || math.Abs(p[1]) > 1e-14 {
		t.Errorf("what was ahead is seen at %v after a turn to the right by 0.1", p)
	}
}

// TestAsTakenMoved: a camera without distortion that moved goes through a lens that bends nothing, which shows what its
// photo shows; a turn that no photo was taken with is refused, with what to do.
func TestAsTakenMoved(t *testing.T) {
	c := movingCamera()
	taken := must.Get(c.AsTaken())(t)
	d := taken.Distortion
	if d == nil || d.Num != [6]float64{} || d.Blind || taken.Width != c.Width || taken.Motion != c.Motion {
		t.Fatalf("as taken: %+v, %+v", taken, d)
	}
	for k, want := range [2][2]float64{{-330.0 / 500, 310.0 / 500}, {-235.0 / 510, 245.0 / 510}} {
		if d.Min[k] != want[0] || d.Max[k] != want[1] {
			t.Errorf("axis %d: the photo shows %g to %g, want %g", k, d.Min[k], d.Max[k], want)
		}
	}
	if u := taken.Undistorted(); u.Distortion != nil || u.Fx != c.Fx {
		t.Errorf("without distortion: %+v", u)
	}
	face := c
	face.Photo = "panorama.jpg"
	if taken, err := face.AsTaken(); err != nil || taken.Distortion != nil {
		t.Errorf("a face of a panorama: %+v, %v", taken.Distortion, err)
	}
	still := c
	still.Motion = Motion{}
	if taken, err := still.AsTaken(); err != nil || taken.Distortion != nil {
		t.Errorf("a camera that stands still: %+v, %v", taken.Distortion, err)
	}
	c.Motion.Turn[1] = -0.6
	var f *fault.Error
	if _, err := c.AsTaken(); !errors.As(err, &f) || !strings.Contains(err.Error(), "turns by 34.4 degrees") ||
		!strings.Contains(f.Hint, "(seconds)") {
		t.Errorf("error %v", err)
	}
}

// TestMotionInFrames: what is scaled with a camera is how far its centre moves.
func TestMotionInFrames(t *testing.T) {
	capture := &Capture{Frame: Identity()}
	for i := range 3 {
		c := movingCamera()
		c.T[0] += 4 * float64(i)
		capture.Cameras = append(capture.Cameras, c)
	}
	was := capture.Cameras[0]
	at := was.At(0.5).Center()
	capture.Normalise()
	moved := capture.Cameras[0]
	scale, middle := capture.Frame.Scale, capture.Frame.Center
	want := geom.Scale(geom.Sub(at, middle), scale)
	if got := moved.At(0.5).Center(); scale == 1 || geom.Length(geom.Sub(got, want)) > 1e-13 {
		t.Errorf("the last row's pose is at %v, want %v", got, want)
	}
	back := capture.Frame.ToCapture(moved, [3]float64{})
	if d := geom.Sub(back.At(0.5).Center(), at); geom.Length(d) > 1e-12 || moved.Motion.Turn != was.Motion.Turn {
		t.Errorf("back in the capture it is at %v, want %v", back.At(0.5).Center(), at)
	}
}

// TestCheckTravel: no camera crosses the capture while it takes a photo.
func TestCheckTravel(t *testing.T) {
	cams := make([]Camera, 5)
	for i := range cams {
		cams[i] = movingCamera()
		cams[i].T = geom.TranslationOf(cams[i].R, [3]float64{float64(i), 0, 0}) // 1.2 from their mean
	}
	if err := CheckTravel(cams); err != nil {
		t.Error(err)
	}
	cams[2].Motion.Move = [3]float64{0, 30000, 0}
	if err := CheckTravel(cams); !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), "moves by 3e+04") {
		t.Errorf("error %v", err)
	}
}
