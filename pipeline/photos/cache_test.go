package photos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/pipeline/failure"
	"vksplat/scene"
)

// testPhotos is a set of photos that no file holds: every pixel tells its view.
type testPhotos struct {
	cams    []scene.Camera
	decoded atomic.Int64
	now     atomic.Int64 // photos that are being decoded
	most    atomic.Int64
	fail    map[string]error
	delay   time.Duration
}

func newTestPhotos(n, width, height int) *testPhotos {
	b := &testPhotos{fail: map[string]error{}}
	for i := range n {
		b.cams = append(b.cams, scene.Camera{Name: fmt.Sprint(i), Width: width, Height: height})
	}
	return b
}

func (b *testPhotos) decode(c scene.Camera) (scene.Image, error) {
	b.decoded.Add(1)
	if now := b.now.Add(1); now > b.most.Load() {
		b.most.Store(now)
	}
	defer b.now.Add(-1)
	time.Sleep(b.delay)
	if err := b.fail[c.Name]; err != nil {
		return scene.Image{}, err
	}
	return b.image(c), nil
}

// oneByOne decodes views each for itself.
func oneByOne(decode func(c scene.Camera) (scene.Image, error)) func(cams []scene.Camera) ([]scene.Image, []error) {
	return func(cams []scene.Camera) (images []scene.Image, errs []error) {
		for _, c := range cams {
			m, err := decode(c)
			images, errs = append(images, m), append(errs, err)
		}
		return images, errs
	}
}

// image draws a photo; every third has a mask.
func (b *testPhotos) image(c scene.Camera) scene.Image {
	var id int
	fmt.Sscan(c.Name, &id)
	m := scene.Image{Width: c.Width, Height: c.Height, Pix: make([]uint8, 4*c.Width*c.Height)}
	for i := range m.Pix {
		m.Pix[i] = uint8(id*31 + i)
	}
	if id%3 == 0 {
		m.Mask = make([]uint32, MaskWords(c.Width*c.Height))
		for i := range m.Mask {
			m.Mask[i] = uint32(id + i)
		}
	}
	return m
}

func (b *testPhotos) options(photos int) Options {
	size := Bytes(&b.cams[0])
	return Options{Cameras: b.cams, Decode: oneByOne(b.decode), DecodeBytes: func(scene.Camera) int64 { return 1000 },
		Bytes:       int64(photos) * size,
		FlightBytes: 2000, Workers: 4}
}

// check asks for a photo, compares every pixel, and releases it.
func (b *testPhotos) check(t *testing.T, c *Cache, view int) {
	t.Helper()
	m := must.Get(c.Photo(context.Background(), view))(t)
	want := b.image(b.cams[view])
	if string(m.Pix) != string(want.Pix) || fmt.Sprint(m.Mask) != fmt.Sprint(want.Mask) {
		t.Fatalf("view %d has other pixels", view)
	}
	c.Release(view)
}

// epochs returns the views of some epochs.
func (b *testPhotos) epochs(seed uint64, n int) (list []int) {
	for e := range n {
		list = append(list, philox.ViewOrder(seed, e, len(b.cams))...)
	}
	return list
}

// run asks for the views of epochs in order, expecting two epochs ahead.
func (b *testPhotos) run(t *testing.T, c *Cache, epochs int) {
	t.Helper()
	n := len(b.cams)
	list := b.epochs(1, epochs)
	c.Expect(list[:n])
	for i, v := range list {
		if i%n == 0 && i+n < len(list) {
			c.Expect(list[i+n : i+2*n])
		}
		b.check(t, c, v)
	}
}

func TestCacheAll(t *testing.T) {
	b := newTestPhotos(12, 16, 9)
	c := must.Get(NewCache(b.options(12)))(t)
	defer c.Close()
	b.run(t, c, 5)
	if s := c.Stats(); s.Decoded != 12 || s.Evicted != 0 {
		t.Errorf("%+v: each photo is to be decoded once", s)
	}
	allocs := testing.AllocsPerRun(100, func() {
		must.Get(c.Photo(context.Background(), 3))(t)
		c.Release(3)
	})
	if allocs != 0 {
		t.Errorf("%g allocations for a photo that is there", allocs)
	}
}

