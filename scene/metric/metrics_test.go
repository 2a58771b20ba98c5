package metric

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/photo"
)

func randomImage(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 7))
	v := make([]float32, n)
	for i := range v {
		v[i] = rng.Float32()
	}
	return v
}

// bruteSSIM follows the definition: a full two-dimensional window per pixel.
func bruteSSIM(a, b []float32, width, height int, padding Padding, mask []uint32) float64 {
	margin := 0
	if padding == PaddingValid {
		margin = 5
	}
	var norm, total float64
	for i := -5; i <= 5; i++ {
		for j := -5; j <= 5; j++ {
			norm += math.Exp(-float64(i*i+j*j) / 4.5)
		}
	}
	count := 0
	for y := margin; y < height-margin; y++ {
		for x := margin; x < width-margin; x++ {
			if !photo.Counts(mask, y*width+x) {
				continue
			}
			for c := range 3 {
				var ma, mb, maa, mbb, mab float64
				for i := -5; i <= 5; i++ {
					for j := -5; j <= 5; j++ {
						if y+i < 0 || y+i >= height || x+j < 0 || x+j >= width {
							continue
						}
						w := math.Exp(-float64(i*i+j*j)/4.5) / norm
						p := float64(a[3*((y+i)*width+x+j)+c])
						q := float64(b[3*((y+i)*width+x+j)+c])
						ma, mb, maa, mbb, mab = ma+w*p, mb+w*q, maa+w*p*p, mbb+w*q*q, mab+w*p*q
					}
				}
				total += (2*ma*mb + 0.0001) * (2*(mab-ma*mb) + 0.0009) /
					((ma*ma + mb*mb + 0.0001) * (maa - ma*ma + mbb - mb*mb + 0.0009))
				count++
			}
		}
	}
	return total / float64(count)
}

func TestSSIMBruteForce(t *testing.T) {
	for _, size := range [][2]int{{11, 11}, {12, 11}, {11, 17}, {23, 19}, {106, 43}, {215, 12}, {12, 75}, {1, 1},
		{3, 30}} {
		w, h := size[0], size[1]
		a, b := randomImage(1, 3*w*h), randomImage(2, 3*w*h)
		for i := range b {
			b[i] = 0.7*a[i] + 0.3*b[i]
		}
		for _, padding := range []Padding{PaddingSame, PaddingValid} {
			got, err := SSIM(a, b, w, h, padding, nil)
			if padding == PaddingValid && min(w, h) < 11 {
				if err == nil {
					t.Errorf("%dx%d %v: no error", w, h, padding)
				}
				continue
			}
			if want := bruteSSIM(a, b, w, h, padding, nil); err != nil || math.Abs(got-want) > 1e-12 {
				t.Errorf("%dx%d %v: %v, %v, want %v", w, h, padding, got, err, want)
			}
			if same, err := SSIM(a, a, w, h, padding, nil); err != nil || math.Abs(same-1) > 1e-12 {
				t.Errorf("%dx%d %v: %v, %v for equal images", w, h, padding, same, err)
			}
		}
	}
}

