package splatfile

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vksplat/scene"
)

// sharedSplats is a folder of files of other programs beside the repository.
func sharedSplats(t *testing.T) string {
	t.Helper()
	root := "../../../shared/data/splats"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no folder of splat files beside the repository")
	}
	return root
}

// madeModel makes splats up: kind "spread", "point" (all at one place) or "huge" (as far apart as numbers go, and the ends of all other ranges).
func madeModel(n, degree int, kind string) *scene.Splats {
	r := rand.New(rand.NewPCG(uint64(n), uint64(degree)))
	s := scene.NewSplats(n, degree)
	fill := func(to []float32, width float64) {
		for i := range to {
			to[i] = float32(width * r.NormFloat64())
		}
	}
	fill(s.Means, 3)
	fill(s.Quats, 1)
	fill(s.LogScales, 2)
	fill(s.LogitOpacities, 4)
	fill(s.SH, 0.4)
	switch kind {
	case "point":
		for i := range s.Means {
			s.Means[i] = []float32{1.5, -2.25, 1e6}[i%3]
		}
	case "huge":
		for i := range s.Means {
			s.Means[i] = float32(math.Copysign(math.MaxFloat32*r.Float64(), r.NormFloat64()))
			s.LogScales[i] = float32(60*r.Float64() - 30)
		}
		for i := range s.LogitOpacities {
			s.LogitOpacities[i] = []float32{-scene.InfiniteLog, scene.InfiniteLog, 1000, -1000}[i%4]
			copy(s.Quats[4*i:], [][]float32{{1, 0, 0, 0}, {-1e20, 1e20, 0, 0}, {0, 0, -1e-30, 0}, {0.5, 0.5, -0.5, -0.5}}[i%4])
		}
		fill(s.SH, 3)
	}
	return s
}

// written writes a model and reads it again.
func written(t *testing.T, f *Format, s *scene.Splats, meta scene.PLYMeta, o WriteOptions) (got *scene.Splats, info Info, lost []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model"+f.Extensions[0])
	lost, err := f.Write(path, Memory(s, meta), o)
	if err != nil {
		t.Fatal(err)
	}
	got, info = readModel(t, f, path)
	return got, info, lost
}

// readModel reads a file, in order and out of it.
func readModel(t *testing.T, f *Format, path string) (*scene.Splats, Info) {
	t.Helper()
	source, err := f.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	s, err := All(source)
	if err != nil {
		t.Fatal(err)
	}
	info := source.Info()
	if info.N != s.N || info.Degree != s.Degree || info.Format != f.Name {
		t.Fatalf("%+v for %d splats of degree %d", info, s.N, s.Degree)
	}
	checkGather(t, source.(Gatherer), s)
	return s, info
}

// checkGather reads backwards by threes.
func checkGather(t *testing.T, g Gatherer, want *scene.Splats) {
	t.Helper()
	ids := make([]uint32, 0, want.N)
	for i := want.N - 1; i >= 0; i-- {
		ids = append(ids, uint32(i-i%3+2-i%3))
		ids[len(ids)-1] = min(ids[len(ids)-1], uint32(want.N-1))
	}
	got := scene.NewSplats(len(ids), want.Degree)
	if err := g.Gather(ids, got); err != nil {
		t.Fatal(err)
	}
	expected := scene.NewSplats(len(ids), want.Degree)
	if err := Memory(want, scene.PLYMeta{}).Gather(ids, expected); err != nil {
		t.Fatal(err)
	}
	sameModel(t, got, expected)
	if err := g.Gather([]uint32{uint32(want.N)}, scene.NewSplats(1, want.Degree)); err == nil {
		t.Error("a splat behind the last is gathered")
	}
}

// sameModel wants equal bits, NaN included.
func sameModel(t *testing.T, got, want *scene.Splats) {
	t.Helper()
	pairs := [][2][]float32{{got.Means, want.Means}, {got.Quats, want.Quats}, {got.LogScales, want.LogScales},
		{got.LogitOpacities, want.LogitOpacities}, {got.SH, want.SH}}
	for k, pair := range pairs {
		if len(pair[0]) != len(pair[1]) {
			t.Fatalf("tensor %d has %d numbers, want %d", k, len(pair[0]), len(pair[1]))
		}
		for i, x := range pair[0] {
			if math.Float32bits(x) != math.Float32bits(pair[1][i]) {
				t.Fatalf("tensor %d: number %d is %v, want %v", k, i, x, pair[1][i])
			}
		}
	}
}

// near wants numbers that differ by at most a bound.
func near(t *testing.T, what string, i int, got, want, bound float64) {
	t.Helper()
	if !(math.Abs(got-want) <= bound) {
		t.Fatalf("splat %d: %s is %v, want %v within %v", i, what, got, want, bound)
	}
}

// opacityOf and colorOf are what a renderer makes of the raw values.
func opacityOf(logit float32) float64 { return 1 / (1 + math.Exp(-float64(logit))) }
func colorOf(c float32) float64       { return 0.5 + scene.SH0*float64(c) }

// quatError is the largest difference between two rotations of length 1, of which the second may be turned round.
func quatError(a, b [4]float64) float64 {
	plus, minus := 0.0, 0.0
	for i := range a {
		plus, minus = max(plus, math.Abs(a[i]-b[i])), max(minus, math.Abs(a[i]+b[i]))
	}
	return min(plus, minus)
}

