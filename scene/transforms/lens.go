package transforms

import (
	"math"
	"strings"

	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// frameLens is the calibration of a frame as its file has it: what is 0 is absent.
type frameLens struct {
	// LensPinhole, lensOpenCVFisheye, lensFullOpenCV or LensEquirectangular; the coefficients say the rest
	kind           scene.LensModel
	Width, Height  int
	fx, fy         float64
	angleX, angleY float64 // field of view in radians
	cx, cy         float64
	centred        [2]bool // the principal point is the middle of the photo
	k              [6]float64
	p              [2]float64

	Beyond string // the field that is not finite, or beyond what a lens may have; "" for none
}

// lensKinds are the names of camera_model that are known.
var lensKinds = map[string]scene.LensModel{
	"": scene.LensPinhole, "PINHOLE": scene.LensPinhole, "SIMPLE_PINHOLE": scene.LensPinhole,
	"PERSPECTIVE": scene.LensPinhole, "OPENCV": scene.LensPinhole,
	"SIMPLE_RADIAL": scene.LensPinhole, "RADIAL": scene.LensPinhole, "FULL_OPENCV": scene.LensFullOpenCV,
	"OPENCV_FISHEYE": scene.LensOpenCVFisheye, "FISHEYE": scene.LensOpenCVFisheye,
	"SIMPLE_RADIAL_FISHEYE": scene.LensOpenCVFisheye, "RADIAL_FISHEYE": scene.LensOpenCVFisheye,
	"EQUIRECTANGULAR": scene.LensEquirectangular,
}

// ParseLens reads the intrinsics of a frame; what the frame lacks is taken from the
// top of the file.
func ParseLens(f, top strictjson.Object) (l frameLens, err error) {
	from := func(names ...string) strictjson.Object {
		for _, n := range names {
			if f.Has(n) {
				return f
			}
		}
		return top
	}
	if l.kind, err = parseLensKind(from("camera_model"), from("is_fisheye")); err != nil {
		return l, err
	}
	size, focal := from("w", "h"), from("fl_x", "fl_y", "camera_angle_x", "camera_angle_y")
	if l.Width, err = size.Side("w"); err != nil {
		return l, err
	}
	if l.Height, err = size.Side("h"); err != nil {
		return l, err
	}
	if (l.Width == 0) != (l.Height == 0) {
		return l, size.Errorf("there is one of the fields w and h, both or none are expected")
	}
	for _, n := range []struct {
		name string
		from strictjson.Object
		to   *float64
	}{
		{"fl_x", focal, &l.fx}, {"fl_y", focal, &l.fy}, {"camera_angle_x", focal, &l.angleX},
		{"camera_angle_y", focal, &l.angleY},
		{"cx", from("cx"), &l.cx}, {"cy", from("cy"), &l.cy}, {"k1", from("k1"), &l.k[0]}, {"k2", from("k2"), &l.k[1]},
		{"k3", from("k3"), &l.k[2]},
		{"k4", from("k4"), &l.k[3]}, {"k5", from("k5"), &l.k[4]}, {"k6", from("k6"), &l.k[5]},
		{"p1", from("p1"), &l.p[0]}, {"p2", from("p2"), &l.p[1]},
	} {
		if *n.to, err = n.from.Number(n.name); err != nil {
			return l, err
		}
		if math.Abs(*n.to) > scene.MaxCoordinate {
			l.fx, l.Beyond = math.Inf(1), n.name // the photo is left out
			return l, nil
		}
	}
	l.centred = [2]bool{!from("cx").Has("cx"), !from("cy").Has("cy")}
	return l, l.check(f, focal)
}

func parseLensKind(model, fisheye strictjson.Object) (scene.LensModel, error) {
	var name string
	if err := model.Into("camera_model", &name, "a text"); err != nil {
		return 0, err
	}
	kind, known := lensKinds[strings.ToUpper(name)]
	if !known {
		return 0, model.Errorf("field camera_model is %.40q; OPENCV, OPENCV_FISHEYE, EQUIRECTANGULAR, PINHOLE and "+
			"others of COLMAP's are known", name)
	}
	var fish bool
	if err := fisheye.Into("is_fisheye", &fish, "true or false"); err != nil {
		return 0, err
	}
	if fish && kind != scene.LensEquirectangular {
		kind = scene.LensOpenCVFisheye
	}
	return kind, nil
}

// check demands a focal length or a field of view.
func (l *frameLens) check(f, focal strictjson.Object) error {
	if l.kind == scene.LensEquirectangular {
		return nil
	}
	for _, n := range []struct {
		name string
		v    float64
		most float64
	}{{"fl_x", l.fx, scene.MaxCoordinate}, {"fl_y", l.fy, scene.MaxCoordinate}, {"camera_angle_x", l.angleX, math.Pi},
		{"camera_angle_y", l.angleY, math.Pi}} {
		if focal.Has(n.name) && !(n.v > 0 && n.v < n.most) {
			return focal.Errorf("field %s is %g, it must be between 0 and %.4g", n.name, n.v, n.most)
		}
	}
	for name, other := range map[string]string{"fl_x": "fl_y", "fl_y": "fl_x"} {
		if _, there := focal.Members[name]; there && !focal.Has(name) && focal.Has(other) {
			return focal.Errorf("field %s is null, a number is expected; without the field, it is %s", name, other)
		}
	}
	if l.fx == 0 && l.fy == 0 && l.angleX == 0 && l.angleY == 0 {
		return f.Errorf("there is neither a field fl_x nor camera_angle_x, here or at the top of the file")
	}
	return nil
}

// Calibration implements calibrator. The size, the focal lengths and the principal
// point may be left to the photo.
func (l frameLens) Calibration(width, height int) scene.Calibration {
	if l.Width > 0 {
		width, height = l.Width, l.Height
	}
	out := scene.Calibration{Model: l.kind, Width: width, Height: height}
	if l.kind == scene.LensEquirectangular {
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
	case l.kind == scene.LensOpenCVFisheye:
		out.Params = append(out.Params, k[:4]...)
	case k == [6]float64{} && p == [2]float64{}:
		out.Model = scene.LensPinhole
	case l.kind == scene.LensFullOpenCV || k[4] != 0 || k[5] != 0:
		out.Model = scene.LensFullOpenCV
		out.Params = append(out.Params, k[0], k[1], p[0], p[1], k[2], k[3], k[4], k[5])
	case k[2] != 0 || k[3] != 0:
		out.Model = scene.LensPolynomial
		out.Params = append(out.Params, k[0], k[1], k[2], k[3], p[0], p[1])
	default:
		out.Model = scene.LensOpenCV
		out.Params = append(out.Params, k[0], k[1], p[0], p[1])
	}
	return out
}

// focals gives the focal lengths for a picture of the given size. One of an axis
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
