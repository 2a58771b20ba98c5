package opensfm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// Find lists the reconstructions of a capture: in its folder, or where OpenDroneMap has them.
func Find(root string) []string {
	var files []string
	for _, file := range exported.Existing(root, "reconstruction.json", "opensfm/reconstruction.json") {
		if bytes.HasPrefix(bytes.TrimSpace(exported.Head(file)), []byte("[")) {
			files = append(files, file)
		}
	}
	return files
}

type reconstruction struct {
	Cameras map[string]camera `json:"cameras"`
	Shots   map[string]shot   `json:"shots"`
	Points  map[string]point  `json:"points"`
}

type shot struct {
	Camera      string    `json:"camera"`
	Rotation    []float64 `json:"rotation"`
	Translation []float64 `json:"translation"`
}

type point struct {
	Coordinates []float64 `json:"coordinates"`
	Color       []float64 `json:"color"`
}

type camera struct {
	Model          string `json:"projection_type"`
	Width, Height  float64
	Focal          float64
	FocalX         *float64 `json:"focal_x"`
	FocalY         *float64 `json:"focal_y"`
	CX             float64  `json:"c_x"`
	CY             float64  `json:"c_y"`
	K1, K2, K3, K4 float64
	P1, P2         float64
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	data, err := exported.Read(c.Model)
	if err != nil {
		return nil, err
	}
	components, err := parse(data)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	best := 0
	var others []string
	for i, r := range components {
		if len(r.Shots) > len(components[best].Shots) {
			best = i
		}
		others = append(others, fmt.Sprintf("%d (%d photos)", i, len(r.Shots)))
	}
	if len(others) > 1 {
		c.Warn("other-components", fmt.Sprintf("using component %d with %d photos, the most of %d", best,
			len(components[best].Shots), len(others)), slices.Delete(others, best, best+1))
	}
	r := components[best]
	records, err := r.records(c)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	if err := exported.Locate(c, records); err != nil {
		return nil, err
	}
	bad, err := r.cloud(c)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	if len(c.Points) == 0 {
		return records, exported.Cloud(c)
	}
	c.WarnBadPoints(bad)
	return records, nil
}

// parse reads a file without looking at any other.
func parse(data []byte) ([]reconstruction, error) {
	list, err := strictjson.DecodeList(strictjson.Finite(data))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("it has no reconstruction")
	}
	var out []reconstruction
	for i, raw := range list {
		var r reconstruction
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("reconstruction %d: %w", i, strictjson.JSONError(err))
		}
		out = append(out, r)
	}
	return out, nil
}

// records makes records of the shots, by name.
func (r reconstruction) records(c *scene.Capture) ([]scene.Record, error) {
	lenses := map[string]exported.Lens{}
	var records []scene.Record
	for _, name := range slices.Sorted(maps.Keys(r.Shots)) {
		s := r.Shots[name]
		lens, made := lenses[s.Camera]
		if !made {
			cam, known := r.Cameras[s.Camera]
			if !known {
				return nil, fmt.Errorf("shot %.80q is of camera %.80q, which does not exist", name, s.Camera)
			}
			var err error
			if lens, err = cam.lens(); err != nil {
				return nil, fmt.Errorf("camera %.80q: %w", s.Camera, err)
			}
			lenses[s.Camera] = lens
		}
		if len(s.Rotation) != 3 || len(s.Translation) != 3 {
			return nil, fmt.Errorf("shot %.80q has a rotation of %d and a translation of %d numbers, 3 are expected",
				name, len(s.Rotation), len(s.Translation))
		}
		record := scene.Record{Cam: scene.Camera{Name: name}, Lens: lens}
		err := exported.ToCamera(&record.Cam, rotation([3]float64(s.Rotation)), [3]float64(s.Translation))
		if err != nil {
			record.Bad = exported.Badf(c.Model, "shot %.80q: %w", name, err)
		}
		records = append(records, record)
	}
	return records, nil
}