// TestCacheSmall runs with room for a few photos, with and without a disk cache.
func TestCacheSmall(t *testing.T) {
	for _, disk := range []string{"", "all", "part"} {
		t.Run("disk "+disk, func(t *testing.T) {
			b := newTestPhotos(20, 16, 9)
			o := b.options(5)
			if disk != "" {
				o.SpillDir = t.TempDir()
			}
			if disk == "part" {
				o.SpillBytes = 7 * Bytes(&b.cams[0])
			}
			c := must.Get(NewCache(o))(t)
			const epochs = 8
			b.run(t, c, epochs)
			s := c.Stats()
			t.Logf("%+v", s)
			if s.PeakBytes > o.Bytes || s.PeakExtra > o.FlightBytes || b.most.Load() > 2 {
				t.Errorf("%d and %d bytes, %d decoded at once: %d and %d bytes are allowed", s.PeakBytes, s.PeakExtra,
					b.most.Load(), o.Bytes, o.FlightBytes)
			}
			// Each use of a photo that is not there costs one load; by next use at least a share of the photos as large
			// as the cache is there.
			if loads := s.Decoded + s.Read; loads > epochs*20*3/4+20 {
				t.Errorf("%d loads for %d uses with room for a quarter of the photos", loads, epochs*20)
			}
			switch {
			case disk == "all" && s.Decoded > 25:
				t.Errorf("%d photos decoded, 20 are there and the disk holds all", s.Decoded)
			case disk == "part" && (s.Read == 0 || s.DiskBytes > o.SpillBytes):
				t.Errorf("%d photos read from a disk cache of %d bytes, %d are allowed", s.Read, s.DiskBytes,
					o.SpillBytes)
			}
			must.Do(t, c.Close())
			if disk != "" {
				if left, _ := filepath.Glob(o.SpillDir + "/*"); len(left) > 0 {
					t.Errorf("%v are left", left)
				}
			}
		})
	}
}

// TestCacheParallel has room for few of many photos, which take long to decode: all workers decode at once for all
// that.
func TestCacheParallel(t *testing.T) {
	b := newTestPhotos(40, 16, 9)
	b.delay = 20 * time.Millisecond
	o := b.options(6)
	o.FlightBytes = 4000
	c := must.Get(NewCache(o))(t)
	defer c.Close()
	b.run(t, c, 2)
	if s := c.Stats(); b.most.Load() < int64(o.Workers) || s.PeakBytes > o.Bytes {
		t.Errorf("%d photos decoded at once by %d workers, in %d bytes of %d", b.most.Load(), o.Workers, s.PeakBytes,
			o.Bytes)
	}
	for _, tt := range []struct {
		photos, workers int
		flight          int64
		want            int
	}{{6, 4, 4000, 4}, {6, 4, 2000, 2}, {6, 16, 16000, 4}, {100, 16, 16000, 25}, {400, 16, 16000, 32}, {2, 4, 4000, 1},
		{3, 4, 0, 1}} {
		o := b.options(tt.photos)
		o.Workers, o.FlightBytes = tt.workers, tt.flight
		c := must.Get(NewCache(o))(t)
		if c.ahead != tt.want {
			t.Errorf("%+v: %d are read ahead", tt, c.ahead)
		}
		must.Do(t, c.Close())
	}
}

// TestCacheOutOfTurn asks for photos that nobody expected, and forgets what was expected.
func TestCacheOutOfTurn(t *testing.T) {
	b := newTestPhotos(20, 16, 9)
	c := must.Get(NewCache(b.options(2)))(t)
	defer c.Close()
	c.Expect([]int{1, 2, 3, 4, 5, 6})
	for _, v := range []int{1, 19, 2, 1, 18, 3, 3, 0} {
		b.check(t, c, v)
	}
	c.Forget()
	for _, v := range []int{6, 5, 4, 19} {
		b.check(t, c, v)
	}
	c.Expect([]int{7, 8})
	b.check(t, c, 7)
}

// TestCacheEmpty lends a cache's memory to others while photos are being decoded: nothing is held or decoded then,
// and what was expected is kept.
func TestCacheEmpty(t *testing.T) {
	b := newTestPhotos(20, 16, 9)
	b.delay = 50 * time.Millisecond
	c := must.Get(NewCache(b.options(6)))(t)
	defer c.Close()
	c.Expect([]int{3, 4, 5, 6, 7, 8})
	b.check(t, c, 3)
	for b.now.Load() == 0 && b.decoded.Load() < 6 { // until one is read ahead, or on a busy machine all have been
		time.Sleep(time.Millisecond)
	}
	c.Empty()
	c.mu.Lock()
	held, flight, ahead := c.held, c.flight, c.queue.first[8]
	c.mu.Unlock()
	if now := b.now.Load(); held != 0 || flight != 0 || now != 0 || ahead == Never {
		t.Errorf("after Empty %d bytes are held, %d taken by decoding, %d photos decoded; what is expected is kept: "+
			"%v", held, flight, now, ahead != Never)
	}
	for v := 4; v <= 8; v++ {
		b.check(t, c, v)
	}
}

