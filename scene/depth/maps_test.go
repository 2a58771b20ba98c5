package depth

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/picture"
	"vksplat/scene/scenetest"
)

// png16 is a PNG of numbers, rounded.
func png16(t *testing.T, width int, values []float64) []byte {
	t.Helper()
	img := image.NewGray16(image.Rect(0, 0, width, len(values)/width))
	for i, v := range values {
		binary.BigEndian.PutUint16(img.Pix[2*i:], uint16(min(max(math.Round(v), 0), 65535)))
	}
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, img))
	return b.Bytes()
}

// depthsNPY is an array of NumPy of single precision.
func depthsNPY(width int, values []float64) []byte {
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", len(values)/width, width)
	head += strings.Repeat(" ", 117-len(head)) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
	b = append(b, head...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b
}

// exr is a file with the channel Z among others.
func exr(t *testing.T, width int, values []float64) []byte {
	t.Helper()
	p := &picture.Picture{Width: width, Height: len(values) / width, Color: make([]float32, 4*len(values))}
	for i, v := range values {
		p.Depth = append(p.Depth, float32(v))
		p.Color[4*i] = float32(i%7) / 7
	}
	return exrOf(t, p)
}

// exrOf is a picture as a file.
func exrOf(t *testing.T, p *picture.Picture) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "map.exr")
	must.Do(t, picture.Write(file, p, picture.Options{Format: picture.FormatEXR}))
	data := must.Get(os.ReadFile(file))(t)
	return data
}

// TestMaps reads the depths of a drawn capture from maps of every form, in the capture's unit and in others, and wants
// them as they were drawn. Maps of half the size are as good as their pixels.
func TestMaps(t *testing.T) {
	c, s := drawn(t, 3000)
	points, _, err := Points(c, c.Points)
	if err != nil {
		t.Fatal(err)
	}
	ray := func(cam *scene.Camera, p int) float64 {
		u, v := (float64(p%96)+0.5-cam.Cx)/cam.Fx, (float64(p/96)+0.5-cam.Cy)/cam.Fy
		return math.Sqrt(1 + u*u + v*v)
	}
	depthAs := func(unit float64) func(*scene.Camera, int, float64) float64 {
		return func(_ *scene.Camera, _ int, z float64) float64 { return z / unit }
	}
	inverse := func(cam *scene.Camera, _ int, z float64) float64 {
		scale := 0.5 + 0.1*float64(cam.Name[len(cam.Name)-5]-'0')
		return 65536 * (1/z + 0.02) * scale
	}
	for _, m := range []struct {
		name, ext string
		value     func(cam *scene.Camera, p int, z float64) float64
		o         MapOptions
		params    bool
		unit      float64
		limit     float64 // largest share of wrong depths
	}{
		{name: "millimetres", ext: ".png", value: depthAs(0.001), o: MapOptions{Unit: 0.001}, unit: 0.001},
		{name: "an unknown unit", ext: ".png", value: depthAs(0.004), o: MapOptions{Kind: KindDepth}, unit: 0.004,
			limit: 0.02},
		{name: "floats", ext: ".npy", value: depthAs(1), o: MapOptions{Unit: 1}, unit: 1},
		{name: "EXR", ext: ".exr", value: depthAs(2), o: MapOptions{Unit: 2}, unit: 2},
		{name: "distances", ext: ".npy", o: MapOptions{Kind: KindRay, Unit: 3}, unit: 3,
			value: func(cam *scene.Camera, p int, z float64) float64 { return z / 3 * ray(cam, p) }},
		{name: "inverse depth", ext: ".png", value: inverse, limit: 0.1},
		{name: "inverse depth with scales", ext: ".png", value: inverse, params: true, limit: 0.01},
	} {
		t.Run(m.name, func(t *testing.T) {
			m.o.Dir = t.TempDir()
			params := map[string]inverseFit{}
			for i := range c.Cameras {
				cam := &c.Cameras[i]
				var values []float64
				for p, z := range s.Depths(i) {
					values = append(values, m.value(cam, p, float64(z)))
				}
				data := depthsNPY(96, values)
				if m.ext == ".png" {
					data = png16(t, 96, values)
				} else if m.ext == ".exr" {
					data = exr(t, 96, values)
				}
				stem := strings.TrimSuffix(cam.Name, ".png")
				scenetest.Put(t, filepath.Join(m.o.Dir, stem+m.ext), data)
				scale := 0.5 + 0.1*float64(stem[len(stem)-1]-'0')
				params[stem] = inverseFit{1 / scale, -0.02}
			}
			if file := filepath.Join(c.Model, paramsFile); m.params {
				data, _ := json.Marshal(params) // numbers marshal
				scenetest.Put(t, file, data)
				defer os.Remove(file)
			}
			r := must.Get(Maps(c, points, m.o))(t)
			if len(r.Missing)+len(r.Off) > 0 || m.unit > 0 && math.Abs(r.Unit/m.unit-1) > 0.01 ||
				r.Fitted != (m.o.Unit == 0 && !m.params) {
				t.Errorf("missing %v, off %v, unit %g, fitted %v", r.Missing, r.Off, r.Unit, r.Fitted)
			}
			for i, list := range r.Known {
				off := wrong(list, s.Depths(i), 96)
				if len(list) < 96*72*9/10 || off > m.limit {
					t.Errorf("photo %d: %d depths, wrong are %.2f %%", i, len(list), 100*off)
				}
			}
		})
	}
}

