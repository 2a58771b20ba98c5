package depth

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/picture"
	"vksplat/scene/scenetest"
	"vksplat/scene/synth/synthtest"
)

// normalsNPY is an array of NumPy of single precision: row by row, or axis by axis.
func normalsNPY(width int, normals [][3]float64, planar bool) []byte {
	var values []float64
	for k := range 3 * len(normals) {
		if planar {
			values = append(values, normals[k%len(normals)][k/len(normals)])
		} else {
			values = append(values, normals[k/3][k%3])
		}
	}
	height := len(normals) / width
	shape := fmt.Sprintf("(%d, %d, 3)", height, width)
	if planar {
		shape = fmt.Sprintf("(1, 3, %d, %d)", height, width)
	}
	head := "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }"
	head += strings.Repeat(" ", 117-len(head)) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
	b = append(b, head...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b
}

// normalsPNG is a picture of 8 or 16 bits a colour.
func normalsPNG(t *testing.T, width int, normals [][3]float64, bits int) []byte {
	t.Helper()
	size := image.Rect(0, 0, width, len(normals)/width)
	deep, flat := image.NewNRGBA64(size), image.NewNRGBA(size)
	for i, n := range normals {
		var c [3]uint16
		for k := range c {
			c[k] = uint16(math.Round(65535 * (n[k]/2 + 0.5)))
		}
		all := color.NRGBA64{R: c[0], G: c[1], B: c[2], A: 65535}
		deep.Set(i%width, i/width, all)
		flat.Set(i%width, i/width, all)
	}
	var b bytes.Buffer
	var err error
	if bits == 8 {
		err = png.Encode(&b, flat)
	} else {
		err = png.Encode(&b, deep)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// normalsEXR is a file with the channels R, G and B.
func normalsEXR(t *testing.T, width int, normals [][3]float64) []byte {
	t.Helper()
	p := &picture.Picture{Width: width, Height: len(normals) / width}
	for _, n := range normals {
		p.Color = append(p.Color, float32(n[0]), float32(n[1]), float32(n[2]), 0)
	}
	return exrOf(t, p)
}

// TestReadNormals reads the normals of a drawn capture from maps of every form and in all axes, and wants them as they
// were drawn, in the camera's axes.
func TestReadNormals(t *testing.T) {
	c, s := drawn(t, 100)
	same := func(_ *scene.Camera, n geom.Vec) geom.Vec { return n }
	openGL := func(_ *scene.Camera, n geom.Vec) geom.Vec { return geom.Vec{n[0], -n[1], -n[2]} }
	inWorld := func(cam *scene.Camera, n geom.Vec) geom.Vec { return geom.Rotate(geom.Transposed(cam.R), n) }
	for _, m := range []struct {
		name, ext    string
		frame, found string
		axes         func(cam *scene.Camera, n geom.Vec) geom.Vec
		data         func(width int, normals [][3]float64) []byte
		limit        float64 // degrees, of the worst of 100
	}{
		{"PNG of 8 bits", ".png", FrameAuto, FrameOpenCV, same,
			func(w int, n [][3]float64) []byte { return normalsPNG(t, w, n, 8) }, 0.5},
		{"PNG of 16 bits", ".png", FrameAuto, FrameOpenGL, openGL,
			func(w int, n [][3]float64) []byte { return normalsPNG(t, w, n, 16) }, 0.01},
		{"NPY", ".npy", FrameOpenGL, FrameOpenGL, openGL,
			func(w int, n [][3]float64) []byte { return normalsNPY(w, n, false) }, 0.01},
		{"NPY, axis by axis", ".npy", "", FrameOpenCV, same,
			func(w int, n [][3]float64) []byte { return normalsNPY(w, n, true) }, 0.01},
		{"EXR in the world", ".exr", FrameWorld, FrameWorld, inWorld,
			func(w int, n [][3]float64) []byte { return normalsEXR(t, w, n) }, 0.1},
		{"EXR in the world, found", ".exr", FrameAuto, FrameWorld, inWorld,
			func(w int, n [][3]float64) []byte { return normalsEXR(t, w, n) }, 0.1},
	} {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			for i := 1; i < len(c.Cameras); i++ {
				normals := synthtest.Normals(s, i)
				for p := range normals {
					if normals[p] = m.axes(&c.Cameras[i], normals[p]); p%10 == 3 {
						normals[p] = [3]float64{-1, -1, -1} // black
					}
				}
				scenetest.Put(t, filepath.Join(dir, strings.TrimSuffix(c.Cameras[i].Name, ".png")+m.ext),
					m.data(96, normals))
			}
			n, err := ReadNormals(c, NormalOptions{Dir: dir, Frame: m.frame})
			if err != nil {
				t.Fatal(err, fault.Hint(err))
			}
			if n.Frame != m.found || !(n.Facing > 0.95) || len(n.Missing) != 1 || len(n.Known[0].Cells) > 0 {
				t.Errorf("frame %s, %.2f face the camera, missing %v", n.Frame, n.Facing, n.Missing)
			}
			for i := 1; i < len(n.Known); i++ {
				checkNormals(t, &n.Known[i], synthtest.Normals(s, i), m.limit)
			}
		})
	}
}

// checkNormals compares cells of a pixel with the truth.
func checkNormals(t *testing.T, m *scene.NormalMap, want [][3]float64, limit float64) {
	t.Helper()
	known, off := 0, 0
	for p, word := range m.Cells {
		if word == 0 {
			continue
		}
		if known++; p%10 == 3 {
			t.Fatalf("the normal of pixel %d is known", p)
		}
		if math.Acos(min(geom.Dot(scene.UnpackNormal(word), want[p]), 1))*180/math.Pi > limit {
			off++
		}
	}
	if m.Shift != 0 || len(m.Cells) != len(want) || known < len(want)*8/10 || off > known/100 {
		t.Errorf("of %d pixels in cells of 2^%d the normals of %d are known, of which %d are off", len(want), m.Shift,
			known, off)
	}
}

// TestNormalsOfPanorama turns the normals of a sphere around the camera to the faces of its panorama.
func TestNormalsOfPanorama(t *testing.T) {
	const width, height = 512, 256
	k := scene.Calibration{Model: scene.LensEquirectangular, Width: width, Height: height,
		Params: []float64{width, height}}
	views := must.Get(k.Views(scene.Camera{Name: "a.png", R: geom.Identity}, width, height, 1))(t)
	var normals [][3]float64
	for i := range width * height {
		x, y := float64(i%width)+0.5, float64(i/width)+0.5
		sinX, cosX := math.Sincos((x/width - 0.5) * 2 * math.Pi)
		sinY, cosY := math.Sincos((y/height - 0.5) * math.Pi)
		normals = append(normals, [3]float64{-sinX * cosY, -sinY, -cosX * cosY})
	}
	dir := t.TempDir()
	scenetest.Put(t, filepath.Join(dir, "a.npy"), normalsNPY(width, normals, false))
	n := must.Get(ReadNormals(&scene.Capture{Cameras: views}, NormalOptions{Dir: dir, Frame: FrameOpenCV}))(t)
	for i := range views {
		c, worst := &views[i], 0.0
		for p, word := range n.Known[i].Cells {
			ray := geom.Vec(c.ToCamera(c.Place(float64(p%c.Width)+0.5, float64(p/c.Width)+0.5, 1))).Unit()
			worst = max(worst, math.Acos(-ray.Dot(scene.UnpackNormal(word)))*180/math.Pi)
			if word == 0 {
				t.Fatalf("face %d: the normal of pixel %d is not known", i, p)
			}
		}
		if worst > 1 {
			t.Errorf("face %d: normals are off by %.1f degrees", i, worst)
		}
	}
}

// TestNormalCells has cells for the pixels of large pictures, of which those at an edge know nothing.
func TestNormalCells(t *testing.T) {
	c := scene.Camera{Name: "a.png", Width: 1103, Height: 900, Fx: 1000, Fy: 1000, Cx: 550, Cy: 450, R: geom.Identity}
	left, right := geom.Vec{-0.6, 0, -0.8}, geom.Vec{0.6, 0, -0.8}
	var normals [][3]float64
	for range 5 {
		normals = append(normals, left, left, left, right, right, right)
	}
	dir := t.TempDir()
	scenetest.Put(t, filepath.Join(dir, "a.npy"), normalsNPY(6, normals, false))
	n := must.Get(ReadNormals(&scene.Capture{Cameras: []scene.Camera{c}}, NormalOptions{Dir: dir}))(t)
	if n.Frame != FrameOpenCV { // of a camera that looks along the world's axes those of the world are the same
		t.Errorf("axes of %s", n.Frame)
	}
	m := &n.Known[0]
	if m.Shift != 1 || m.Columns != 552 || len(m.Cells) != 552*450 || !m.Covers(c.Width, c.Height) ||
		m.Covers(c.Width+2, c.Height) {
		t.Fatalf("%d cells in rows of %d, of 2^%d pixels", len(m.Cells), m.Columns, m.Shift)
	}
	for i, word := range m.Cells[:m.Columns] {
		want := left
		if i > 275 {
			want = right
		}
		if i == 275 { // pixels 550 and 551: the edge is at 551.5
			if word != 0 {
				t.Errorf("cell %d, at the edge, is known", i)
			}
		} else if word == 0 || want.Dot(scene.UnpackNormal(word)) < 0.9999 {
			t.Errorf("cell %d: %v, want %v", i, scene.UnpackNormal(word), want)
		}
	}
}

// TestGuess takes the first of the frames that are as good as any, and names the others.
func TestGuess(t *testing.T) {
	for _, c := range []struct {
		openCV, openGL, world float64
		frame, doubt          string
	}{
		{1, 0, 0.5, FrameOpenCV, "[]"}, {0, 1, 0.5, FrameOpenGL, "[]"}, {0.6, 0.4, 0.99, FrameWorld, "[]"},
		{0.99, 0.01, 0.995, FrameOpenCV, "[world]"}, {0.995, 0.01, 0.99, FrameOpenCV, "[world]"},
		{0.98, 0.01, 0.995, FrameWorld, "[]"}, {0.1, 0.9, 0.905, FrameOpenGL, "[world]"},
		{0.895, 0.9, 0.906, FrameOpenGL, "[world]"}, {0.9, 0.9, 0.9, FrameOpenCV, "[opengl world]"},
		{math.NaN(), math.NaN(), math.NaN(), FrameOpenCV, "[]"},
	} {
		var n Normals
		n.guess(map[string]float64{FrameOpenCV: c.openCV, FrameOpenGL: c.openGL, FrameWorld: c.world})
		if n.Frame != c.frame || fmt.Sprint(n.Doubt) != c.doubt {
			t.Errorf("%g, %g, %g: %s, not %v", c.openCV, c.openGL, c.world, n.Frame, n.Doubt)
		}
	}
}

// exrNamed is a file of a pixel with channels of such names.
func exrNamed(names ...string) []byte {
	le := binary.LittleEndian
	b := append([]byte{0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0}, "channels\x00chlist\x00"...)
	b = le.AppendUint32(b, uint32(18*len(names)+1))
	for _, name := range names {
		b = append(append(b, name...), 0, exrFloat, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0)
	}
	b = append(b, "\x00compression\x00compression\x00\x01\x00\x00\x00\x00dataWindow\x00box2i\x00\x10\x00\x00\x00"...)
	b = append(b, make([]byte, 17)...) // one pixel at 0, 0, and the header's end
	b = le.AppendUint32(le.AppendUint64(b, uint64(len(b)+8)), 0)
	b = le.AppendUint32(b, uint32(4*len(names)))
	return append(b, make([]byte, 4*len(names))...)
}

// TestNormalsRefuse wants errors that name the file and the remedy.
func TestNormalsRefuse(t *testing.T) {
	c, s := drawn(t, 100)
	first := strings.TrimSuffix(c.Cameras[0].Name, ".png")
	normals := synthtest.Normals(s, 0)
	none, long, coded := make([][3]float64, len(normals)), slices.Clone(normals), slices.Clone(normals)
	for i, n := range normals {
		for k := range n {
			long[i][k], coded[i][k] = 5*n[k], n[k]/2+0.5
		}
	}
	for _, m := range []struct {
		name, file, frame, want, hint string
		data                          []byte
	}{
		{"no map", "other.png", "", "no map of any photo", "a/b.npy", normalsPNG(t, 96, normals, 8)},
		{"the wrong axes", first + ".png", FrameOpenGL, "of the normals face the camera in axes of opengl",
			"100 % face it in axes of opencv", normalsPNG(t, 96, normals, 8)},
		{"no normal", first + ".npy", "", "hold no normal", "three floats", normalsNPY(96, none, false)},
		{"of another length", first + ".npy", "", "100 % of the pixels are not directions of length 1", "length 1",
			normalsNPY(96, long, false)},
		{"from 0 to 1", first + ".npy", "", "no number of the maps is below 0", "2 x - 1",
			normalsNPY(96, coded, false)},
		{"grey", first + ".png", "", "no red, green and blue", "red, green and blue",
			scenetest.PngBytes(t, image.NewGray(image.Rect(0, 0, 8, 6)))},
		{"no axes", first + ".exr", "", `channels are ["Y" "Z"], want X, Y, Z`, "three floats",
			exrNamed("Y", "Z")},
		{"one number a pixel", first + ".npy", "", "has the sizes (6, 8)", "three floats",
			depthsNPY(8, make([]float64, 48))},
		{"a short NPY", first + ".npy", "", "ends early", "NPY", normalsNPY(96, normals, true)[:5000]},
	} {
		dir := t.TempDir()
		scenetest.Put(t, filepath.Join(dir, m.file), m.data)
		_, err := ReadNormals(c, NormalOptions{Dir: dir, Frame: m.frame})
		if err == nil || !strings.Contains(err.Error(), m.want) || !strings.Contains(err.Error(), dir) ||
			!strings.Contains(fault.Hint(err), m.hint) {
			t.Errorf("%s: %v, hint %q", m.name, err, fault.Hint(err))
		}
	}
	if _, err := ReadNormals(c, NormalOptions{Dir: "nowhere"}); err == nil || !strings.Contains(fault.Hint(err), "normals") {
		t.Errorf("no folder: %v", err)
	}
}

// TestExrNormals finds the channels of a layer among others.
func TestExrNormals(t *testing.T) {
	for _, c := range []struct {
		names string
		want  []int
	}{
		{"B G R", []int{2, 1, 0}}, {"X Y Z", []int{0, 1, 2}}, {"A Z", nil},
		{"View.Combined.B View.Combined.G View.Combined.R View.Depth.Z View.Normal.X View.Normal.Y View.Normal.Z",
			[]int{4, 5, 6}},
		{"FooR G B", nil},
	} {
		if got := exrNormals(strings.Fields(c.names)); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.names, got, c.want)
		}
	}
}
