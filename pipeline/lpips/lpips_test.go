package lpips

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/pipeline/failure"
	"vksplat/pipeline/ref"
	"vksplat/scene/metric"
	"vksplat/vk"
	"vksplat/vk/vktest"
)

// madeNumbers returns numbers that follow from seed and id alone, uniform in [low, low+span).
func madeNumbers(seed uint64, id uint32, n int, low, span float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		bits := philox.Block([4]uint32{uint32(i / 4), id, 0, 0}, philox.Key(seed))
		x[i] = float32(low + span*philox.Uniform(bits[i%4]))
	}
	return x
}

// madeWeights makes up weights of a network. Kernels are of the size that keeps features at theirs (He et al. 2015,
// Delving Deep into Rectifiers).
func madeWeights(net string) *metric.LPIPSWeights {
	w := &metric.LPIPSWeights{Net: net}
	for i, l := range metric.LPIPSLayers(net) {
		var kernels, biases, channels []float32
		if !l.Pool {
			bound := math.Sqrt(6 / float64(l.In*l.Side*l.Side))
			kernels = madeNumbers(1, uint32(i), l.Out*l.In*l.Side*l.Side, -bound, 2*bound)
			biases = madeNumbers(2, uint32(i), l.Out, -0.1, 0.2)
		}
		if l.Compared {
			channels = madeNumbers(3, uint32(i), l.Out, 0, 2)
		}
		w.Kernels, w.Biases, w.Channels = append(w.Kernels, kernels), append(w.Biases, biases),
			append(w.Channels, channels)
	}
	return w
}

// madePair makes up two pictures of 0..1: noise, and the same with other noise over its left half.
func madePair(width, height int) (x, y []float32) {
	x, y = madeNumbers(4, uint32(width), 3*width*height, 0, 1), madeNumbers(5, uint32(height), 3*width*height, 0, 1)
	for i := range y {
		if i/3%width >= width/2 {
			y[i] = x[i]
		}
	}
	return x, y
}

// refLayers returns the layers of the reference.
func refLayers(w *metric.LPIPSWeights) (layers []refLayer) {
	for i, l := range metric.LPIPSLayers(w.Net) {
		r := refLayer{Side: l.Side, Stride: l.Stride, Pad: l.Pad}
		if !l.Pool {
			r.Kernels, r.Biases = ref.ConvertSlice[float64](w.Kernels[i]), ref.ConvertSlice[float64](w.Biases[i])
		}
		if l.Compared {
			r.Channels = ref.ConvertSlice[float64](w.Channels[i])
		}
		layers = append(layers, r)
	}
	return layers
}