// rotation is that about an axis by its length in radians; none about one that is out of range.
func rotation(v [3]float64) [9]float64 {
	angle := geom.Length(v)
	switch {
	case angle == 0:
		return geom.Identity
	case !scene.InRange(v):
		return [9]float64{}
	}
	sin, cos := math.Sincos(angle / 2)
	r, _ := geom.RotationFromQuat([4]float64{cos, v[0] * sin / angle, v[1] * sin / angle, v[2] * sin / angle})
	return r
}

func (k camera) lens() (exported.Lens, error) {
	w, h := k.Width, k.Height
	if w != math.Trunc(w) || h != math.Trunc(h) || !(w >= 1 && h >= 1 && w <= geom.MaxSide && h <= geom.MaxSide) {
		return nil, fmt.Errorf("its size is %g x %g", w, h)
	}
	side := max(w, h)
	out := scene.Calibration{Width: int(w), Height: int(h)}
	fx, fy := k.Focal, k.Focal
	if k.FocalX != nil && k.FocalY != nil {
		fx, fy = *k.FocalX, *k.FocalY
	}
	pinhole := []float64{fx * side, fy * side, w/2 + k.CX*side, h/2 + k.CY*side}
	centred := []float64{k.Focal * side, k.Focal * side, w / 2, h / 2}
	switch k.Model {
	case "perspective", "":
		out.Model, out.Params = scene.LensOpenCV, append(centred, k.K1, k.K2, 0, 0)
	case "simple_radial":
		out.Model, out.Params = scene.LensOpenCV, append(pinhole, k.K1, 0, 0, 0)
	case "radial":
		out.Model, out.Params = scene.LensOpenCV, append(pinhole, k.K1, k.K2, 0, 0)
	case "brown":
		out.Model, out.Params = scene.LensPolynomial, append(pinhole, k.K1, k.K2, k.K3, 0, k.P1, k.P2)
	case "fisheye":
		out.Model, out.Params = scene.LensOpenCVFisheye, append(centred, k.K1, k.K2, 0, 0)
	case "fisheye_opencv":
		out.Model, out.Params = scene.LensOpenCVFisheye, append(pinhole, k.K1, k.K2, k.K3, k.K4)
	case "spherical", "equirectangular":
		out.Model, out.Params = scene.LensEquirectangular, []float64{w, h}
	default:
		return nil, fmt.Errorf("its projection_type is %.40q; perspective, simple_radial, radial, brown, fisheye, "+
			"fisheye_opencv and spherical are read", k.Model)
	}
	if out.Model != scene.LensEquirectangular && !(out.Params[0] > 0 && out.Params[1] > 0) {
		return nil, fmt.Errorf("its focal length is %g, %g", out.Params[0]/side, out.Params[1]/side)
	}
	if out.Model != scene.LensOpenCVFisheye && len(out.Params) > 4 &&
		!slices.ContainsFunc(out.Params[4:], func(x float64) bool { return x != 0 }) {
		out.Model, out.Params = scene.LensPinhole, out.Params[:4]
	}
	return exported.Fixed(out), nil
}

// cloud sets the points, in the order of their numbers, and counts those that are left out.
func (r reconstruction) cloud(c *scene.Capture) (bad int, err error) {
	ids := slices.SortedFunc(maps.Keys(r.Points), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, id := range ids {
		p := r.Points[id]
		if len(p.Coordinates) != 3 || len(p.Color) != 3 && len(p.Color) != 0 {
			return 0, fmt.Errorf("point %.40q has %d coordinates and %d colours, 3 are expected", id,
				len(p.Coordinates), len(p.Color))
		}
		out := scene.Point{Pos: [3]float64(p.Coordinates), Color: [3]uint8{128, 128, 128}}
		for k, v := range p.Color {
			out.Color[k] = scene.ToByte(v)
		}
		if !scene.InRange(out.Pos) {
			bad++
			continue
		}
		c.Points = append(c.Points, out)
	}
	return bad, nil
}