// refused wants an error that names the file, before much is allocated.
func refused(t *testing.T, f *Format, what string, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bad"+f.Extensions[0])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	source, err := f.Open(path)
	runtime.ReadMemStats(&after)
	if err == nil {
		source.Close()
		t.Fatalf("%s: accepted, %+v", what, source.Info())
	}
	var e *scene.Error
	if !errors.As(err, &e) || !errors.Is(err, scene.ErrData) || e.Path != path || e.Hint == "" {
		t.Errorf("%s: %v lacks kind, path or hint", what, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(4*len(data)+1<<20) {
		t.Errorf("%s: %d bytes were allocated for a file of %d", what, n, len(data))
	}
}

// fuzzReader feeds a reader with anything: it may refuse, but not crash, and what it takes must fit the file and be read twice alike.
func fuzzReader(f *testing.F, format *Format) {
	path := filepath.Join(f.TempDir(), "model")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := format.Open(path)
		if err != nil {
			if !errors.Is(err, scene.ErrData) {
				t.Fatalf("%v is not of kind ErrData", err)
			}
			return
		}
		defer source.Close()
		if n := source.Info().N; n > len(data)/16 {
			t.Fatalf("%d splats in %d bytes", n, len(data))
		}
		s, err := All(source)
		if err != nil {
			t.Fatal(err)
		}
		checkGather(t, source.(Gatherer), s)
	})
}

func TestBytes(t *testing.T) {
	for b := range 256 {
		if got := opacityByte(byteLogits[b]); int(got) != b {
			t.Errorf("opacity %d/255 becomes %d/255", b, got)
		}
		if got := unit(colorOf(byteColors[b]), 255); int(got) != b {
			t.Errorf("colour %d/255 becomes %d/255", b, got)
		}
	}
	for _, c := range []struct {
		half uint16
		want float64
	}{{0, 0}, {0x3c00, 1}, {0xc000, -2}, {0x7bff, 65504}, {1, math.Ldexp(1, -24)}, {0x03ff, math.Ldexp(1023, -24)}, {0x0400, math.Ldexp(1, -14)},
		{0x3555, 0.333251953125}, {0x7c00, math.Inf(1)}, {0xfc00, math.Inf(-1)}} {
		if got := halfFloat(c.half); got != c.want {
			t.Errorf("half %#x is %v, want %v", c.half, got, c.want)
		}
	}
	if got := halfFloat(0x7e00); got == got {
		t.Errorf("half 0x7e00 is %v, want NaN", got)
	}
}

func TestImportanceOrder(t *testing.T) {
	s := scene.NewSplats(6, 0)
	for i, v := range [][2]float32{{0, 0}, {0, 1}, {-3, 0}, {0, 0}, {5, -1}, {-80, -80}} { // logit, log of each axis
		s.LogitOpacities[i] = v[0]
		for axis := range 3 {
			s.LogScales[3*i+axis] = v[1]
		}
	}
	order, err := importanceOrder(Memory(s, scene.PLYMeta{}))
	if want := "[1 0 3 4 2 5]"; err != nil || fmt.Sprint(order) != want {
		// 0.5 e^3, 0.5 twice in their order, 0.993 e^-3, 0.047, nothing.
		t.Errorf("order %v, want %s, %v", order, want, err)
	}
}

func TestNotWritable(t *testing.T) {
	for _, f := range []*Format{compressedPLY, dotSplat} {
		for what, spoil := range map[string]func(s *scene.Splats){
			"position": func(s *scene.Splats) { s.Means[3*7+1] = float32(math.NaN()) },
			"scale":    func(s *scene.Splats) { s.LogScales[3*7+2] = float32(math.Inf(-1)) },
			"sh":       func(s *scene.Splats) { s.SH[12*7+11] = float32(math.Inf(1)) },
			"rotation": func(s *scene.Splats) { clear(s.Quats[4*7 : 4*8]) },
		} {
			s := madeModel(20, 1, "spread")
			spoil(s)
			path := filepath.Join(t.TempDir(), "model")
			_, err := f.Write(path, Memory(s, scene.PLYMeta{}), WriteOptions{})
			if err == nil || !strings.Contains(err.Error(), "splat 7: ") || !strings.Contains(err.Error(), what) {
				t.Errorf("%s with a bad %s: %v", f.Name, what, err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s with a bad %s: the file was made", f.Name, what)
			}
		}
	}
}

// TestShrunk reads files that were cut short after their headers were read.
func TestShrunk(t *testing.T) {
	data, _ := madeKsplat(1, madeModel(40, 1, "spread"))
	path := filepath.Join(t.TempDir(), "model")
	for _, f := range []*Format{compressedPLY, dotSplat, ksplat} {
		if f.Write == nil {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.Write(path, Memory(madeModel(40, 1, "spread"), scene.PLYMeta{}), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		source, err := f.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()-1); err != nil {
			t.Fatal(err)
		}
		if _, err := All(source); !errors.Is(err, scene.ErrData) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: read: %v", f.Name, err)
		}
		if err := source.(Gatherer).Gather([]uint32{39}, scene.NewSplats(1, source.Info().Degree)); !errors.Is(err, scene.ErrData) {
			t.Errorf("%s: gathered: %v", f.Name, err)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPackedNames(t *testing.T) {
	for name, want := range map[string]*Format{"splat": dotSplat, "dir.splat/A.KSPLAT": ksplat, "a.splat": dotSplat, "a.b.compressed.ply": compressedPLY, "compressed-ply": compressedPLY} {
		if got := ByName(name); got != want {
			t.Errorf("%s is %v, want %s", name, got, want.Name)
		}
	}
}
