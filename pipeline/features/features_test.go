package features

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/failure"
	"vksplat/pipeline/ref"
	"vksplat/vk"
	"vksplat/vk/vktest"
)

// spots is a photo of spots of many sizes.
func spots(width, height int) []byte {
	light, rnd := make([]float64, width*height), rand.New(rand.NewPCG(7, 11))
	for range width * height / 12 {
		x, y, size := rnd.IntN(width), rnd.IntN(height), math.Exp(1.8*rnd.Float64())
		reach, add := int(3*size)+1, 160*(rnd.Float64()-0.5)
		for v := max(0, y-reach); v < min(height, y+reach); v++ {
			for u := max(0, x-reach); u < min(width, x+reach); u++ {
				dx, dy := float64(u-x), float64(v-y)
				light[v*width+u] += add * math.Exp(-(dx*dx+0.6*dy*dy+0.3*dx*dy)/(size*size))
			}
		}
	}
	grey := make([]byte, len(light))
	for i, v := range light {
		grey[i] = byte(min(max(128+v, 0), 255))
	}
	return grey
}

func extractor(t testing.TB, d *vk.Device, change func(o *Options)) *Extractor {
	t.Helper()
	o := Default()
	if change != nil {
		change(&o)
	}
	e := must.Get(New(d, o))(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// eachShape runs a test with the kernels of the device's own shape, and with those of GPUs.
func eachShape(t *testing.T, test func(t *testing.T)) {
	t.Run("own", test)
	t.Run("gpu", func(t *testing.T) {
		t.Setenv("VKSPLAT_LANES", "gpu")
		test(t)
	})
}

func equal(a, b Set) bool {
	return slices.Equal(a.Points, b.Points) && bytes.Equal(a.Descriptors, b.Descriptors)
}

// twinned is what the twins find.
func twinned(grey []byte, width, height int) (all []described) {
	for index, first := range []int{-1, 0, 1, 2} {
		var o ref.SiftOctave[float64]
		p := ref.SiftInput[float64](grey, width, height, max(1, 2-index))
		for to := min(first, 0); to <= first; to++ {
			for i, sigma := range blurs(to) {
				if i > 0 || to <= 0 {
					weights, radius := gaussian(sigma)
					p = ref.SiftBlur(p, ref.ConvertSlice[float64](weights[:radius+1]))
				}
				o[i] = p
			}
			p = ref.SiftHalve(o[3])
		}
		pixel := math.Exp2(float64(first))
		for _, tile := range ref.SiftExtrema(&o, 0.02/3, 10) {
			for _, at := range tile {
				peaks := ref.SiftOrient(&o, at)
				for k, peak := range peaks {
					if k > 1 || peak.Height < 0.8*peaks[0].Height {
						break
					}
					d := described{Keypoint{float32(float64(at.X)*pixel + 0.5), float32(float64(at.Y)*pixel + 0.5),
						float32(firstSigma * math.Exp2(float64(at.Level)/3) * pixel), float32(peak.Angle)}, nil}
					for _, v := range ref.SiftDescribe(&o, at, peak.Angle) {
						d.bytes = append(d.bytes, byte(v+0.5))
					}
					all = append(all, d)
				}
			}
		}
	}
	return all
}

// unlike is how much two keypoints differ, of what rounding may do.
func unlike(a Keypoint, bytes []byte, b described) float64 {
	worst := max(math.Abs(float64(a.X-b.X)), math.Abs(float64(a.Y-b.Y)), math.Abs(float64(a.Scale/b.Scale-1))) / 0.01
	worst = max(worst, math.Abs(math.Remainder(float64(a.Angle-b.Angle), 2*math.Pi))/0.02)
	for i := range bytes {
		worst = max(worst, math.Abs(float64(bytes[i])-float64(b.bytes[i]))/6)
	}
	return worst
}

func TestTwin(t *testing.T) { eachShape(t, testTwin) }

func testTwin(t *testing.T) {
	const width, height = 75, 53
	grey := spots(width, height)
	got, want := must.Get(extractor(t, vktest.Device(t), nil).Extract(t.Context(), width, height, grey))(t),
		twinned(grey, width, height)
	if len(want) < 60 {
		t.Fatalf("the twins find %d keypoints, too few for a test", len(want))
	}
	missing := max(0, len(want)-len(got.Points))
	for i, p := range got.Points {
		d := got.Descriptors[128*i:][:128]
		if !slices.ContainsFunc(want, func(w described) bool { return unlike(p, d, w) < 1 }) {
			missing++
		}
	}
	if len(got.Points) > len(want)+1 || missing > 1 { // one may lie on a threshold
		t.Errorf("%d keypoints, %d of them not among the %d that the twins find", len(got.Points), missing, len(want))
	}
}

func TestSameBytes(t *testing.T) { eachShape(t, testSameBytes) }

func testSameBytes(t *testing.T) {
	const width, height = 90, 125
	d, grey := vktest.Device(t), spots(width, height)
	e := extractor(t, d, nil)
	whole := must.Get(e.Extract(t.Context(), width, height, grey))(t)
	if len(whole.Points) < 100 || len(whole.Descriptors) != 128*len(whole.Points) {
		t.Fatalf("%d keypoints, %d bytes", len(whole.Points), len(whole.Descriptors))
	}
	if !slices.IsSortedFunc(whole.Points, func(a, b Keypoint) int { return int(b.Scale*1e6) - int(a.Scale*1e6) }) {
		t.Error("keypoints are not in the order of their scales")
	}
	if again := must.Get(e.Extract(t.Context(), width, height, grey))(t); !equal(again, whole) {
		t.Error("the same photo gave other bytes")
	}
	for _, rows := range []int{2*halo + tileY, 2*halo + 5*tileY} {
		banded := extractor(t, d, func(o *Options) { o.MaxBytes = int64(rows) * 192 * 4 * levels })
		if got := must.Get(banded.Extract(t.Context(), width, height, grey))(t); !equal(got, whole) {
			t.Errorf("bands of %d rows gave other bytes: %d keypoints, not %d", rows, len(got.Points),
				len(whole.Points))
		}
	}
	t.Setenv("VKSPLAT_SERIAL", "1")
	if serial := must.Get(extractor(t, d, nil).Extract(t.Context(), width, height, grey))(t); !equal(serial, whole) {
		t.Error("running passes one by one gave other bytes")
	}
}

// TestTogether has photos of more sizes than there are lanes, and of several at a time.
func TestTogether(t *testing.T) {
	d := vktest.Device(t)
	e := extractor(t, d, nil)
	var all sync.WaitGroup
	defer all.Wait()
	for i := range lanes + 2 {
		width, height := 60+10*i, 80
		grey := spots(width, height)
		want := must.Get(extractor(t, d, nil).Extract(t.Context(), width, height, grey))(t)
		all.Go(func() {
			for range 3 {
				if got, err := e.Extract(t.Context(), width, height, grey); err != nil || !equal(got, want) {
					t.Errorf("%d keypoints of %dx%d (%v), want %d", len(got.Points), width, height, err,
						len(want.Points))
				}
			}
		})
	}
}

func TestMax(t *testing.T) {
	const width, height = 75, 53
	d, grey := vktest.Device(t), spots(width, height)
	all := must.Get(extractor(t, d, nil).Extract(t.Context(), width, height, grey))(t)
	few := must.Get(extractor(t, d, func(o *Options) { o.Max = 10 }).Extract(t.Context(), width, height, grey))(t)
	if len(few.Points) != 10 || few.Points[0] != all.Points[0] || !bytes.Equal(few.Descriptors[:128],
		all.Descriptors[:128]) {
		t.Errorf("the largest are %v, want %v", few.Points, all.Points[:10])
	}
	plain := must.Get(extractor(t, d, func(o *Options) { o.FirstOctave = 0 }).Extract(t.Context(), width, height,
		grey))(t)
	if n := len(plain.Points); n == 0 || 2*n > len(all.Points) {
		t.Errorf("%d keypoints without the doubled photo, %d with it", n, len(all.Points))
	}
}

func TestOddPhotos(t *testing.T) {
	e := extractor(t, vktest.Device(t), nil)
	for _, size := range [][2]int{{1, 1}, {7, 9}, {8, 300}, {40, 40}} {
		if s := must.Get(e.Extract(t.Context(), size[0], size[1], bytes.Repeat([]byte{77}, size[0]*size[1])))(t); len(
			s.Points) != 0 {
			t.Errorf("a grey photo of %v pixels has keypoints %v", size, s.Points)
		}
	}
	if _, err := e.Extract(t.Context(), 5, 5, make([]byte, 24)); err == nil || !strings.Contains(err.Error(), "5x5") {
		t.Errorf("a pixel less than 5x5: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := e.Extract(stopped, 40, 40, spots(40, 40)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	small := extractor(t, e.dev, func(o *Options) { o.MaxBytes = 1 << 20 })
	if _, err := small.Extract(t.Context(), 300, 300, spots(300, 300)); !errors.Is(err, failure.ErrTooSmall) {
		t.Errorf("a MiB for a photo of 300x300: %v", err)
	}
	if _, err := New(e.dev, Options{}); err == nil {
		t.Error("no options are options")
	}
}

func TestReduce(t *testing.T) {
	if w, h := reduced(4000, 3001, 3200); w != 3200 || h != 2401 {
		t.Errorf("4000x3001 becomes %dx%d", w, h)
	}
	if got := reduce([]byte{0, 30, 60, 90, 120, 150}, 6, 1, 3, 1); !bytes.Equal(got, []byte{15, 75, 135}) {
		t.Errorf("pairs: %v", got)
	}
	if got := reduce([]byte{0, 30, 90, 9, 9, 9}, 3, 2, 2, 1); !bytes.Equal(got, []byte{10, 40}) {
		t.Errorf("two of three: %v", got)
	}
}

// BenchmarkExtract measures photos of several sizes, several at a time, the kernels in a run of their own.
func BenchmarkExtract(b *testing.B) {
	d := vktest.Device(b)
	for _, side := range []int{500, 1000, 2000, 3200} {
		grey, e := spots(side, side*2/3), extractor(b, d, nil)
		b.Run(fmt.Sprint(side), func(b *testing.B) {
			n := len(must.Get(e.Extract(b.Context(), side, side*2/3, grey))(b).Points)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					must.Get(e.Extract(b.Context(), side, side*2/3, grey))(b)
				}
			})
			b.ReportMetric(float64(n), "keypoints")
			times, e := map[string]float64{}, extractor(b, d, nil)
			e.timed = func(passes []vk.PassTime) {
				for _, p := range passes {
					times[strings.Fields(p.Name)[0]] += float64(p.Nanoseconds) / 1e6
				}
			}
			must.Get(e.Extract(b.Context(), side, side*2/3, grey))(b)
			for name, ms := range times {
				b.ReportMetric(ms, name+"-ms")
			}
		})
	}
}
