package splatfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// shinySplats makes a model whose spherical harmonics are like those of trained ones: lobes of few directions and
// colours, and noise.
func shinySplats(n, degree int) *scene.Splats {
	s := scene.NewSplats(n, degree)
	k := s.K()
	parallel.For((n+1023)/1024, func(block int) {
		for i := 1024 * block; i < min(1024*(block+1), n); i++ {
			shinySplat(s, i, k)
		}
	})
	return s
}

func shinySplat(s *scene.Splats, i, k int) {
	draw := uint32(0)
	var words [4]uint32
	uniform := func() float64 {
		if draw%4 == 0 {
			words = philox.Block([4]uint32{uint32(i), draw / 4, 77, 0}, philox.Key(1))
		}
		draw++
		return philox.Uniform(words[(draw-1)%4])
	}
	normal := func() float64 {
		return math.Sqrt(-2*math.Log(1-uniform())) * math.Cos(2*math.Pi*uniform())
	}
	for axis := range 3 {
		s.Means[3*i+axis] = float32(3 * normal())
		s.LogScales[3*i+axis] = float32(-4 + normal())
	}
	for j := range 4 {
		s.Quats[4*i+j] = float32(normal())
	}
	s.LogitOpacities[i] = float32(2 * normal())
	lobe, gain := int(64*uniform()), 0.3*normal()
	var tint [3]float64
	for c := range tint {
		tint[c] = 0.6 + 0.4*uniform()
		s.SH[3*k*i+c] = float32(normal())
	}
	for j := 1; j < k; j++ {
		fade := 1 / math.Sqrt(float64(j))
		for c := range 3 {
			s.SH[3*(k*i+j)+c] = float32(fade * (gain*tint[c]*math.Sin(float64(lobe*j*7+j)) + 0.04*normal()))
		}
	}
}

// shError is the root of the mean squared difference of spherical harmonics beyond degree 0.
func shError(a, b []float32, k int) float64 {
	sum, n := 0.0, 0
	for i := range a {
		if i/3%k > 0 {
			d := float64(a[i]) - float64(b[i])
			sum += d * d
			n++
		}
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

// writeSOGModel writes a SOG and reads it again, with the splats in the order of what was written.
func writeSOGModel(t *testing.T, path string, s *scene.Splats, meta ply.Meta) (*scene.Splats, Info) {
	t.Helper()
	must.Get(sogFormat.Write(path, Memory(s, meta), WriteOptions{Generator: "test 1"}))(t)
	read, info := readModel(t, sogFormat, path)
	if read.N != s.N {
		t.Fatalf("%d splats, want %d", read.N, s.N)
	}
	order := must.Get(mortonOrder(Memory(s, meta)))(t)
	out := scene.NewSplats(read.N, read.Degree)
	for pixel, id := range order {
		copySplats(out, int(id), read, pixel, 1)
	}
	return out, info
}

// checkMeans compares means with what half a step of 16 bits changes.
func checkMeans(t *testing.T, got, want *scene.Splats) {
	t.Helper()
	b := emptyBox()
	b.add(want.Means)
	for i := range want.Means {
		step := (sogLog(float64(b.high[i%3])) - sogLog(float64(b.low[i%3]))) / 65535
		d := math.Abs(sogLog(float64(got.Means[i])) - sogLog(float64(want.Means[i])))
		if !(d <= 0.5001*step+1e-6) {
			t.Fatalf("splat %d: mean %v, want %v within %v on a logarithmic scale", i/3, got.Means[i], want.Means[i],
				step/2)
		}
	}
}

// checkRest compares rotations and opacities with what half a step of 8 bits changes.
func checkRest(t *testing.T, got, want *scene.Splats) {
	t.Helper()
	for i := range want.N {
		dot, length := 0.0, 0.0
		for j := range 4 {
			x := float64(want.Quats[4*i+j])
			dot += float64(got.Quats[4*i+j]) * x
			length += x * x
		}
		if angle := 2 * math.Acos(min(math.Abs(dot)/math.Sqrt(length), 1)); !(angle < 0.014) {
			t.Fatalf("splat %d: rotation %v, want %v: %v radians between", i, got.Quats[4*i:4*i+4],
				want.Quats[4*i:4*i+4], angle)
		}
		a, b := sigmoid(got.LogitOpacities[i]), sigmoid(want.LogitOpacities[i])
		if !(math.Abs(a-b) <= 0.501/255) {
			t.Fatalf("splat %d: opacity %v, want %v", i, a, b)
		}
	}
}

func TestSOGRoundTrip(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	meta := ply.Meta{Generator: "other", Step: 7, Seed: math.MaxUint64, Origin: &[3]float64{1, 2.5, -1e7},
		Antialiased: true}
	for _, name := range []string{"a.sog", "folder", "folder/meta.json"} {
		for _, n := range []int{1, 3, 4, 5, 65, 1025} {
			for degree := 0; degree <= scene.MaxSHDegree; degree++ {
				if name != "a.sog" && n != 5 {
					continue
				}
				s := shinySplats(n, degree)
				got, info := writeSOGModel(t, filepath.Join(dir, name), s, meta)
				want := meta
				want.Generator = "test 1"
				if info.Format != "sog" || info.Degree != degree || len(info.Notes) > 0 ||
					!reflect.DeepEqual(info.Meta, want) {
					t.Fatalf("%d splats of degree %d: %+v", n, degree, info)
				}
				checkMeans(t, got, s)
				checkRest(t, got, s)
				if e := rms(got.LogScales, s.LogScales); e > 0.02 {
					t.Errorf("%d splats: scales differ by %v", n, e)
				}
				if e := shError(got.SH, s.SH, s.K()); e > 0.03 || n < 65 && e > 0.003 {
					t.Errorf("%d splats of degree %d: harmonics differ by %v", n, degree, e)
				}
			}
		}
	}
}

func rms(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(max(len(a), 1)))
}

func TestSOGEdges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sog")
	got, info := writeSOGModel(t, path, scene.NewSplats(0, 2), ply.Meta{})
	if got.N != 0 || info.Meta.Antialiased || info.Meta.Origin != nil {
		t.Errorf("no splats: %+v", info)
	}
	same := scene.NewSplats(3000, 3)
	for i := range same.N {
		copySplats(same, i, shinySplats(1, 3), 0, 1)
	}
	got, _ = writeSOGModel(t, path, same, ply.Meta{})
	checkRest(t, got, same)
	for i := range got.SH {
		if got.SH[i] != same.SH[i] || i < len(got.LogScales) && got.LogScales[i] != same.LogScales[i] {
			t.Fatalf("one value everywhere: number %d is %v, want %v", i, got.SH[i], same.SH[i])
		}
	}
	checkMeans(t, got, same)
	huge := shinySplats(3000, 1)
	for i := range huge.Means {
		huge.Means[i] *= float32(math.Pow(10, float64(i%60-30)))
	}
	huge.SH[0], huge.LogScales[4], huge.LogitOpacities[9], huge.LogitOpacities[10], huge.SH[5], huge.SH[18] = 1e6, -1e6,
		1e30, -1e30, 3e38, -3e38
	got, _ = writeSOGModel(t, path, huge, ply.Meta{})
	checkMeans(t, got, huge)
	checkRest(t, got, huge)
	huge.LogScales[4], huge.SH[0], got.LogScales[4], got.SH[0] = 0, 0, 0, 0
	if e := rms(got.LogScales, huge.LogScales); e > 0.05 {
		t.Errorf("one scale far from all others: scales differ by %v", e)
	}
	for _, bad := range []struct {
		where *float32
		value float64
		want  string
	}{{&huge.Means[31], math.NaN(), "splat 10: "}, {&huge.SH[12*20+5], math.Inf(1), "sh[5] is +Inf"}} {
		old := *bad.where
		*bad.where = float32(bad.value)
		if _, err := sogFormat.Write(path, Memory(huge, ply.Meta{}), WriteOptions{}); err == nil ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
		*bad.where = old
	}
	clear(huge.Quats[4*50 : 4*51])
	if _, err := sogFormat.Write(path, Memory(huge, ply.Meta{}), WriteOptions{}); err == nil ||
		!strings.Contains(err.Error(), "splat 50: rotation") {
		t.Errorf("rotation of length zero: %v", err)
	}
	_, err := sogFormat.Write(path, Memory(same, ply.Meta{}), WriteOptions{Version: 1})
	if !errors.Is(err, fault.ErrUsage) {
		t.Errorf("version 1: %v", err)
	}
	lost, err := sogFormat.Write(path, Memory(same, ply.Meta{Comments: []string{"a"}}), WriteOptions{})
	if err != nil || len(lost) != 1 {
		t.Errorf("comments: lost %q, %v", lost, err)
	}
}

