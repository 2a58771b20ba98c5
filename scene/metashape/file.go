package metashape

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"

	"vksplat/internal/geom"
	"vksplat/internal/textnum"
	"vksplat/scene"
)

// document is the root of an exported XML.
type document struct {
	XMLName xml.Name `xml:"document"`
	Chunks  []chunk  `xml:"chunk"`
}

type chunk struct {
	Label      string      `xml:"label,attr"`
	Enabled    string      `xml:"enabled,attr"`
	Sensors    []sensor    `xml:"sensors>sensor"`
	Components []component `xml:"components>component"`
	Cameras    group       `xml:"cameras"`
	Transform  *toWorld    `xml:"transform"` // of versions without components
}

type group struct {
	Cameras []camera `xml:"camera"`
	Groups  []group  `xml:"group"`
}

type camera struct {
	ID        string `xml:"id,attr"`
	Sensor    string `xml:"sensor_id,attr"`
	Component string `xml:"component_id,attr"`
	Master    string `xml:"master_id,attr"`
	Label     string `xml:"label,attr"`
	Enabled   string `xml:"enabled,attr"`
	Transform string `xml:"transform"`
}

type sensor struct {
	ID           string        `xml:"id,attr"`
	Master       string        `xml:"master_id,attr"`
	Type         string        `xml:"type,attr"`
	Resolution   resolution    `xml:"resolution"`
	Calibrations []calibration `xml:"calibration"`
	Rotation     string        `xml:"rotation"` // from its axes to those of the rig's master
	Location     string        `xml:"location"` // of its centre, in the axes of the master and units of the chunk
}

type resolution struct {
	Width  string `xml:"width,attr"`
	Height string `xml:"height,attr"`
}

type calibration struct {
	Type       string      `xml:"type,attr"`
	Class      string      `xml:"class,attr"`
	Resolution *resolution `xml:"resolution"`
	Numbers    []number    `xml:",any"`
}

// number is a parameter of a lens, as <k1>0.1</k1>.
type number struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
}

type component struct {
	ID        string   `xml:"id,attr"`
	Transform *toWorld `xml:"transform"`
}

// toWorld takes a chunk's coordinates to the world's.
type toWorld struct {
	Rotation    string `xml:"rotation"`
	Translation string `xml:"translation"`
	Scale       string `xml:"scale"`
}

func off(enabled string) bool { return enabled == "false" || enabled == "0" }

// parse reads an XML without looking at any other file.
func parse(data []byte) (*document, error) {
	var d document
	if err := xml.NewDecoder(bytes.NewReader(data)).Decode(&d); err != nil {
		return nil, fmt.Errorf("not a Metashape XML file: %w", err)
	}
	return &d, nil
}

// all adds the cameras of a group and the groups in it to a list.
func (g group) all(cams []camera) []camera {
	cams = append(cams, g.Cameras...)
	for _, in := range g.Groups { // deep ones would be copied at each level if they made lists of their own
		cams = in.all(cams)
	}
	return cams
}

// numbers reads exactly len(dst) numbers.
func numbers(text, what string, dst []float64) error {
	fields := strings.Fields(text)
	if len(fields) != len(dst) {
		return fmt.Errorf("%s has %d numbers, %d are expected", what, len(fields), len(dst))
	}
	for i, f := range fields {
		v, ok := textnum.Float(f)
		if !ok {
			return fmt.Errorf("%s: %.40q is not a number", what, f)
		}
		dst[i] = v
	}
	return nil
}

// similarity is p -> scale turn p + move.
type similarity struct {
	turn  [9]float64
	move  [3]float64
	scale float64
}

func (s similarity) apply(p [3]float64) [3]float64 {
	return geom.Add(geom.Scale(geom.Rotate(s.turn, p), s.scale), s.move)
}

// after is s of what is done first.
func (s similarity) after(first similarity) similarity {
	return similarity{geom.Product(s.turn, first.turn), s.apply(first.move), s.scale * first.scale}
}

// inverse undoes s, whose scale is 1.
func (s similarity) inverse() similarity {
	back := geom.Transposed(s.turn)
	return similarity{back, geom.TranslationOf(back, s.move), 1}
}

// onRig takes a sensor's coordinates to those of the master of its rig.
func (s sensor) onRig() (similarity, error) {
	return (&toWorld{Rotation: s.Rotation, Translation: s.Location}).similarity("sensor")
}

