package depth

import (
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// What the numbers of depth maps are.
const (
	KindAuto    = "auto"    // depth with a unit and in files of floats, else inverse
	KindDepth   = "depth"   // camera z
	KindInverse = "inverse" // its inverse, but for a scale and an offset of each photo
	KindRay     = "ray"     // the distance from the camera's centre
)

var Kinds = []string{KindAuto, KindDepth, KindInverse, KindRay}

type MapOptions struct {
	Dir  string  // their folder, below the capture's or absolute
	Kind string  // one of Kinds
	Unit float64 // of depths and distances, in the capture's; 0: found by points, or 1 where these do not tell
}

// paramsFile has INRIA's scales and offsets of inverse depth, beside the reconstruction.
const paramsFile = "depth_params.json"

const opMaps = "read depth maps"

type Result struct {
	Known   Known
	Kind    string
	Unit    float64  // of depths and distances
	Fitted  bool     // Unit, or the scales and offsets of inverse depths, were found by points
	Missing []string // photos without a map
	Off     []string // photos whose map does not fit their points
}

// reading is what a photo's map says: at the camera's pixels, of which it keeps some, and at those of the points.
type reading struct {
	list   []scene.KnownDepth
	values []float64 // of the map
	depths []float64 // of the points, at the same pixels
}

type mapFile struct {
	width, height, channels int
	values                  []float32 // row by row; of a depth 0, below it or not finite: nothing is known
}

// Maps reads the depth maps of a capture's photos: that of a/b.jpg is a/b.png, a/b.npy or a/b.exr, or has the photo's
// whole name in front of the extension. points are the depths of the capture's points in its photos, by which units,
// scales and offsets are found.
func Maps(c *scene.Capture, points Known, o MapOptions) (*Result, error) {
	dir, files, missing, err := filesOf(c, o.Dir, &depthForm)
	if err != nil {
		return nil, err
	}
	r := &Result{Known: make(Known, len(c.Cameras)), Kind: o.Kind, Unit: o.Unit, Missing: missing}
	params, err := readParams(filepath.Join(c.Model, paramsFile))
	if err != nil {
		return nil, err
	}
	r.choose(files, params != nil)
	maps := make([]reading, len(files))
	errs := make([]error, len(files))
	parallel.For(len(files), func(i int) {
		if files[i] != "" {
			maps[i], errs[i] = readMap(&c.Cameras[i], files[i], r.Kind, points[i])
		}
	})
	if err := refuseMaps(dir, files, errs); err != nil {
		return nil, err
	}
	if r.Kind == KindInverse {
		r.invert(c.Cameras, maps, params)
		return r, nil
	}
	return r, r.measure(dir, c.Cameras, maps)
}

// choose finds out what the maps hold.
func (r *Result) choose(files []string, params bool) {
	if r.Kind != "" && r.Kind != KindAuto {
		return
	}
	r.Kind = KindInverse
	for _, f := range files {
		if ext := path.Ext(f); r.Unit > 0 || !params && (ext == ".npy" || ext == ".exr") {
			r.Kind = KindDepth
		}
	}
}

// filesOf finds the maps of all photos below dir, which it returns as a path, and names those that have none.
func filesOf(c *scene.Capture, dir string, f *form) (folder string, files, missing []string, err error) {
	if dir, err = photo.Below(c.Root, dir, f.op, f.setting); err != nil {
		return dir, nil, nil, err
	}
	files, locator := make([]string, len(c.Cameras)), photo.NewLocator(dir)
	for i := range c.Cameras {
		name := c.Cameras[i].PhotoName()
		if files[i] = fileOf(locator, dir, name, f.kind); files[i] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) == len(files) {
		return dir, nil, nil, &fault.Error{Op: f.op, Path: dir, Err: errors.New("there is no map of any photo"),
			Hint: "name the maps after the photos: the map of a/b.jpg is a/b.png, a/b.npy or a/b.exr, or a/b." +
				f.kind + ".png and so on"}
	}
	return dir, files, missing, nil
}

// fileOf returns the map of a photo, "" if there is none. Of a.normal.png and a.png, as render writes them, the latter
// is the picture.
func fileOf(locator *photo.Locator, dir, name, kind string) string {
	stem := strings.TrimSuffix(name, path.Ext(name))
	for _, base := range []string{stem + "." + kind, stem, name} {
		for _, ext := range []string{".png", ".npy", ".exr"} {
			if file := locator.Named(filepath.Join(dir, filepath.FromSlash(base+ext))); file != "" {
				return file
			}
		}
	}
	return ""
}

// readMap reads a map and returns its numbers at the camera's pixels; distances along rays become depths.
func readMap(c *scene.Camera, file, kind string, points []scene.KnownDepth) (r reading, err error) {
	m, err := readFile(file, &depthForm)
	if err != nil {
		return r, err
	}
	if err := m.checkShape(c, file, &depthForm); err != nil {
		return r, err
	}
	places, err := photo.PlacesIn(c, m.width, m.height)
	if err != nil {
		return r, &fault.Error{Op: opMaps, Path: file, Err: err}
	}
	if places.Turned() && kind != KindRay {
		return r, fault.Data(opMaps, file, "give distances along rays, and "+fault.Setting("depth-kind")+" ray",
			"a panorama has no depth along an axis")
	}
	list := make([]scene.KnownDepth, 0, c.Width*c.Height)
	for y := range c.Height {
		for x := range c.Width {
			u, v, ok := places.At(x, y)
			if !ok {
				continue
			}
			value := m.values[min(v, m.height-1)*m.width+min(u, m.width-1)]
			switch {
			case kind == KindRay:
				value *= float32(places.Along(x, y))
			case kind == KindInverse && path.Ext(file) == ".png":
				value /= inversePNG
			}
			if value > 0 && !math.IsInf(float64(value), 0) {
				list = append(list, scene.KnownDepth{X: uint16(x), Y: uint16(y), Depth: value})
			}
		}
	}
	pairs(list, points, func(value, depth float64) {
		r.values, r.depths = append(r.values, value), append(r.depths, depth)
	})
	r.list = slices.Clip(slices.Clone(thin(list)))
	return r, nil
}

// inversePNG is the PNG value of inverse depth 1, before scale and offset.
const inversePNG = 65536

// measure brings depths to the capture's unit.
func (r *Result) measure(dir string, cams []scene.Camera, maps []reading) error {
	if r.Unit == 0 {
		r.Unit = 1
		if unit, n := fitUnit(maps); n > leastFitted {
			r.Unit, r.Fitted = unit, true
		} else if n > 0 {
			return fault.Data(opMaps, dir, "give it: "+fault.Setting("depth-unit")+", as in 0.001 for millimetres",
				"the unit of depths is not known, and only %d points of the capture lie in the maps", n)
		}
	}
	for i := range maps {
		if maps[i].misfits(func(value float64) float64 { return value * r.Unit }) {
			r.Off = append(r.Off, cams[i].Name)
			continue
		}
		r.Known[i] = maps[i].list
	}
	r.Known.Scale(r.Unit)
	return nil
}

// invert turns inverse depths, which have a scale and an offset for each photo, into depths.
func (r *Result) invert(cams []scene.Camera, maps []reading, params map[string]inverseFit) {
	fits := make([]inverseFit, len(cams))
	if params == nil {
		r.Fitted = true
		parallel.For(len(cams), func(i int) { fits[i] = fitInverse(&maps[i]) })
	} else {
		for i := range cams {
			name := cams[i].PhotoName()
			fits[i] = params[strings.TrimSuffix(name, path.Ext(name))]
		}
	}
	middle := medianScale(fits)
	for i := range cams {
		if len(maps[i].list) == 0 {
			continue
		}
		f := fits[i]
		if !(f.Scale > leastScale*middle && f.Scale < mostScale*middle) || maps[i].misfits(f.depth) {
			r.Off = append(r.Off, cams[i].Name)
			continue
		}
		for _, k := range maps[i].list {
			if z := f.depth(float64(k.Depth)); z > 0 {
				k.Depth = float32(z)
				r.Known[i] = append(r.Known[i], k)
			}
		}
	}
}

// Text says in a few words what was read.
func (r *Result) Text() string {
	text := "of maps of " + r.Kind
	switch {
	case r.Kind == KindInverse && r.Fitted:
		text += ", whose scales and offsets follow from the points"
	case r.Kind != KindInverse && r.Fitted:
		text += fmt.Sprintf(", whose unit is %.4g of the capture's by the points", r.Unit)
	}
	return text
}