// The bytes of a file do not depend on the number of cores, nor on how the model comes.
func TestSOGSameBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s := shinySplats(8000, 2)
	var first []byte
	for cores := 1; cores <= 3; cores++ {
		runtime.GOMAXPROCS(cores)
		path := filepath.Join(t.TempDir(), "a.sog")
		must.Get(sogFormat.Write(path, Memory(s, ply.Meta{}), WriteOptions{Iterations: 3}))(t)
		data := must.Get(os.ReadFile(path))(t)
		if first == nil {
			first = data
		}
		if !bytes.Equal(first, data) {
			t.Errorf("%d cores make another file", cores)
		}
	}
}

// BenchmarkSOG writes and reads models of degree 3 with a full palette, and compares spherical harmonics with what was
// written.
func BenchmarkSOG(b *testing.B) {
	for _, n := range []int{200_000, 1_000_000} {
		s := shinySplats(n, 3)
		path := filepath.Join(b.TempDir(), "a.sog")
		b.Run(fmt.Sprintf("write/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := sogFormat.Write(path, Memory(s, ply.Meta{}), WriteOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			if info, err := os.Stat(path); err == nil {
				b.ReportMetric(float64(info.Size())/float64(n), "B/splat")
			}
		})
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			for b.Loop() {
				model, err := openSOG(path)
				if err == nil {
					_, err = All(model)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A folder's size is that of all its files, and no other file's.
func TestSOGSize(t *testing.T) {
	dir := t.TempDir()
	want := int64(0)
	for name, data := range sogFiles(t, 9) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		want += int64(len(data))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "index.html"), make([]byte, 99), 0o600))
	for _, path := range []string{dir, filepath.Join(dir, sogMetaName)} {
		if got, err := Size(path); err != nil || got != want {
			t.Errorf("%s: %d bytes, want %d, %v", path, got, want, err)
		}
	}
	archive := filepath.Join(dir, "a.sog")
	must.Do(t, os.WriteFile(archive, zipOf(t, sogFiles(t, 9), zip.Deflate), 0o600))
	if st, err := os.Stat(archive); err != nil {
		t.Error(err)
	} else if got, err := Size(archive); err != nil || got != st.Size() {
		t.Errorf("%d bytes, want %d, %v", got, st.Size(), err)
	}
}