// TestMapsMisfit reads maps that are not what they are taken for, and wants all of them told apart, and those that are
// right among them counted.
func TestMapsMisfit(t *testing.T) {
	c, s := drawn(t, 3000)
	points, _, err := Points(c, c.Points)
	if err != nil {
		t.Fatal(err)
	}
	right := func(_ int, z []float64) []float64 { return z }
	upsideDown := func(_ int, z []float64) []float64 {
		z = slices.Clone(z)
		slices.Reverse(z)
		return z
	}
	for _, m := range []struct {
		name string
		made func(i int, z []float64) []float64 // of the depths of photo i
		o    MapOptions
		off  int
	}{
		{"right", right, MapOptions{}, 0},
		{"upside down", upsideDown, MapOptions{}, 6},
		{"another unit", right, MapOptions{Unit: 1000}, 6},
		{"inverse depths in floats", func(_ int, z []float64) []float64 {
			z = slices.Clone(z)
			for p := range z {
				z[p] = 1 / z[p]
			}
			return z
		}, MapOptions{}, 6},
		{"one is upside down", func(i int, z []float64) []float64 {
			if i == 2 {
				return upsideDown(i, z)
			}
			return z
		}, MapOptions{}, 1},
	} {
		m.o.Dir = t.TempDir()
		for i := range c.Cameras {
			var z []float64
			for _, x := range s.Depths(i) {
				z = append(z, float64(x))
			}
			name := strings.TrimSuffix(c.Cameras[i].Name, ".png") + ".npy"
			scenetest.Put(t, filepath.Join(m.o.Dir, name), depthsNPY(96, m.made(i, z)))
		}
		r := must.Get(Maps(c, points, m.o))(t)
		if len(r.Off) != m.off {
			t.Errorf("%s: %d maps do not fit, want %d: %v", m.name, len(r.Off), m.off, r.Off)
		}
		for i, list := range r.Known {
			if (len(list) == 0) != slices.Contains(r.Off, c.Cameras[i].Name) {
				t.Errorf("%s: photo %d: %d depths, maps that do not fit: %v", m.name, i, len(list), r.Off)
			}
		}
	}
}

// TestParamsDepth: what is infinitely far or behind the camera is not known.
func TestParamsDepth(t *testing.T) {
	p := inverseFit{Scale: 2, Offset: -1}
	for value, want := range map[float64]float64{1: 1, 0.75: 2, 0.5: 0, 0.25: 0} {
		if got := p.depth(value); got != want {
			t.Errorf("%g is at depth %g, want %g", value, got, want)
		}
	}
}

// TestMapsRefuse wants errors that name the file and the remedy.
func TestMapsRefuse(t *testing.T) {
	c, _ := drawn(t, 100)
	points := make(Known, len(c.Cameras))
	first := strings.TrimSuffix(c.Cameras[0].Name, ".png")
	grey := image.NewGray(image.Rect(0, 0, 8, 6))
	for _, m := range []struct {
		name, file, want string
		data             []byte
	}{
		{"no map", "other.png", "no map of any photo", png16(t, 8, make([]float64, 48))},
		{"8 bits", first + ".png", "16 bits", scenetest.PngBytes(t, grey)},
		{"no NPY", first + ".npy", "not an NPY file", []byte("some text")},
		{"a short NPY", first + ".npy", "ends early", depthsNPY(8, make([]float64, 48))[:200]},
		{"no EXR", first + ".exr", "not an OpenEXR file", []byte("some text")},
		{"a short EXR", first + ".exr", "ends early", exr(t, 8, make([]float64, 48))[:300]},
	} {
		dir := t.TempDir()
		scenetest.Put(t, filepath.Join(dir, m.file), m.data)
		_, err := Maps(c, points, MapOptions{Dir: dir, Unit: 1})
		if err == nil || !strings.Contains(err.Error(), m.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if _, err := Maps(c, points, MapOptions{Dir: "nowhere"}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no folder: %v", err)
	}
}

// FuzzMap reads what no writer wrote.
func FuzzMap(f *testing.F) {
	f.Add([]byte("\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }\n\x00\x00\x80\x3f"))
	f.Add([]byte{0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, f := range []*form{&depthForm, &normalForm} {
			for _, decode := range []func([]byte, *form) (*mapFile, error){decodePNG, decodeNPY, decodeEXR} {
				if m, err := decode(data, f); err == nil && len(m.values) != f.channels*m.width*m.height {
					t.Errorf("%d values of %d x %d pixels", len(m.values), m.width, m.height)
				}
			}
		}
	})
}

// TestFileOf: render writes the picture beside its depths and normals.
func TestFileOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "a.normal.png", "a.depth.npy", "b.png", "e\u0301.exr"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	for _, c := range []struct{ photo, kind, want string }{
		{"a.jpg", "normal", "a.normal.png"}, {"a.jpg", "depth", "a.depth.npy"}, {"b.jpg", "normal", "b.png"},
		{"c.jpg", "normal", ""}, {"\u00e9.jpg", "depth", "e\u0301.exr"},
	} {
		got := fileOf(photo.NewLocator(dir), dir, c.photo, c.kind)
		if got != "" {
			got = filepath.Base(got)
		}
		if got != c.want {
			t.Errorf("the %s map of %s is %q, want %q", c.kind, c.photo, got, c.want)
		}
	}
}