// Masked pixels change neither figure, windows count by their middle, and masks that do not fit are refused.
func TestMetricsMasked(t *testing.T) {
	const w, h = 23, 19
	a, b := randomImage(1, 3*w*h), randomImage(2, 3*w*h)
	m := photo.NewMask(w, h)
	for i := range w * h {
		if (i*7+i/w)%5 == 0 || i%w > 17 {
			m.Drop(i)
		}
	}
	zeroA, zeroB, sum, n := make([]float32, len(a)), make([]float32, len(b)), 0.0, 0
	for i := range a {
		if photo.Counts(m.Words, i/3) {
			zeroA[i], zeroB[i] = a[i], b[i]
			sum += (float64(a[i]) - float64(b[i])) * (float64(a[i]) - float64(b[i]))
			n++
		}
	}
	if got, err := meanSquaredError(a, b, m.Words); err != nil || math.Abs(got-sum/float64(n)) > 1e-12 {
		t.Errorf("MSE %v %v, want %v", got, err, sum/float64(n))
	}
	for _, padding := range []Padding{PaddingSame, PaddingValid} {
		got, err := SSIM(a, b, w, h, padding, m.Words)
		if want := bruteSSIM(zeroA, zeroB, w, h, padding, m.Words); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: SSIM %v %v, want %v", padding, got, err, want)
		}
	}
	if _, err := PSNR(a, b, make([]uint32, (w*h+31)/32)); err == nil || !strings.Contains(err.Error(), "no pixel") {
		t.Errorf("no pixel: %v", err)
	}
	if _, err := SSIM(a, b, w, h, PaddingSame, make([]uint32, (w*h+31)/32)); err == nil ||
		!strings.Contains(err.Error(), "no pixel") {
		t.Errorf("no pixel: %v", err)
	}
	if _, err := meanSquaredError(a, b, m.Words[1:]); err == nil {
		t.Error("a mask of another size was taken")
	}
}

// TestCompare wants of a photo's bytes the very scores of its floats, with and without a mask.
func TestCompare(t *testing.T) {
	const w, h = 130, 50
	shot := scene.Image{Width: w, Height: h, Pix: make([]uint8, 4*w*h)}
	for i := range shot.Pix {
		shot.Pix[i] = uint8(i * 31 / 7)
	}
	render, mask := randomImage(5, 3*w*h), make([]uint32, (w*h+31)/32)
	for i := range mask {
		mask[i] = 0x7fff3c01 * uint32(i+1)
	}
	for _, m := range [][]uint32{nil, mask} {
		psnr, ssim, err := Compare(shot, render, PaddingValid, m)
		wantPSNR, err1 := PSNR(render, photo.FloatRGB(shot), m)
		wantSSIM, err2 := SSIM(render, photo.FloatRGB(shot), w, h, PaddingValid, m)
		if err != nil || err1 != nil || err2 != nil || psnr != wantPSNR || ssim != wantSSIM {
			t.Errorf("%v and %v, %v; want %v and %v", psnr, ssim, err, wantPSNR, wantSSIM)
		}
	}
	if _, _, err := Compare(shot, render[3:], PaddingValid, nil); err == nil {
		t.Error("a render of another size was taken")
	}
	if _, _, err := Compare(shot, render, PaddingValid, mask[1:]); err == nil {
		t.Error("a mask of another size was taken")
	}
	if _, _, err := Compare(shot, render, PaddingValid, make([]uint32, len(mask))); err == nil ||
		!strings.Contains(err.Error(), "no pixel") {
		t.Errorf("no pixel: %v", err)
	}
}

func TestPSNR(t *testing.T) {
	a := randomImage(3, 60000)
	b := make([]float32, len(a))
	for i := range a {
		b[i] = a[i] + 0.125
	}
	if got, err := PSNR(a, b, nil); err != nil || math.Abs(got-20*math.Log10(8)) > 1e-5 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := PSNR(a, a, nil); err != nil || !math.IsInf(got, 1) {
		t.Errorf("equal images: %v, %v", got, err)
	}
	if _, err := PSNR(a, b[1:], nil); err == nil {
		t.Error("images of different size pass")
	}
	if _, err := PSNR(nil, nil, nil); err == nil {
		t.Error("empty images pass")
	}
	if _, err := SSIM(a, b, 100, 100, PaddingSame, nil); err == nil {
		t.Error("a wrong size passes")
	}
}

// The number of workers shows nowhere.
func TestMetricsDeterministic(t *testing.T) {
	a, b := randomImage(4, 3*97*83), randomImage(5, 3*97*83)
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	mse, _ := meanSquaredError(a, b, nil)
	ssim, _ := SSIM(a, b, 97, 83, PaddingSame, nil)
	for procs := 2; procs < 9; procs++ {
		runtime.GOMAXPROCS(procs)
		m, _ := meanSquaredError(a, b, nil)
		s, _ := SSIM(a, b, 97, 83, PaddingSame, nil)
		if m != mse || s != ssim {
			t.Fatalf("%d processors: %v, %v, with one %v, %v", procs, m, s, mse, ssim)
		}
	}
}