// similarity reads a transform of what; parts that are absent are those of the identity.
func (w *toWorld) similarity(what string) (s similarity, err error) {
	s = similarity{turn: geom.Identity, scale: 1}
	if w == nil {
		return s, nil
	}
	for _, part := range []struct {
		text, what string
		dst        []float64
	}{{w.Rotation, "the rotation of a " + what, s.turn[:]}, {w.Translation, "its translation", s.move[:]}} {
		if strings.TrimSpace(part.text) == "" {
			continue
		}
		if err := numbers(part.text, part.what, part.dst); err != nil {
			return s, err
		}
	}
	if strings.TrimSpace(w.Scale) != "" {
		var scale [1]float64
		if err := numbers(w.Scale, "the scale of a component", scale[:]); err != nil {
			return s, err
		}
		s.scale = scale[0]
	}
	if !geom.Finite(append(s.turn[:], s.move[0], s.move[1], s.move[2], s.scale)...) {
		return s, nil // and neither are the poses that come of it
	}
	if s.turn, _, _, err = geom.NearestRotation(s.turn); err != nil {
		return s, fmt.Errorf("the rotation of a %s: %w", what, err)
	}
	if !scene.InRange(s.move) || !(s.scale > 0 && s.scale < scene.MaxCoordinate) {
		return s, fmt.Errorf("a %s is moved by %g and scaled by %g", what, s.move, s.scale)
	}
	return s, nil
}

func (r resolution) size() (width, height int, err error) {
	w, err1 := strconv.Atoi(strings.TrimSpace(r.Width))
	h, err2 := strconv.Atoi(strings.TrimSpace(r.Height))
	if err1 != nil || err2 != nil || w < 1 || h < 1 || w > geom.MaxSide || h > geom.MaxSide {
		return 0, 0, fmt.Errorf("the resolution is %.20q x %.20q", r.Width, r.Height)
	}
	return w, h, nil
}

// lens gives the calibration of a sensor: the adjusted one, where there are several.
func (s sensor) lens() (out scene.Calibration, err error) {
	k, size := calibration{Type: s.Type}, s.Resolution
	for i, c := range s.Calibrations {
		if i == 0 || c.Class == "adjusted" {
			k = c
		}
	}
	if k.Resolution != nil {
		size = *k.Resolution
	}
	if out.Width, out.Height, err = size.size(); err != nil {
		return out, err
	}
	kind := k.Type
	if kind == "" {
		kind = s.Type
	}
	switch strings.ReplaceAll(strings.ToLower(kind), "_", "") {
	case "spherical":
		out.Model, out.Params = scene.LensEquirectangular, []float64{float64(out.Width), float64(out.Height)}
		return out, nil
	case "frame", "":
		out.Model = scene.LensSkewed
	case "fisheye", "equidistantfisheye":
		out.Model = scene.LensSkewedFisheye
	default:
		return out, fmt.Errorf("its camera type is %.40q; frame, fisheye (equidistant) and spherical are read", kind)
	}
	if len(s.Calibrations) == 0 {
		return out, fmt.Errorf("it has no calibration")
	}
	return out, k.fill(&out)
}

// fill sets the parameters of a lens. Those of a lens without distortion are a pinhole's.
func (k calibration) fill(out *scene.Calibration) error {
	v, finite := map[string]float64{}, true
	for _, n := range k.Numbers {
		var x [1]float64
		if name := strings.ToLower(n.XMLName.Local); strings.Contains(" f cx cy b1 b2 k1 k2 k3 k4 p1 p2 p3 p4 ",
			" "+name+" ") {
			if err := numbers(n.Text, "its "+name, x[:]); err != nil {
				return err
			}
			v[name], finite = x[0], finite && geom.Finite(x[0])
		}
	}
	if !finite { // its photos are left out
		v = map[string]float64{"f": math.NaN()}
	}
	f, b1 := v["f"], v["b1"]
	if finite && !(f > 0 && f < scene.MaxCoordinate && math.Abs(b1) < f) {
		return fmt.Errorf("its f is %g and its b1 %g", f, b1)
	}
	if v["p3"] != 0 || v["p4"] != 0 {
		return fmt.Errorf("its p3 and p4 are %g and %g: they must be 0, or the photos undistorted", v["p3"], v["p4"])
	}
	out.Params = []float64{f + b1, f, float64(out.Width)/2 + v["cx"], float64(out.Height)/2 + v["cy"],
		v["k1"], v["k2"], v["k3"], v["k4"], v["p2"], v["p1"], v["b2"]}
	if out.Model == scene.LensSkewed {
		plain := true
		for _, d := range out.Params[4:] {
			plain = plain && d == 0
		}
		if plain {
			out.Model, out.Params = scene.LensPinhole, out.Params[:4]
		}
	}
	return nil
}
