package vksplat

import (
	"fmt"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/demo"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/synth"
)

// CaptureOptions say how a capture is read. The zero value finds everything itself.
type CaptureOptions struct {
	Images    string // folder of the photos, below the capture's or absolute; "": found
	Masks     string // folder of masks, likewise, white counts; "": masks beside the photos, if it is there
	Downscale int    // 1, 2, 4 or 8; 0 brings widths above 1600 pixels to 1600
	Format    string // "colmap", "transforms" or another word of --format; "": found
	Cameras   string // "auto" calibrates them when training; the folder of a COLMAP model; "": as the capture has them
	Strict    bool   // a photo that is missing or cannot be decoded is an error, and not left out
}

// Capture is photographs with their camera poses, and points that they see. It stays on disk until it is trained on.
type Capture struct {
	dir      string
	options  captured.Options
	cameras  []Camera
	warnings []string
}

// OpenCapture reads the poses of a capture: COLMAP's model beside the photos, a transforms.json of nerfstudio or
// instant-ngp, Blender's transforms_train.json, or the cameras that another program exported.
func OpenCapture(dir string, o CaptureOptions) (*Capture, error) {
	c := &Capture{dir: dir, options: captured.Options{
		Images: o.Images, Masks: o.Masks, Downscale: captured.DownscaleFlag(o.Downscale), Format: o.Format,
		Strict: o.Strict, Model: scene.AnyModel, Cameras: o.Cameras,
	}}
	if !slices.Contains([]int{0, 1, 2, 4, 8}, o.Downscale) {
		return nil, fault.Usagef("give 1, 2, 4 or 8, or 0 for automatic", "CaptureOptions.Downscale is %d", o.Downscale)
	}
	if o.Format != "" && !slices.Contains(scene.Formats, o.Format) {
		return nil, fault.Usagef("leave it empty to detect the format", "CaptureOptions.Format is %q", o.Format)
	}
	read, err := load.Capture(dir, c.options.Options())
	if err != nil {
		return nil, classified(err)
	}
	for _, cam := range read.Cameras {
		c.cameras = append(c.cameras, cameraOf(cam))
	}
	for _, w := range read.Warnings {
		c.warnings = append(c.warnings, w.String())
	}
	return c, nil
}

// check refuses a capture that OpenCapture has not read.
func (c *Capture) check() error {
	if c == nil || c.cameras == nil {
		return fault.Usagef("open one with OpenCapture", "there is no capture")
	}
	return nil
}

// Cameras returns the cameras of the photos, sorted by name.
func (c *Capture) Cameras() []Camera { return slices.Clone(c.cameras) }

// Warnings returns what is odd about the capture and does not keep it from being trained on, a sentence each.
func (c *Capture) Warnings() []string { return slices.Clone(c.warnings) }

// Camera is a place to see a model from, in the frame of the capture that the model was trained on.
type Camera struct {
	Name          string  // of its photo
	Width, Height int     // pixels
	Fx, Fy        float64 // focal lengths in pixels
	Cx, Cy        float64 // principal point in pixels; the middle of the top left pixel is 0.5, 0.5
	// R, row-major, and T take a point p to R p + T, where x points right, y down and z forward.
	R       [9]float64
	T       [3]float64
	Fisheye bool // equidistant, and not a pinhole
}

// Center is where the camera stands.
func (c Camera) Center() [3]float64 { return c.scene().Center() }

// cameraOf returns a camera of package scene.
func cameraOf(c scene.Camera) Camera {
	return Camera{Name: c.Name, Width: c.Width, Height: c.Height, Fx: c.Fx, Fy: c.Fy, Cx: c.Cx, Cy: c.Cy, R: c.R,
		T: c.T, Fisheye: c.Model == scene.Fisheye}
}

func (c Camera) scene() scene.Camera {
	s := scene.Camera{Name: c.Name, Width: c.Width, Height: c.Height, Fx: c.Fx, Fy: c.Fy, Cx: c.Cx, Cy: c.Cy, R: c.R,
		T: c.T}
	if c.Fisheye {
		s.Model = scene.Fisheye
	}
	return s
}

// maxSide bounds the sides of pictures, in pixels.
const maxSide = 1 << 15

// check refuses what cannot be drawn.
func (c Camera) check() error {
	hint := "take a camera of Capture.Cameras and change it"
	if min(c.Width, c.Height) < 1 || max(c.Width, c.Height) > maxSide {
		return fault.Usagef(hint, "camera of %d x %d pixels: sides are 1 to %d", c.Width, c.Height, maxSide)
	}
	if !(c.Fx > 0 && c.Fy > 0) {
		return fault.Usagef(hint, "camera with focal lengths %g and %g", c.Fx, c.Fy)
	}
	for _, x := range slices.Concat(c.R[:], c.T[:], []float64{c.Fx, c.Fy, c.Cx, c.Cy}) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fault.Usagef(hint, "camera with a non-finite number")
		}
	}
	if !isRotation(c.R) {
		return fault.Usagef(hint, "camera whose R is not a rotation: rows must be orthonormal, the determinant 1")
	}
	return nil
}

// isRotation reports whether the rows of r are x, y and z axes of length 1, to three digits.
func isRotation(r [9]float64) bool {
	x, y, z := [3]float64(r[:3]), [3]float64(r[3:6]), [3]float64(r[6:])
	cross := geom.Cross(x, y)
	for i := range 3 {
		if math.Abs(cross[i]-z[i]) > 1e-3 {
			return false
		}
	}
	return math.Abs(geom.Dot(x, x)-1) < 1e-3 && math.Abs(geom.Dot(y, y)-1) < 1e-3 && math.Abs(geom.Dot(x, y)) < 1e-3
}

// DemoOptions describe the capture that WriteDemo makes up. Zero fields take the defaults in brackets.
type DemoOptions struct {
	Photos        int // [48], at least 4
	Width, Height int // of the photos, pixels [256x192], at least 16
	Points        int // [5000], at least 4
}

// WriteDemo draws the photos of a made-up scene and writes a small capture into the folder dir. An earlier demo there
// is replaced; a folder with other files is refused.
func WriteDemo(dir string, o DemoOptions) error {
	for _, part := range []struct {
		name               string
		value, least, most int
	}{
		{"Photos", o.Photos, 4, synth.MaxImages}, // fewer are too few to train and to measure
		{"Width", o.Width, synth.MinSide, synth.MaxSide}, {"Height", o.Height, synth.MinSide, synth.MaxSide},
		{"Points", o.Points, synth.MinPoints, synth.MaxPoints},
	} {
		if part.value != 0 && (part.value < part.least || part.value > part.most) {
			return fault.Usagef(fmt.Sprintf("give %d to %d, or 0 for the default", part.least, part.most),
				"DemoOptions.%s is %d", part.name, part.value)
		}
	}
	if dir == "" {
		return fault.Usagef("name a folder to write", "no folder")
	}
	options := synth.Options{Images: o.Photos, Width: o.Width, Height: o.Height, Points: o.Points}
	if err := demo.Write(dir, options, "choose another folder"); err != nil {
		return classified(fmt.Errorf("write demo: %w", err))
	}
	return nil
}
