package colmap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func TestWriteColmapRefuses(t *testing.T) {
	for name, change := range map[string]func(c *scene.Camera){
		"fisheye": func(c *scene.Camera) { c.Model = scene.Fisheye },
		"no name": func(c *scene.Camera) { c.Name = "" },
		"NUL":     func(c *scene.Camera) { c.Name = "a\x00b" },
	} {
		cams := scenetest.TinyCameras()
		change(&cams[1])
		if err := Write(t.TempDir(), cams, nil); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// addModelSeeds gives a fuzz target a good file and bad ones.
func addModelSeeds(f *testing.F, file string) {
	f.Helper()
	data := must.Get(os.ReadFile(filepath.Join(tinyModel(f), "sparse", "0", file)))(f)
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add(scenetest.Claim(slices.Clone(data)))
	f.Add([]byte{})
}

// tinyModel writes the tiny capture's model and returns the capture's folder.
func tinyModel(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	must.Do(t, Write(filepath.Join(root, "sparse", "0"), scenetest.TinyCameras(), scenetest.TinyPoints()))
	return root
}

// bytesCursor reads a file that is in memory.
func bytesCursor(data []byte) *cursor { return NewCursor(bytes.NewReader(data), int64(len(data))) }

// TestCursorOfGrowingFile reads a file that is written to meanwhile: it ends where it ended when it was opened.
func TestCursorOfGrowingFile(t *testing.T) {
	c := NewCursor(strings.NewReader("name\x00"), 3)
	if text := c.text(); text != "" || !errors.Is(c.err, errCut) || c.at > c.size {
		t.Errorf("%q, %v at byte %d of %d", text, c.err, c.at, c.size)
	}
}

func FuzzColmapCameras(f *testing.F) {
	addModelSeeds(f, "cameras.bin")
	for id := range scene.ColmapModels {
		f.Add(scenetest.CameraOfModel(id))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cams, err := ParseCameras(bytesCursor(data))
		if err != nil {
			return
		}
		checkCameras(t, cams)
	})
}

func checkCameras(t *testing.T, cams map[uint32]Camera) {
	for _, c := range cams {
		k := c.Lens
		if len(k.Params) != scene.ColmapModels[k.Model].Params || k.Width <= 0 || k.Height <= 0 {
			t.Errorf("%+v", c)
		}
	}
}

func FuzzColmapImages(f *testing.F) {
	addModelSeeds(f, "images.bin")
	f.Fuzz(func(t *testing.T, data []byte) {
		views, err := ParseImages(bytesCursor(data))
		if err != nil {
			return
		}
		checkImages(t, views)
	})
}

func checkImages(t *testing.T, views []Image) {
	k := Camera{Lens: scene.Calibration{Model: scene.LensSimplePinhole, Width: 8, Height: 8,
		Params: []float64{8, 4, 4}}}
	for _, v := range views {
		cam, err := makeCamera(k, v)
		if err == nil && (!geom.Finite(cam.R[:]...) || !geom.Finite(cam.T[:]...) || cam.Name == "" ||
			!filepath.IsLocal(cam.Name)) {
			t.Errorf("%+v", cam)
		}
	}
}

func FuzzColmapPoints(f *testing.F) {
	addModelSeeds(f, "points3D.bin")
	f.Fuzz(func(t *testing.T, data []byte) {
		points, bad, err := ParsePoints(bytesCursor(data))
		if err == nil && uint64(len(points)+bad) != binary.LittleEndian.Uint64(data) {
			t.Errorf("%d points and %d bad ones", len(points), bad)
		}
		for _, p := range points {
			if !geom.Finite(p.Pos[:]...) {
				t.Errorf("%v", p)
			}
		}
	})
}
