package scene

import (
	"maps"
	"math"
	"slices"

	"vksplat/internal/geom"
)

// Frame maps a capture's coordinates to those of training: training = (capture - Center) * Scale.
type Frame struct {
	Center [3]float64
	Scale  float64
}

// Identity is the capture's own frame.
func Identity() Frame { return Frame{Scale: 1} }

// Normalise moves the capture into the training frame: the mean camera at the origin, the median camera distance from
// it 1. Held-out cameras do not count. The frame is computed and applied in float64, so that captures in metres around
// a far origin keep their precision. Cameras that are all in one place keep their scale.
func (c *Capture) Normalise() {
	_, mean, distances := spread(c.trainingCameras())
	f := Frame{Center: mean, Scale: 1}
	if middle := Median(distances); middle > 0 && !math.IsInf(1/middle, 0) {
		f.Scale = 1 / middle
	}
	if n := len(distances); n > 0 { // in order now
		c.SceneScale = 1.1 * distances[n-1] * f.Scale
	}
	if c.SceneScale == 0 {
		c.SceneScale = 1
	}
	c.apply(f)
}

// trainingCameras returns the cameras that are not held out; all, if every one is.
func (c *Capture) trainingCameras() (cams []Camera) {
	ids, test := c.Split(0)
	if len(ids) == 0 {
		ids = test
	}
	for _, id := range ids {
		cams = append(cams, c.Cameras[id])
	}
	return cams
}

// Training returns the capture without its held-out cameras: all that training may know. It shares the points.
func (c *Capture) Training() *Capture {
	t := *c
	t.Cameras, t.HeldOut = c.trainingCameras(), nil
	return &t
}

// NormaliseTo moves the capture, which is in its own frame, into a frame that was chosen before: that of the model that
// training continues with.
func (c *Capture) NormaliseTo(f Frame, sceneScale float64) {
	c.SceneScale = sceneScale
	c.apply(f)
}

// apply rewrites cameras and points, which are in the capture's own frame, in f.
func (c *Capture) apply(f Frame) {
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		// x_cam = R x + T with x = y/scale + centre; the camera's unit is scaled along: T' = (R centre + T) scale.
		for r := range 3 {
			t := cam.T[r]
			for k := range 3 {
				t += cam.R[3*r+k] * f.Center[k]
			}
			cam.T[r] = t * f.Scale
		}
		cam.Motion.Move = geom.Scale(cam.Motion.Move, f.Scale)
		cam.Depths = [2]float64{cam.Depths[0] * f.Scale, cam.Depths[1] * f.Scale}
	}
	for i := range c.Points {
		for k := range 3 {
			c.Points[i].Pos[k] = (c.Points[i].Pos[k] - f.Center[k]) * f.Scale
		}
	}
	c.Frame = f
}

// ToCapture returns the camera, which is in f, in the capture's own frame less origin.
func (f Frame) ToCapture(cam Camera, origin [3]float64) Camera {
	for r := range 3 {
		t := cam.T[r] / f.Scale
		for k := range 3 {
			t -= cam.R[3*r+k] * (f.Center[k] - origin[k])
		}
		cam.T[r] = t
	}
	cam.Motion.Move = geom.Scale(cam.Motion.Move, 1/f.Scale)
	cam.Depths = [2]float64{cam.Depths[0] / f.Scale, cam.Depths[1] / f.Scale}
	return cam
}

// Split divides the cameras, which are sorted by name, into those to train on and those held out. Where the capture's
// files say which photos are held out, these are, whatever n is. Otherwise it is every n-th photo, beginning with the
// first; n <= 0 holds none out. Photos that cannot be read count, and those that
// Calibrated omits. Cameras that share a photo stay together.
func (c *Capture) Split(n int) (train, test []int) {
	photo := -1
	more := slices.DeleteFunc(slices.Sorted(maps.Keys(c.LeftOut)), func(name string) bool { return !c.LeftOut[name] })
	for i, cam := range c.Cameras {
		if i == 0 || cam.Photo == "" || cam.Photo != c.Cameras[i-1].Photo {
			photo++
		}
		for len(more) > 0 && more[0] < cam.Name {
			photo, more = photo+1, more[1:]
		}
		held := n > 0 && photo%n == 0
		if c.HeldOut != nil {
			held = c.IsHeldOut(i)
		}
		if held {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}

// IsHeldOut reports whether the photo of a camera is held out, by the files or by a split.
func (c *Capture) IsHeldOut(camera int) bool { return c.HeldOut[c.Cameras[camera].PhotoName()] }

func (c Camera) PhotoName() string {
	if c.Photo != "" {
		return c.Photo
	}
	return c.Name
}

// Median returns the middle one of the values, which it sorts, or the mean of the two middle ones; 0 if there are none.
func Median[T int | float64](values []T) (m T) {
	slices.Sort(values)
	if n := len(values); n > 0 {
		m = (values[(n-1)/2] + values[n/2]) / 2
	}
	return m
}