func newTestScore(t testing.TB, d *vk.Device, w *metric.LPIPSWeights, o Options) *Scorer {
	t.Helper()
	l := must.Get(New(d, w, o))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func score(t testing.TB, l *Scorer, x, y []float32, width, height int) float64 {
	t.Helper()
	s, err := l.Score(x, y, width, height)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	return s
}

// fixtures are scores of madeWeights and madePair by PyTorch 2.15.0 on a CPU: testdata/lpips_torch.py, an
// implementation of the published architecture that shares no line with ours, in float64. TestTorch makes them again
// where there is PyTorch.
var fixtures = []struct {
	net           string
	width, height int
	normalize     bool
	want          float64
}{
	{"alex", 31, 31, true, 1.044607937204},
	{"alex", 75, 64, true, 0.968559160598},
	{"alex", 75, 64, false, 0.192818278699},
	{"vgg", 16, 16, false, 0.232153347241},
	{"vgg", 37, 41, false, 0.218166091597},
	{"vgg", 37, 41, true, 0.733895576912},
}

// TestScore compares scores with PyTorch's, and those of small pictures with the reference's.
func TestScore(t *testing.T) {
	d := vktest.Device(t)
	weights := map[string]*metric.LPIPSWeights{metric.LPIPSAlex: madeWeights(metric.LPIPSAlex),
		metric.LPIPSVGG: madeWeights(metric.LPIPSVGG)}
	for _, f := range fixtures {
		t.Run(fmt.Sprintf("%s %dx%d %v", f.net, f.width, f.height, f.normalize), func(t *testing.T) {
			w := weights[f.net]
			l := newTestScore(t, d, w, Options{Normalize: f.normalize})
			x, y := madePair(f.width, f.height)
			got := score(t, l, x, y, f.width, f.height)
			t.Logf("device %.9f, PyTorch is off by %.2g", got, f.want/got-1)
			if !(math.Abs(got-f.want) <= 1e-4*f.want) {
				t.Errorf("score %.9f, PyTorch has %.9f", got, f.want)
			}
			if f.net == metric.LPIPSAlex || f.width == 16 {
				want := refLPIPS(refLayers(w), ref.ConvertSlice[float64](x), ref.ConvertSlice[float64](y), f.width,
					f.height, f.normalize)
				if t.Logf("the reference is off by %.2g", want/got-1); !(math.Abs(got-want) <= 1e-4*want) {
					t.Errorf("score %.9f, the reference has %.9f", got, want)
				}
			}
			if same := score(t, l, x, x, f.width, f.height); same != 0 {
				t.Errorf("a picture is %g apart from itself", same)
			}
		})
	}
}

// TestBands requires the same bits for any number of bands.
func TestBands(t *testing.T) {
	d := vktest.Device(t)
	for _, c := range []struct {
		net           string
		width, height int
		rows          []int // of a band
	}{{"alex", 50, 150, []int{1, 5, 40}}, {"vgg", 17, 40, []int{3, 16}}} {
		w := madeWeights(c.net)
		x, y := madePair(c.width, c.height)
		whole := newTestScore(t, d, w, Options{})
		want := score(t, whole, x, y, c.width, c.height)
		if n := len(whole.prepared.bands.rows); n != 1 {
			t.Fatalf("%s: %d bands, want one", c.net, n)
		}
		for _, rows := range c.rows {
			b := newBands(whole.layers, c.width, c.height, rows)
			l := newTestScore(t, d, w, Options{maxBytes: whole.bytes + b.counts(whole.layers).bytes()})
			if got := score(t, l, x, y, c.width, c.height); math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("%s with %d rows a band: score %.17g, whole %.17g", c.net, rows, got, want)
			}
			n := len(l.prepared.bands.rows)
			if n < 2 || l.bytes+l.Buffers.counts.bytes() > l.options.maxBytes {
				t.Errorf("%s with %d rows a band: %d bands, %d bytes of %d", c.net, rows, n,
					l.bytes+l.Buffers.counts.bytes(), l.options.maxBytes)
			}
		}
	}
}

