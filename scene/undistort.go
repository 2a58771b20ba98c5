package scene

import (
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
)

const (
	// widestPinhole is the angle from the axis up to which photos become pinhole pictures. At 60 degrees a pinhole
	// already spends eight times as many pixels on a solid angle as at its centre; beyond, the picture is mostly
	// stretched border.
	widestPinhole = math.Pi / 3
	// WidestFisheye is the angle from the axis beyond which pixels of a fisheye do not count: splats are culled where
	// they are not in front of the camera.
	WidestFisheye = 88 * math.Pi / 180
	// The bounds of COLMAP's image_undistorter on the size of the picture relative to the photo's.
	leastCrop, mostCrop = 0.2, 2.0
)

// Views returns the cameras to train on for one photo of width x height pixels as stored: cam has its name, pose and
// files already and gets size, intrinsics and lens here. downscale is LoadOptions.Downscale. The aspect of the photo is
// taken to be that of the calibration.
//
//   - Pinholes stay what they are, without a lens.
//   - Perspective lenses with distortion become pinholes of the same focal lengths, cropped to where every pixel has a
//     source, as COLMAP's image_undistorter does it with blank_pixels 0.
//   - Fisheyes, and other lenses that see more than 120 degrees across, become equidistant cameras of the same focal
//     lengths and the size of the photo; photo.Decode masks off what lies outside the photo or is too far from the
//     axis.
//   - Panoramas become the six faces of a cube.
//
// Errors are of type *fault.Error and kind fault.ErrData.
func (k Calibration) Views(cam Camera, width, height, downscale int) ([]Camera, error) {
	o, err := k.Optics(width, height)
	if err != nil {
		return nil, &fault.Error{Op: "use calibration", Path: cam.Name, Err: err,
			Hint: "calibrate again, or correct the camera's parameters in the capture"}
	}
	fish := o.fish()
	switch {
	case o.Plane == NoPlane:
		return k.faces(cam, width, downscale), nil
	case o.plain && !fish:
		return []Camera{k.unchanged(cam, Pinhole, width, height, downscale)}, nil
	}
	border := o.Border()
	if !fish {
		fish = border.Angle > widestPinhole
	}
	if fish && o.plain && border.Angle <= WidestFisheye {
		return []Camera{k.unchanged(cam, Fisheye, width, height, downscale)}, nil
	}
	cam.Lens = &Lens{Calibration: k, R: geom.Identity}
	cam.Lens.Width, cam.Lens.Height = TrainedSize(width, height, downscale)
	if fish {
		return []Camera{o.equidistant(cam, downscale)}, nil
	}
	out := o.crop(cam, border)
	if out.Width > MaxPixels/out.Height {
		return nil, &fault.Error{Op: "use calibration", Path: cam.Name,
			Err:  fmt.Errorf("its undistorted picture would have %d x %d pixels", out.Width, out.Height),
			Hint: "reduce the photos before training"}
	}
	w, h := TrainedSize(out.Width, out.Height, downscale)
	return []Camera{out.Rescaled(w, h)}, nil
}

// fish says whether the model is a fisheye's by name.
func (o *Optics) fish() bool {
	info, _ := o.model.Info()
	return info.Fish
}

// unchanged gives the camera whose photo needs no more than scaling.
func (k Calibration) unchanged(cam Camera, model CameraModel, width, height, downscale int) Camera {
	info, _ := k.Model.Info()
	n := info.Focals
	cam.Model, cam.Lens = model, nil
	cam.Width, cam.Height = k.Width, k.Height
	cam.Fx, cam.Fy, cam.Cx, cam.Cy = k.Params[0], k.Params[n-1], k.Params[n], k.Params[n+1]
	return cam.Rescaled(TrainedSize(width, height, downscale))
}

// equidistant gives the fisheye camera without distortion: as large as the photo, and with its scale at the centre.
func (o *Optics) equidistant(cam Camera, downscale int) Camera {
	centre := o.jacobian(0, 0)
	cam.Model = Fisheye
	cam.Width, cam.Height = int(o.Width), int(o.Height)
	cam.Fx, cam.Fy, cam.Cx, cam.Cy = o.fx*centre[0], o.fy*centre[3], o.cx, o.cy
	if o.fish() {
		cam.Fx, cam.Fy = o.fx, o.fy
	}
	return cam.Rescaled(TrainedSize(cam.Width, cam.Height, downscale))
}