func TestCacheFailures(t *testing.T) {
	b := newTestPhotos(6, 16, 9)
	b.fail["2"] = errors.New("no pixels")
	b.fail["4"] = fmt.Errorf("busy: %w", fault.ErrTryAgain)
	c := must.Get(NewCache(b.options(3)))(t)
	defer c.Close()
	c.Expect([]int{0, 1, 2, 3, 4, 5})
	b.check(t, c, 0)
	for range 2 {
		if _, err := c.Photo(context.Background(), 2); !errors.Is(err, b.fail["2"]) {
			t.Errorf("got %v, want %v", err, b.fail["2"])
		}
	}
	if _, err := c.Photo(context.Background(), 4); !errors.Is(err, fault.ErrTryAgain) {
		t.Errorf("got %v, want %v", err, fault.ErrTryAgain)
	}
	if _, err := c.Photo(context.Background(), 6); err == nil {
		t.Error("a view that is not there has a photo")
	}
	delete(b.fail, "4")
	b.check(t, c, 4)
	// A caller that waits ends with its context.
	b.delay = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Photo(ctx, 5); !errors.Is(err, context.DeadlineExceeded) && err != nil {
		t.Errorf("got %v", err)
	}
	o := b.options(1)
	o.Bytes--
	if _, err := NewCache(o); !errors.Is(err, failure.ErrTooSmall) {
		t.Errorf("got %v, want %v", err, failure.ErrTooSmall)
	}
}

// TestSpillLeftovers opens a disk cache where a killed run left one, and where none can be.
func TestSpillLeftovers(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "vksplat-photos-123.cache")
	other := filepath.Join(dir, "notes.txt")
	for _, f := range []string{old, other} {
		must.Do(t, os.WriteFile(f, []byte("x"), 0o600))
	}
	s := must.Get(openSpill(dir, 0, 1<<20, 4))(t)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("the cache of the killed run is still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("another file is gone:", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := openSpill(filepath.Join(other, "dir"), 0, 1<<20, 4); !errors.Is(err, fault.ErrTryAgain) ||
		fault.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}

// TestSpillBroken makes the disk cache fail: photos are decoded again, and the user is told.
func TestSpillBroken(t *testing.T) {
	b := newTestPhotos(20, 16, 9)
	o := b.options(5)
	o.SpillDir = t.TempDir()
	var warnings atomic.Int64
	o.Warn = func(string) { warnings.Add(1) }
	c := must.Get(NewCache(o))(t)
	list := b.epochs(1, 6)
	c.Expect(list)
	for i, v := range list {
		if i == 50 {
			c.spill.file.Close()
		}
		b.check(t, c, v)
	}
	if warnings.Load() == 0 {
		t.Error("nobody was told")
	}
	if err := c.Close(); err == nil {
		t.Error("closing a broken cache says nothing")
	}
}

// TestCacheFaces runs with panoramas: their faces are made of as few decodings as the room allows, and the pixels
// are the same.
func TestCacheFaces(t *testing.T) {
	const panoramas, faces, epochs = 20, 6, 6
	uses := epochs * panoramas * faces
	for _, test := range []struct {
		room, disk int // photos that RAM and the disk hold
		// files decoded, a few more where goroutines evict what others are about to need; each face for itself took
		// 120, 420, 575, 120 and 681
		most int
	}{{panoramas * faces, 0, panoramas}, {panoramas * faces / 2, 0, uses / 3},
		{panoramas * faces / 4, 0, uses * 2 / 3}, {panoramas * faces / 4, panoramas * faces, 3 * panoramas},
		{7, 0, uses}} {
		b := newTestPhotos(panoramas*faces, 8, 8)
		for i := range b.cams {
			b.cams[i].Photo, b.cams[i].Path = fmt.Sprint("p", i/faces), fmt.Sprint("p", i/faces)
		}
		b.fail["13"] = fmt.Errorf("no pixels: %w", fault.ErrData)
		o := b.options(test.room)
		if test.disk > 0 {
			o.SpillDir, o.SpillBytes = t.TempDir(), int64(test.disk)*Bytes(&b.cams[0])
		}
		c := must.Get(NewCache(o))(t)
		n := len(b.cams)
		list := b.epochs(1, epochs)
		c.Expect(list[:n])
		for i, v := range list {
			if i%n == 0 && i+n < len(list) {
				c.Expect(list[i+n : i+2*n])
			}
			if v == 13 {
				if _, err := c.Photo(context.Background(), v); !errors.Is(err, fault.ErrData) {
					t.Fatal(err)
				}
				continue
			}
			b.check(t, c, v)
		}
		s := c.Stats()
		t.Logf("room for %d of %d: %d files for %d uses, %+v", test.room, n, s.Files, uses, s)
		if s.Files > test.most || s.PeakBytes > o.Bytes || s.PeakExtra > o.FlightBytes {
			t.Errorf("room for %d of %d: %+v, want at most %d decodings in %d bytes", test.room, n, s, test.most,
				o.Bytes)
		}
		must.Do(t, c.Close())
	}
}
