package opf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strings"

	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// What the parts of a project are.
const (
	projectFormat = "application/opf-project+json"
	camerasFormat = "application/opf-calibrated-cameras+json"
	listFormat    = "application/opf-camera-list+json"
	inputFormat   = "application/opf-input-cameras+json"
	gltfFormat    = "model/gltf+json"
)

// Find lists the projects in a folder.
func Find(root string) []string {
	return exported.Files(root, ".opf", func(head []byte) bool { return bytes.Contains(head, []byte(projectFormat)) })
}

type project struct {
	Items []struct {
		Type      string `json:"type"`
		Resources []struct {
			URI    string `json:"uri"`
			Format string `json:"format"`
		} `json:"resources"`
	} `json:"items"`
}

type cameraList struct {
	Cameras []listed `json:"cameras"`
}

// listed is a photo of the list.
type listed struct {
	ID  uint64 `json:"id"`
	URI string `json:"uri"`
}

type inputCameras struct {
	Sensors []struct {
		ID   uint64     `json:"id"`
		Size [2]float64 `json:"image_size_px"`
	} `json:"sensors"`
}

type calibratedCameras struct {
	Sensors []struct {
		ID        uint64    `json:"id"`
		Internals internals `json:"internals"`
	} `json:"sensors"`
	Cameras []struct {
		ID       uint64    `json:"id"`
		Sensor   uint64    `json:"sensor_id"`
		Position []float64 `json:"position"`
		Angles   []float64 `json:"orientation_deg"`
	} `json:"cameras"`
}

type internals struct {
	Type       string     `json:"type"`
	Principal  [2]float64 `json:"principal_point_px"`
	Focal      float64    `json:"focal_length_px"`
	Radial     [3]float64 `json:"radial_distortion"`
	Tangential [2]float64 `json:"tangential_distortion"`
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	var p project
	if err := decode(c.Model, &p); err != nil {
		return nil, err
	}
	var cameras calibratedCameras
	var list cameraList
	var input inputCameras
	for _, part := range []struct {
		format string
		into   any
		must   bool
	}{{camerasFormat, &cameras, true}, {listFormat, &list, true}, {inputFormat, &input, false}} {
		file, err := p.part(c, "", part.format)
		switch {
		case err != nil:
			return nil, exported.Bad(c.Model, err)
		case file != "":
			if err := decode(file, part.into); err != nil {
				return nil, err
			}
		case part.must:
			return nil, exported.Badf(c.Model, "it has no %s", part.format)
		}
	}
	records, err := cameras.records(c, list, input)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	if err := exported.Locate(c, records); err != nil {
		return nil, err
	}
	cloud, err := p.part(c, "calibration", gltfFormat)
	if err != nil {
		return nil, exported.Bad(c.Model, err)
	}
	if cloud == "" {
		return records, exported.Cloud(c)
	}
	if err := readCloud(c, cloud); err != nil {
		return nil, exported.Bad(cloud, err)
	}
	return records, nil
}

// decode reads a JSON file.
func decode(file string, into any) error {
	data, err := exported.Read(file)
	if err != nil {
		return err
	}
	data = strictjson.Finite(data)
	if _, err = strictjson.DecodeObject(data); err == nil {
		err = strictjson.JSONError(json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), into))
	}
	if err != nil {
		return exported.Bad(file, err)
	}
	return nil
}

// part finds the file of the first resource of a format, in items of a type or, with "", of any; "" if there is none.
func (p project) part(c *scene.Capture, item, format string) (string, error) {
	for _, i := range p.Items {
		if item != "" && i.Type != item {
			continue
		}
		for _, r := range i.Resources {
			if r.Format == format {
				return below(filepath.Dir(c.Model), r.URI)
			}
		}
	}
	return "", nil
}

// below gives the file of a relative URI, which must not lead out of the folder.
func below(dir, uri string) (string, error) {
	name, err := pathOf(uri)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("the uri %.80q leads out of the project's folder", uri)
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}

