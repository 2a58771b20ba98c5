package scene

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"io/fs"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// waves writes a JPEG.
func waves(t *testing.T, width, height int) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	copy(img.Pix, paint(width, height, func(x, y int) [4]uint8 { return [4]uint8{uint8(x / 3), uint8(y / 2), uint8(x * y / 500), 255} }).Pix)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.jpg")
	put(t, path, b.Bytes())
	return path
}

// Photos decoded in recycled memory, which is dirty, are the same, whatever is done to them.
func TestRecycledPixels(t *testing.T) {
	path := waves(t, 600, 400)
	lens := oneView(t, Calibration{lensFisheye, 600, 400, []float64{120, 120, 300, 200}}, 600, 400, 1)
	lens.Path = path
	for _, cam := range []Camera{{Path: path, Width: 600, Height: 400}, {Path: path, Width: 300, Height: 200}, lens} {
		first, err := cam.Decode()
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Clone(first.Pix)
		for range 4 {
			img, err := cam.Decode()
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
		cam := Camera{Path: path, Width: w / scale, Height: h / scale}
		decode := func() {
			img, err := cam.Decode()
			if err != nil {
				t.Fatal(err)
			}
			Recycle(img)
		}
		decode()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const n = 10
		for range n {
			decode()
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 4*w*h/4 {
			t.Errorf("at 1/%d: %d bytes of garbage a photo", scale, each)
		}
	}
}

// TestPoolOfAllCores gives memory back on many cores and wants all of it again on one; what nobody takes is collected.
func TestPoolOfAllCores(t *testing.T) {
	const n, size = 16, poolBytes + 4321 // a length of this test's own
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	percent := debug.SetGCPercent(-1)
	given := make([]*uint8, n)
	var ready, wait sync.WaitGroup
	ready.Add(n)
	for i := range n {
		wait.Go(func() {
			pix := newPixels(size)
			given[i] = &pix[0]
			ready.Done()
			ready.Wait() // until all have theirs
			freePixels(pix)
		})
	}
	wait.Wait()
	for range n {
		if pix := newPixels(size); !slices.Contains(given, &pix[0]) {
			t.Error("memory was allocated while there was some")
		}
	}
	freePixels(make([]uint8, size))
	debug.SetGCPercent(percent)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		pixels.mu.Lock()
		left := len(pixels.free[size])
		pixels.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("memory that nobody takes is kept")
		}
	}
}

// TestReadPooled reads files around the lengths at which memory is shared, in memory of other files.
func TestReadPooled(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, poolBytes - 1, poolBytes, poolBytes + 1, 3*poolBytes - 1, 2 * poolBytes} {
		path := filepath.Join(dir, strconv.Itoa(size))
		want := bytes.Repeat([]byte{byte(size + 7), 3}, size)[:size]
		put(t, path, want)
		for range 2 {
			got, err := readPooled(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes became %d: %v", size, len(got), err)
			}
			freeFile(got)
		}
	}
	if _, err := readPooled(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