// TestMemory requires that what a comparison takes is what was said, that it is given back, and errors that say what is
// missing.
func TestMemory(t *testing.T) {
	d := vktest.Device(t)
	before := d.Stats().InUse
	w := madeWeights(metric.LPIPSAlex)
	l := must.Get(New(d, w, Options{maxBytes: leastBytes(metric.LPIPSAlex, 200, 120)}))(t)
	x, y := madePair(200, 120)
	score(t, l, x, y, 200, 120)
	const small = 64 << 10 // row sums, and buffers rounded up to pages
	if used := d.Stats().InUse - before; used > l.options.maxBytes+small {
		t.Errorf("%d bytes are in use, %d allowed", used, l.options.maxBytes)
	}
	x, y = madePair(31, 40) // another size in between
	score(t, l, x, y, 31, 40)
	l.options.maxBytes = l.bytes + 10000
	x, y = madePair(220, 130) // for which more must be taken
	if _, err := l.Score(x, y, 220, 130); !failure.IsShortage(err) ||
		!strings.Contains(fault.Hint(err), "max-vram") {
		t.Errorf("got %v, hint %q", err, fault.Hint(err))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if after := d.Stats().InUse; after != before {
		t.Errorf("%d bytes in use after Close, %d before", after, before)
	}
	if _, err := l.Score(x, y, 200, 120); err == nil {
		t.Error("a closed LPIPS compares")
	}
}

// TestAtOnce compares pictures of different sizes from several goroutines.
func TestAtOnce(t *testing.T) {
	l := newTestScore(t, vktest.Device(t), madeWeights(metric.LPIPSAlex), Options{})
	sizes := [][2]int{{31, 31}, {64, 40}, {45, 50}}
	var want []float64
	for _, s := range sizes {
		x, y := madePair(s[0], s[1])
		want = append(want, score(t, l, x, y, s[0], s[1]))
	}
	var wg sync.WaitGroup
	for i := range 4 * len(sizes) {
		wg.Go(func() {
			s := sizes[i%len(sizes)]
			x, y := madePair(s[0], s[1])
			if got, err := l.Score(x, y, s[0], s[1]); err != nil || got != want[i%len(sizes)] {
				t.Errorf("%v: score %v and %v, alone %v", s, got, err, want[i%len(sizes)])
			}
		})
	}
	wg.Wait()
}

// TestInputs refuses what is no pair of pictures.
func TestInputs(t *testing.T) {
	d := vktest.Device(t)
	l := newTestScore(t, d, madeWeights(metric.LPIPSAlex), Options{})
	x, y := madePair(40, 31)
	if _, err := l.Score(x, y, 31, 40); err != nil {
		t.Error(err)
	}
	for name, try := range map[string]func() error{
		"too narrow": func() error { _, err := l.Score(x[:3*30*40], y[:3*30*40], 30, 40); return err },
		"too low":    func() error { _, err := l.Score(x[:3*30*40], y[:3*30*40], 40, 30); return err },
		"too short":  func() error { _, err := l.Score(x, y[:300], 40, 31); return err },
		"NaN": func() error {
			bad := append([]float32(nil), x...)
			bad[3*(40*2+5)] = float32(math.NaN())
			_, err := l.Score(x, bad, 40, 31)
			return err
		},
	} {
		err := try()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		want := map[string]string{"too narrow": "needs 31", "too low": "needs 31", "too short": "300 numbers",
			"NaN": "(5, 2)"}[name]
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, net := range []string{"squeeze", metric.LPIPSVGG} {
		w := madeWeights(metric.LPIPSAlex)
		w.Net = net
		if _, err := New(d, w, Options{}); err == nil {
			t.Errorf("weights of alex called %s are taken", net)
		}
	}
	if got := leastSide(metric.LPIPSLayers(metric.LPIPSVGG)); got != 16 {
		t.Errorf("vgg needs %d pixels a side, want 16", got)
	}
}

// TestSchedule requires of every band plan that each row is made once, after the rows it needs and before they are
// overwritten.
func TestSchedule(t *testing.T) {
	for _, net := range []string{metric.LPIPSAlex, metric.LPIPSVGG} {
		layers := metric.LPIPSLayers(net)
		for height := leastSide(layers); height < 150; height += 3 {
			for _, rows := range []int{1, 2, 7, 16, 33, height} {
				b := newBands(layers, 40, height, rows)
				made := make([]int, len(b.maps))
				for _, band := range b.rows {
					for i, r := range band {
						if int(r.First) != made[i] || int(r.Count) > b.maps[i].most {
							t.Fatalf("%s, height %d, %d rows: map %d: %+v after %d rows", net, height, rows, i, r,
								made[i])
						}
						made[i] += int(r.Count)
					}
					for i, l := range layers {
						out := band[i+1]
						if out.Count == 0 {
							continue
						}
						first, last := int(out.First)*l.Stride-l.Pad, int(out.First+out.Count-1)*l.Stride-l.Pad+l.Side-1
						if min(last, b.maps[i].height-1) >= made[i] || max(first, 0) < made[i]-b.maps[i].ring {
							t.Fatalf("%s, height %d, %d rows: map %d needs rows %d to %d, there are %d and the last "+
								"%d of them in memory", net, height, rows, i+1, first, last, made[i], b.maps[i].ring)
						}
					}
				}
				for i, m := range b.maps {
					if made[i] != m.height {
						t.Fatalf("%s, height %d, %d rows: map %d has %d rows of %d", net, height, rows, i, made[i],
							m.height)
					}
				}
			}
		}
	}
}

// writeFloats writes float32 numbers as they are in memory.
func writeFloats(t *testing.T, path string, x []float32) {
	t.Helper()
	var raw []byte
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	must.Do(t, os.WriteFile(path, raw, 0o644))
}

// TestTorch makes fixtures again where PyTorch is installed.
func TestTorch(t *testing.T) {
	if err := exec.Command("python3", "-c", "import torch").Run(); err != nil {
		t.Skip("python3 has no torch: the stored scores stand alone")
	}
	for _, f := range fixtures {
		dir := t.TempDir()
		w := madeWeights(f.net)
		for i := range w.Kernels {
			writeFloats(t, filepath.Join(dir, fmt.Sprintf("kernels%d", i)), w.Kernels[i])
			writeFloats(t, filepath.Join(dir, fmt.Sprintf("biases%d", i)), w.Biases[i])
			writeFloats(t, filepath.Join(dir, fmt.Sprintf("channels%d", i)), w.Channels[i])
		}
		x, y := madePair(f.width, f.height)
		writeFloats(t, filepath.Join(dir, "x"), x)
		writeFloats(t, filepath.Join(dir, "y"), y)
		cmd := exec.Command("python3", "testdata/lpips_torch.py", dir, f.net, fmt.Sprint(f.width),
			fmt.Sprint(f.height), fmt.Sprint(f.normalize))
		cmd.Stderr = os.Stderr
		out := must.Get(cmd.Output())(t)
		var got float64
		if _, err := fmt.Sscan(string(out), &got); err != nil || !(math.Abs(got-f.want) <= 1e-9*got) {
			t.Errorf("%s %dx%d %v: PyTorch has %s, stored is %.12f", f.net, f.width, f.height, f.normalize,
				strings.TrimSpace(string(out)), f.want)
		}
	}
}

// BenchmarkScore compares pictures of 256x256 pixels.
func BenchmarkScore(b *testing.B) {
	d := vktest.Device(b)
	for _, net := range []string{metric.LPIPSAlex, metric.LPIPSVGG} {
		b.Run(net, func(b *testing.B) {
			l := newTestScore(b, d, madeWeights(net), Options{})
			x, y := madePair(256, 256)
			score(b, l, x, y, 256, 256)
			start := time.Now()
			n := 0
			for b.Loop() {
				score(b, l, x, y, 256, 256)
				n++
			}
			b.ReportMetric(time.Since(start).Seconds()/float64(n), "s/pair")
		})
	}
}

// refLayer is a convolution with ReLU, or a maximum over windows where there are no kernels.
type refLayer struct {
	Side, Stride, Pad int
	Kernels, Biases   []float64
	Channels          []float64 // weights of the comparison; nil: this layer is not compared
}

// refLPIPS returns the distance of two pictures (Zhang et al. 2018): the sum over the compared layers of the mean over
// the pixels.
func refLPIPS(layers []refLayer, x, y []float64, width, height int, normalize bool) float64 {
	gain, offset := ref.LPIPSGain[float64](normalize)
	a, b := ref.LPIPSInput(x, width, height, gain, offset), ref.LPIPSInput(y, width, height, gain, offset)
	var sum float64
	for _, l := range layers {
		step := func(m ref.Maps[float64]) ref.Maps[float64] {
			if l.Kernels == nil {
				return ref.MaxPool(m, l.Side, l.Stride)
			}
			return ref.Convolve(m, l.Kernels, l.Biases, l.Side, l.Stride, l.Pad)
		}
		a, b = step(a), step(b)
		if l.Channels == nil {
			continue
		}
		var whole float64
		for _, row := range ref.LPIPSDistance(a, b, l.Channels) {
			whole += row
		}
		sum += whole / float64(a.Height*a.Width)
	}
	return sum
}