// pathOf gives the path of a URI reference: file:///c:/a%20b.jpg is /c:/a b.jpg.
func pathOf(uri string) (string, error) {
	u, err := url.Parse(strings.ReplaceAll(uri, `\`, "/"))
	if err != nil || u.Scheme != "" && u.Scheme != "file" {
		return "", fmt.Errorf("the uri %.80q names no file", uri)
	}
	return u.Path, nil
}

// records makes records of the calibrated cameras.
func (k calibratedCameras) records(c *scene.Capture, list cameraList, input inputCameras) ([]scene.Record, error) {
	names := map[uint64]string{}
	for _, photo := range list.Cameras {
		name, err := pathOf(photo.URI)
		if err != nil {
			return nil, err
		}
		names[photo.ID] = name
	}
	sizes := map[uint64][2]float64{}
	for _, s := range input.Sensors {
		sizes[s.ID] = s.Size
	}
	lenses := map[uint64]exported.Lens{}
	for _, s := range k.Sensors {
		lens, err := s.Internals.lens(sizes[s.ID])
		if err != nil {
			return nil, fmt.Errorf("sensor %d: %w", s.ID, err)
		}
		lenses[s.ID] = lens
	}
	var records []scene.Record
	for _, cam := range k.Cameras {
		name, named := names[cam.ID]
		lens, known := lenses[cam.Sensor]
		switch {
		case !named:
			return nil, fmt.Errorf("camera %d is not in the list of cameras", cam.ID)
		case !known:
			return nil, fmt.Errorf("camera %d is of sensor %d, which does not exist", cam.ID, cam.Sensor)
		case len(cam.Position) != 3 || len(cam.Angles) != 3:
			return nil, fmt.Errorf("camera %d has a position of %d and an orientation of %d numbers, 3 are expected",
				cam.ID, len(cam.Position), len(cam.Angles))
		}
		r := scene.Record{Cam: scene.Camera{Name: strings.TrimPrefix(name, "/")}, Lens: lens}
		axes := exported.FromOpenGL(turned([3]float64(cam.Angles)))
		err := exported.Pose(&r.Cam, axes, [3]float64(cam.Position))
		if angles := [3]float64(cam.Angles); !scene.InRange(angles) {
			err = scene.PoseError{Cause: fmt.Errorf("its orientation is %g", angles)}
		}
		if err != nil {
			r.Bad = exported.Badf(c.Model, "camera %d: %w", cam.ID, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// turned is Rx(omega) Ry(phi) Rz(kappa), of degrees.
func turned(degrees [3]float64) [9]float64 {
	var sin, cos [3]float64
	for i, d := range degrees {
		sin[i], cos[i] = math.Sincos(math.Mod(d, 360) * math.Pi / 180)
	}
	x := [9]float64{1, 0, 0, 0, cos[0], -sin[0], 0, sin[0], cos[0]}
	y := [9]float64{cos[1], 0, sin[1], 0, 1, 0, -sin[1], 0, cos[1]}
	z := [9]float64{cos[2], -sin[2], 0, sin[2], cos[2], 0, 0, 0, 1}
	return geom.Product(geom.Product(x, y), z)
}

// lens gives the calibration of a sensor; without a size, for photos as they are.
func (n internals) lens(size [2]float64) (exported.Lens, error) {
	w, h := size[0], size[1]
	if size != [2]float64{} && (w != math.Trunc(w) || h != math.Trunc(h) ||
		!(w >= 1 && h >= 1 && w <= geom.MaxSide && h <= geom.MaxSide)) {
		return nil, fmt.Errorf("its size is %g x %g", w, h)
	}
	k := scene.Calibration{Width: int(w), Height: int(h)}
	switch n.Type {
	case "spherical":
	case "perspective":
		if !(n.Focal > 0 && n.Focal < scene.MaxCoordinate) {
			return nil, fmt.Errorf("its focal length is %g", n.Focal)
		}
		k.Model = scene.LensPolynomial
		k.Params = []float64{n.Focal, n.Focal, n.Principal[0], n.Principal[1], n.Radial[0], n.Radial[1], n.Radial[2], 0,
			n.Tangential[0], n.Tangential[1]}
		if n.Radial == [3]float64{} && n.Tangential == [2]float64{} {
			k.Model, k.Params = scene.LensPinhole, k.Params[:4]
		}
	default:
		return nil, fmt.Errorf("its type is %.40q; perspective and spherical are read", n.Type)
	}
	return func(width, height int) scene.Calibration {
		out := k
		if out.Width == 0 {
			out.Width, out.Height = width, height
		}
		if n.Type == "spherical" {
			out.Model, out.Params = scene.LensEquirectangular, []float64{float64(out.Width), float64(out.Height)}
		}
		return out
	}, nil
}

var errCloud = errors.New("not a point cloud")
