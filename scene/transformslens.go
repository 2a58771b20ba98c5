package scene

import (
	"math"
	"strings"
)

// frameLens is the calibration of a frame as its file has it: what is 0 is absent.
type frameLens struct {
	kind           LensModel // LensPinhole, lensOpenCVFisheye, lensFullOpenCV or LensEquirectangular; the coefficients say the rest
	width, height  int
	fx, fy         float64
	angleX, angleY float64 // field of view in radians
	cx, cy         float64
	centred        [2]bool // the principal point is the middle of the photo
	k              [6]float64
	p              [2]float64
}

// lensKinds are the names of camera_model that are known.
var lensKinds = map[string]LensModel{
	"": LensPinhole, "PINHOLE": LensPinhole, "SIMPLE_PINHOLE": LensPinhole, "PERSPECTIVE": LensPinhole, "OPENCV": LensPinhole,
	"SIMPLE_RADIAL": LensPinhole, "RADIAL": LensPinhole, "FULL_OPENCV": lensFullOpenCV,
	"OPENCV_FISHEYE": lensOpenCVFisheye, "FISHEYE": lensOpenCVFisheye, "SIMPLE_RADIAL_FISHEYE": lensOpenCVFisheye, "RADIAL_FISHEYE": lensOpenCVFisheye,
	"EQUIRECTANGULAR": LensEquirectangular,
}

// parseLens reads the intrinsics of a frame; what the frame lacks is taken from the
// top of the file.
func parseLens(f, top fields) (l frameLens, err error) {
	from := func(names ...string) fields {
		for _, n := range names {
			if f.has(n) {
				return f
			}
		}
		return top
	}
	if l.kind, err = parseLensKind(from("camera_model"), from("is_fisheye")); err != nil {
		return l, err
	}
	size, focal := from("w", "h"), from("fl_x", "fl_y", "camera_angle_x", "camera_angle_y")
	if l.width, err = size.side("w"); err != nil {
		return l, err
	}
	if l.height, err = size.side("h"); err != nil {
		return l, err
	}
	if (l.width == 0) != (l.height == 0) {
		return l, size.errorf("there is one of the fields w and h, both or none are expected")
	}
	for _, n := range []struct {
		name string
		from fields
		to   *float64
	}{
		{"fl_x", focal, &l.fx}, {"fl_y", focal, &l.fy}, {"camera_angle_x", focal, &l.angleX}, {"camera_angle_y", focal, &l.angleY},
		{"cx", from("cx"), &l.cx}, {"cy", from("cy"), &l.cy}, {"k1", from("k1"), &l.k[0]}, {"k2", from("k2"), &l.k[1]}, {"k3", from("k3"), &l.k[2]},
		{"k4", from("k4"), &l.k[3]}, {"k5", from("k5"), &l.k[4]}, {"k6", from("k6"), &l.k[5]}, {"p1", from("p1"), &l.p[0]}, {"p2", from("p2"), &l.p[1]},
	} {
		if *n.to, err = n.from.number(n.name); err != nil {
			return l, err
		}
		if math.Abs(*n.to) > maxCoordinate {
			return l, n.from.errorf("field %s is %g", n.name, *n.to)
		}
	}
	l.centred = [2]bool{!from("cx").has("cx"), !from("cy").has("cy")}
	return l, l.check(f, focal)
}

func parseLensKind(model, fisheye fields) (LensModel, error) {
	var name string
	if err := model.into("camera_model", &name, "a text"); err != nil {
		return 0, err
	}
	kind, known := lensKinds[strings.ToUpper(name)]
	if !known {
		return 0, model.errorf("field camera_model is %.40q; OPENCV, OPENCV_FISHEYE, EQUIRECTANGULAR, PINHOLE and others of COLMAP's are known", name)
	}
	var fish bool
	if err := fisheye.into("is_fisheye", &fish, "true or false"); err != nil {
		return 0, err
	}
	if fish && kind != LensEquirectangular {
		kind = lensOpenCVFisheye
	}
	return kind, nil
}

// check demands a focal length or a field of view.
func (l *frameLens) check(f, focal fields) error {
	if l.kind == LensEquirectangular {
		return nil
	}
	for _, n := range []struct {
		name string
		v    float64
		most float64
	}{{"fl_x", l.fx, maxCoordinate}, {"fl_y", l.fy, maxCoordinate}, {"camera_angle_x", l.angleX, math.Pi}, {"camera_angle_y", l.angleY, math.Pi}} {
		if focal.has(n.name) && !(n.v > 0 && n.v < n.most) {
			return focal.errorf("field %s is %g, it must be between 0 and %.4g", n.name, n.v, n.most)
		}
	}
	if l.fx == 0 && l.fy == 0 && l.angleX == 0 && l.angleY == 0 {
		return f.errorf("there is neither a field fl_x nor camera_angle_x, here or at the top of the file")
	}
	return nil
}

// calibration implements calibrator. The size, the focal lengths and the principal
// point may be left to the photo.
func (l frameLens) calibration(width, height int) Calibration {
	if l.width > 0 {
		width, height = l.width, l.height
	}
	out := Calibration{Model: l.kind, Width: width, Height: height}
	if l.kind == LensEquirectangular {
		out.Params = []float64{float64(width), float64(height)}
		return out
	}
	fx, fy := l.focals(float64(width), float64(height))
	cx, cy := l.cx, l.cy
	if l.centred[0] {
		cx = float64(width) / 2
	}
	if l.centred[1] {
		cy = float64(height) / 2
	}
	out.Params = []float64{fx, fy, cx, cy}
	k, p := l.k, l.p
	switch {
	case l.kind == lensOpenCVFisheye:
		out.Params = append(out.Params, k[:4]...)
	case k == [6]float64{} && p == [2]float64{}:
		out.Model = LensPinhole
	case l.kind == lensFullOpenCV || k[4] != 0 || k[5] != 0:
		out.Model = lensFullOpenCV
		out.Params = append(out.Params, k[0], k[1], p[0], p[1], k[2], k[3], k[4], k[5])
	case k[2] != 0 || k[3] != 0:
		out.Model = LensPolynomial
		out.Params = append(out.Params, k[0], k[1], k[2], k[3], p[0], p[1])
	default:
		out.Model = lensOpenCV
		out.Params = append(out.Params, k[0], k[1], p[0], p[1])
	}
	return out
}

// focals gives the focal lengths for a picture of so many pixels. One of an axis
// that has none of its own is that of the other: pixels are square.
func (l frameLens) focals(width, height float64) (fx, fy float64) {
	axis := func(f, angle, side float64) float64 {
		if f == 0 && angle > 0 {
			return side / 2 / math.Tan(angle/2)
		}
		return f
	}
	fx, fy = axis(l.fx, l.angleX, width), axis(l.fy, l.angleY, height)
	if fx == 0 {
		fx = fy
	}
	if fy == 0 {
		fy = fx
	}
	return fx, fy
}