// border is where the innermost ray of each side of a photo falls in a pinhole picture of the same intrinsics, and how
// far from the axis the border is seen.
type border struct {
	left, right, top, bottom float64 // pixels; infinitely far out if nothing is known
	Angle                    float64 // the largest from the axis, radians
}

// Border walks along the centres of the outermost pixels.
func (o *Optics) Border() border {
	w, h := o.Width, o.Height
	b := border{}
	side := func(n, x0, y0, dx, dy float64, axis int, inwards float64) float64 {
		e := edge{o: o, n: int(n), at: func(i int) (x, y float64) { return x0 + dx*float64(i), y0 + dy*float64(i) },
			axis: axis, inwards: inwards}
		e.walk()
		b.Angle = max(b.Angle, e.angle)
		return e.inner
	}
	b.left, b.right = side(h, 0.5, 0.5, 0, 1, 0, 1), side(h, w-0.5, 0.5, 0, 1, 0, -1)
	b.top, b.bottom = side(w, 0.5, 0.5, 1, 0, 1, 1), side(w, 0.5, h-0.5, 1, 0, 1, -1)
	return b
}

type edge struct {
	o       *Optics
	n       int // pixels
	at      func(i int) (x, y float64)
	axis    int     // 0: inner is an x, 1: a y
	inwards float64 // the sign of the direction to the middle of the photo
	last    [2]float64
	inner   float64 // innermost coordinate in the pinhole picture
	angle   float64 // largest seen
}

// edgeSamples is how many pixels of a side are looked at first; then all pixels around the innermost are.
const edgeSamples = 64

func (e *edge) walk() {
	e.inner = math.Inf(-1) * e.inwards
	middle, step := 0, max((e.n-1)/edgeSamples, 1)
	look := func(i int) {
		if c, ok := e.look(i); ok && (c-e.inner)*e.inwards > 0 {
			e.inner, middle = c, i
		}
	}
	for i := 0; i < e.n; i += step {
		look(i)
	}
	look(e.n - 1)
	for i, last := max(middle-step+1, 0), min(middle+step-1, e.n-1); i <= last; i++ {
		look(i)
	}
}

// look gives the coordinate of a pixel's ray in the pinhole picture.
func (e *edge) look(i int) (coordinate float64, ok bool) {
	o := e.o
	x, y := e.at(i)
	p, ok := o.ToPlane(x, y, e.last)
	if !ok {
		e.angle = max(e.angle, o.Angle(o.Limit)) // somewhere between the axis and here the lens reaches its limit
		return 0, false
	}
	e.last = p
	r := math.Hypot(p[0], p[1])
	e.angle = max(e.angle, o.Angle(r))
	if o.Plane == AnglePlane {
		if r >= maxTangentAngle {
			return 0, false
		}
		if r > 0 {
			p[0], p[1] = p[0]*math.Tan(r)/r, p[1]*math.Tan(r)/r
		}
	}
	if e.axis == 0 {
		return o.fx*p[0] + o.cx, true
	}
	return o.fy*p[1] + o.cy, true
}

// crop gives the pinhole camera of the photo's own scale, as small as it must be for every pixel to have a source. The
// rule is that of COLMAP (image/undistortion.cc): each axis is scaled by what the nearest ray of its two borders
// demands, sizes are rounded down, the focal lengths stay and the principal point scales with the size.
func (o *Optics) crop(cam Camera, b border) Camera {
	cam.Model = Pinhole
	cam.Width = cropSide(o.Width, o.cx, b.left, b.right)
	cam.Height = cropSide(o.Height, o.cy, b.top, b.bottom)
	cam.Fx, cam.Fy = o.fx, o.fy
	cam.Cx, cam.Cy = o.cx*float64(cam.Width)/o.Width, o.cy*float64(cam.Height)/o.Height
	return cam
}

// cropSide scales a side of n pixels with the principal point at c: lo and hi are the innermost rays of the borders
// before and behind it.
func cropSide(n, c, lo, hi float64) int {
	scale := 1 / max(c/(c-lo), (n-0.5-c)/(hi-c))
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) || math.IsNaN(scale) {
		scale = 1
	}
	return int(max(1, min(max(scale, leastCrop), mostCrop)*n))
}
