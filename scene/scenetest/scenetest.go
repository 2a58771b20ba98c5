package scenetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

func CameraOfModel(id int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, 1)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, uint32(id))
	b = le.AppendUint64(b, TinyWidth)
	b = le.AppendUint64(b, TinyHeight)
	for i := range scene.ColmapModels[id].Params {
		b = le.AppendUint64(b, math.Float64bits(float64(20+i)))
	}
	return b
}

// SharedCapture gives the folder of a real capture, or skips the test.
func SharedCapture(t *testing.T, name string) string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the capture %s is not on this machine", name)
	}
	return root
}

// TextModelOf writes the tiny capture's model as text, with the line ends given, and
// removes the binary one.
func TextModelOf(t testing.TB, root, eol string, cams []scene.Camera, points []scene.Point) {
	t.Helper()
	var cameras, images, cloud strings.Builder
	line := func(b *strings.Builder, format string, args ...any) { fmt.Fprintf(b, format+eol, args...) }
	line(&cameras, "# Camera list")
	line(&images, "# IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME")
	line(&images, "")
	line(&cloud, "# 3D point list")
	for i, c := range cams {
		line(&cameras, "%d PINHOLE %d %d %v %v %v %v", i+1, c.Width, c.Height, c.Fx, c.Fy, c.Cx, c.Cy)
		q := c.Quat()
		line(&images, "%d %v %v %v %v %v %v %v %d %s", i+1, q[0], q[1], q[2], q[3], c.T[0], c.T[1], c.T[2], i+1, c.Name)
		line(&images, "%s", []string{"", "1.5 2.5 -1 3 4 7", "#"}[i%3])
	}
	for i, p := range points {
		line(&cloud, "%d %v %v %v %d %d %d 0.5 1 2 3 4", i, p.Pos[0], p.Pos[1], p.Pos[2], p.Color[0], p.Color[1],
			p.Color[2])
	}
	dir := filepath.Join(root, "sparse", "0")
	for name, b := range map[string]*strings.Builder{"cameras": &cameras, "images": &images, "points3D": &cloud} {
		must.Do(t, os.Remove(filepath.Join(dir, name+".bin")))
		Put(t, filepath.Join(dir, name+".txt"), []byte(b.String()))
	}
}

// The photos of a tiny capture.
const (
	TinyPhotos = 5
	TinyWidth  = 32
	TinyHeight = 24
)

// TinyCameras stand on a circle and look at its centre, more or less.
func TinyCameras() []scene.Camera {
	cams := make([]scene.Camera, TinyPhotos)
	for i := range cams {
		angle := 2 * math.Pi * float64(i) / TinyPhotos
		r, _ := geom.RotationFromQuat([4]float64{math.Cos(angle / 2), 0.1, math.Sin(angle / 2), 0.05})
		cams[i] = scene.Camera{Name: fmt.Sprintf("p%d.png", i), Width: TinyWidth, Height: TinyHeight,
			Fx: 30, Fy: 31, Cx: 16, Cy: 12.5, R: r, T: [3]float64{0.1 * float64(i), 0.2, 4}}
	}
	return cams
}

func TinyPoints() []scene.Point {
	return []scene.Point{
		{Pos: [3]float64{0, 0, 0}, Color: [3]uint8{255, 1, 2}},
		{Pos: [3]float64{1, 0.5, -0.25}, Color: [3]uint8{3, 4, 5}},
		{Pos: [3]float64{-1, 0.125, 3}, Color: [3]uint8{6, 7, 8}},
	}
}

func WritePhoto(t testing.TB, path string, width, height int) {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	Put(t, path, b.Bytes())
}

func Put(t testing.TB, path string, data []byte) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, data, 0o644))
}

func WarningOf(c *scene.Capture, code string) (scene.Warning, bool) {
	i := slices.IndexFunc(c.Warnings, func(w scene.Warning) bool { return w.Code == code })
	if i < 0 {
		return scene.Warning{}, false
	}
	return c.Warnings[i], true
}

func Claim(b []byte) []byte {
	binary.LittleEndian.PutUint64(b, 1<<40)
	return b
}

func CheckRefusal(t *testing.T, err error, want []string, hint string, kind error) {
	t.Helper()
	t.Logf("%v\nhint: %s", err, fault.Hint(err))
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q", w)
		}
	}
	if fault.Hint(err) == "" || !strings.Contains(fault.Hint(err), hint) {
		t.Errorf("the hint lacks %q", hint)
	}
	if kind == nil {
		kind = fault.ErrData
	}
	if !errors.Is(err, kind) {
		t.Errorf("the kind is not %q", kind)
	}
}

// HeapGrowth gives the bytes that f allocates.
func HeapGrowth(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// AppendFloats appends values as binary COLMAP models hold them.
func AppendFloats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
