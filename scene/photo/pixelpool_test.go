package photo

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/pixelpool"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// waves writes a JPEG.
func waves(t *testing.T, width, height int) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	copy(img.Pix, scenetest.Paint(width, height,
		func(x, y int) [4]uint8 { return [4]uint8{uint8(x / 3), uint8(y / 2), uint8(x * y / 500), 255} }).Pix)
	var b bytes.Buffer
	must.Do(t, jpeg.Encode(&b, img, nil))
	path := filepath.Join(t.TempDir(), "a.jpg")
	scenetest.Put(t, path, b.Bytes())
	return path
}

// Photos decoded in recycled memory, which is dirty, are the same, whatever is done to them.
func TestRecycledPixels(t *testing.T) {
	path := waves(t, 600, 400)
	lens := oneView(t, scene.Calibration{Model: scene.LensFisheye, Width: 600, Height: 400,
		Params: []float64{120, 120, 300, 200}}, 600, 400, 1)
	lens.Path = path
	for _, cam := range []scene.Camera{{Path: path, Width: 600, Height: 400}, {Path: path, Width: 300, Height: 200},
		lens} {
		first := must.Get(Decode(cam))(t)
		want := bytes.Clone(first.Pix)
		for range 4 {
			img, err := Decode(cam)
			if err != nil || !bytes.Equal(img.Pix, want) {
				t.Fatalf("%dx%d: other pixels in recycled memory (%v)", cam.Width, cam.Height, err)
			}
			for i := range img.Pix {
				img.Pix[i] = 0x5a
			}
			Recycle(img)
		}
	}
}

// Decoding again and again leaves little garbage behind, at full size and reduced.
func TestDecodingLeavesLittleGarbage(t *testing.T) {
	const w, h = 1600, 1200
	path := waves(t, w, h)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector empties pools
	for _, scale := range []int{1, 2} {
		cam := scene.Camera{Path: path, Width: w / scale, Height: h / scale}
		decode := func() {
			img := must.Get(Decode(cam))(t)
			Recycle(img)
		}
		decode()
		allocated := filetest.Allocated()
		const n = 10
		for range n {
			decode()
		}
		if each := allocated() / n; each > 4*w*h/4 {
			t.Errorf("at 1/%d: %d bytes of garbage a photo", scale, each)
		}
	}
}

// TestReadPooled reads files around the lengths at which memory is shared, in memory of other files.
func TestReadPooled(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, pixelpool.PoolBytes - 1, pixelpool.PoolBytes, pixelpool.PoolBytes + 1,
		3*pixelpool.PoolBytes - 1, 2 * pixelpool.PoolBytes} {
		path := filepath.Join(dir, strconv.Itoa(size))
		want := bytes.Repeat([]byte{byte(size + 7), 3}, size)[:size]
		scenetest.Put(t, path, want)
		for range 2 {
			got, err := pixelpool.ReadFile(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes became %d: %v", size, len(got), err)
			}
			pixelpool.FreeFile(got)
		}
	}
	if _, err := pixelpool.ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
