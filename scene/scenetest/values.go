package scenetest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// ExifBlock is a small TIFF whose first folder has an entry before the orientation's and one behind it.
func ExifBlock(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 10)
	b = append(b, 0xAA, 0xBB) // the folder need not follow at once
	b = order.AppendUint16(b, 3)
	for _, entry := range [][2]uint16{{0x10F, 7}, {0x112, orientation}, {0x213, 8}} {
		b = order.AppendUint16(order.AppendUint16(b, entry[0]), 3)
		b = order.AppendUint16(order.AppendUint16(order.AppendUint32(b, 1), entry[1]), 0)
	}
	return b
}

// GPSBlock gives an EXIF block of a place: degrees to the north and east, and metres; no height if that is NaN.
func GPSBlock(order binary.AppendByteOrder, north, east, height float64) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	entry := func(tag, kind uint16, count, value uint32) {
		b = order.AppendUint16(order.AppendUint16(b, tag), kind)
		b = order.AppendUint32(order.AppendUint32(b, count), value)
	}
	word := func(yes bool, a, b string) uint32 {
		if !yes {
			a = b
		}
		return order.(binary.ByteOrder).Uint32([]byte(a))
	}
	const folder, values = 26, 26 + 2 + 6*12 + 4
	b = order.AppendUint16(order.AppendUint32(b, 8), 1)
	entry(0x8825, 4, 1, folder)
	b = order.AppendUint16(order.AppendUint32(b, 0), 6)
	entry(1, 2, 2, word(north >= 0, "N\x00\x00\x00", "S\x00\x00\x00"))
	entry(2, 5, 3, values)
	entry(3, 2, 2, word(east >= 0, "E\x00\x00\x00", "W\x00\x00\x00"))
	entry(4, 5, 3, values+24)
	entry(5, 1, 1, word(height < 0, "\x01\x00\x00\x00", "\x00\x00\x00\x00"))
	if math.IsNaN(height) {
		entry(0x1d, 2, 1, 0)
	} else {
		entry(6, 5, 1, values+48)
	}
	b = order.AppendUint32(b, 0)
	for _, x := range []float64{math.Abs(north), math.Abs(east)} {
		degrees, minutes := math.Modf(x)
		minutes, seconds := math.Modf(60 * minutes)
		b = order.AppendUint32(order.AppendUint32(b, uint32(degrees)), 1)
		b = order.AppendUint32(order.AppendUint32(b, uint32(minutes)), 1)
		b = order.AppendUint32(order.AppendUint32(b, uint32(math.Round(60e6*seconds))), 1e6)
	}
	return order.AppendUint32(order.AppendUint32(b, uint32(math.Round(1000*math.Abs(height)))), 1000)
}

// WithChunk puts a chunk with a valid checksum behind the header of a PNG.
func WithChunk(png []byte, kind string, content []byte) []byte {
	const header = 33
	chunk := append([]byte(kind), content...)
	sum := CrcOf(chunk)
	chunk = append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), chunk...)
	return bytes.Join([][]byte{png[:header], chunk, sum, png[header:]}, nil)
}

func Near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b))
}

func PngBytes(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, img))
	return b.Bytes()
}

func PhotoFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, data, 0o600))
	return path
}

// Ring gives n cameras around the origin, and points near it.
func Ring(n, points int) *scene.Capture {
	c := &scene.Capture{Root: "r", Format: scene.FormatColmap, Frame: scene.Identity()}
	for i := range n {
		angle := 2 * math.Pi * float64(i) / float64(n)
		r, _ := geom.RotationFromQuat([4]float64{math.Cos(angle / 2), 0, math.Sin(angle / 2), 0})
		c.Cameras = append(c.Cameras,
			scene.Camera{Name: string(rune('a' + i)), Width: 40, Height: 30, Fx: 30, Fy: 30, Cx: 20, Cy: 15, R: r,
				T: [3]float64{0, 0, 4}})
	}
	for i := range points {
		w := philox.Block([4]uint32{uint32(i)}, [2]uint32{})
		c.Points = append(c.Points,
			scene.Point{Pos: [3]float64{philox.Uniform(w[0]) - 0.5, philox.Uniform(w[1]) - 0.5,
				philox.Uniform(w[2]) - 0.5}})
	}
	return c
}

// Halves is white where x < at, in photos of any size.
func Halves(w, h, at int) scene.Image {
	return Paint(w, h, func(x, _ int) [4]uint8 {
		if x < at {
			return [4]uint8{255, 255, 255, 255}
		}
		return [4]uint8{0, 0, 0, 255}
	})
}

func CrcOf(data []byte) []byte { return binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data)) }

func Paint(w, h int, f func(x, y int) [4]uint8) scene.Image {
	img := scene.Image{Width: w, Height: h, Pix: make([]uint8, 0, 4*w*h)}
	for y := range h {
		for x := range w {
			p := f(x, y)
			img.Pix = append(img.Pix, p[:]...)
		}
	}
	return img
}

// RandomSplats returns n finite splats with every number that files carry different, and others 0.
func RandomSplats(n, degree int) *scene.Splats {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(degree)))
	s := scene.NewSplats(n, degree)
	for _, t := range s.Tensors() {
		if !t.Drawn {
			continue
		}
		for i := range t.Data {
			t.Data[i] = float32(rng.NormFloat64())
		}
	}
	return s
}

func IsAt(t *testing.T, what string, got, want [3]float64, tolerance float64) {
	t.Helper()
	if !(geom.Length(geom.Sub(got, want)) <= tolerance) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

type JsonObject map[string]any

func (o JsonObject) With(name string, v any) JsonObject {
	out := JsonObject{name: v}
	for k, old := range o {
		if k != name {
			out[k] = old
		}
	}
	return out
}

// OpenGL gives the 4x4 camera-to-world matrix of a camera, as transforms.json has it.
func OpenGL(c scene.Camera) [][]float64 {
	p := c.Center()
	m := make([][]float64, 4)
	for i := range 3 {
		m[i] = []float64{c.R[i], -c.R[3+i], -c.R[6+i], p[i]}
	}
	m[3] = []float64{0, 0, 0, 1}
	return m
}

func TinyFrames(folder string) []JsonObject {
	var frames []JsonObject
	for _, c := range TinyCameras() {
		frames = append(frames, JsonObject{"file_path": folder + c.Name, "transform_matrix": OpenGL(c)})
	}
	return frames
}

func TinyTop() JsonObject {
	return JsonObject{"fl_x": 30, "fl_y": 31, "cx": 16, "cy": 12.5, "w": TinyWidth, "h": TinyHeight,
		"frames": TinyFrames("images/")}
}

func PutJSON(t testing.TB, path string, v any) {
	t.Helper()
	data := must.Get(json.Marshal(v))(t)
	Put(t, path, data)
}

func WriteImage(t testing.TB, path string, img scene.Image) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	var b bytes.Buffer
	// with alpha
	err := png.Encode(&b, &image.NRGBA{Pix: img.Pix, Stride: 4 * img.Width,
		Rect: image.Rect(0, 0, img.Width, img.Height)})
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