// The vectors come from an independent implementation in float32.
func TestSSIMGolden(t *testing.T) {
	for padding, name := range map[Padding]string{PaddingSame: "loss_same.npz", PaddingValid: "loss_valid.npz"} {
		path := filepath.Join("..", "..", "pipeline", "testdata", "golden", name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no golden vectors: %v", err)
		}
		image, shape := readArray(t, path, "image")
		target, _ := readArray(t, path, "target")
		want, _ := readArray(t, path, "ssim")
		got, err := SSIM(image, target, shape[1], shape[0], padding, nil)
		if err != nil || math.Abs(got-float64(want[0])) > 1e-6 {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want[0])
		}
	}
}

// readArray reads a float32 array of an npz file with its shape.
func readArray(t *testing.T, path, name string) (data []float32, shape []int) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f := must.Get(z.Open(name + ".npy"))(t)
	defer f.Close()
	raw, err := io.ReadAll(f)
	if err != nil || len(raw) < 10 {
		t.Fatalf("%s: %d bytes, %v", name, len(raw), err)
	}
	header := 10 + int(binary.LittleEndian.Uint16(raw[8:]))
	text := string(raw[10:header])
	if !strings.Contains(text, "'<f4'") {
		t.Fatalf("%s: not float32: %s", name, text)
	}
	n := 0
	_, text, _ = strings.Cut(text, "(")
	text, _, _ = strings.Cut(text, ")")
	for _, digit := range text + "," {
		if digit >= '0' && digit <= '9' {
			n = 10*n + int(digit-'0')
		} else if n > 0 {
			shape, n = append(shape, n), 0
		}
	}
	for i := header; i < len(raw); i += 4 {
		data = append(data, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
	}
	return data, shape
}

func BenchmarkSSIM(b *testing.B) {
	x, y := randomImage(1, 3*800*533), randomImage(2, 3*800*533)
	for b.Loop() {
		if _, err := SSIM(x, y, 800, 533, PaddingValid, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// meanSquaredError returns the mean squared difference of two RGB images [pixels*3] over
// the pixels that count; mask is as in Image.Mask, nil for all.
// The sum is taken in float64 in a fixed order.
func meanSquaredError(a, b []float32, mask []uint32) (float64, error) {
	if len(a) != len(b) || len(a) == 0 || len(a)%3 != 0 {
		return 0, fmt.Errorf("compare images: %d and %d values: %w", len(a), len(b), scene.ErrShape)
	}
	if err := checkMask(mask, len(a)/3); err != nil {
		return 0, err
	}
	return meanSquare(colours{rgb: a}, colours{rgb: b}, len(a)/3, mask)
}

// PSNR returns 10*log10(1/MSE) in decibels of two RGB images with values in 0..1 over the pixels that count.
// Equal images give +Inf. Nothing is clamped.
func PSNR(a, b []float32, mask []uint32) (float64, error) {
	mse, err := meanSquaredError(a, b, mask)
	if err != nil {
		return 0, err
	}
	return -10 * math.Log10(mse), nil
}

// SSIM is meanSSIM of floats.
func SSIM(a, b []float32, width, height int, padding Padding, mask []uint32) (float64, error) {
	if width <= 0 || height <= 0 || len(a) != 3*width*height || len(b) != len(a) {
		return 0, fmt.Errorf("compare images: %d and %d values for %dx%d pixels: %w", len(a), len(b), width, height,
			scene.ErrShape)
	}
	if err := checkMask(mask, width*height); err != nil {
		return 0, err
	}
	return meanSSIM(colours{rgb: a}, colours{rgb: b}, width, height, padding, mask)
}
