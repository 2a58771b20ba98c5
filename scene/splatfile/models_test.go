package splatfile

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// madeModel makes splats up: kind "spread", "edges" (opacities 0 and 1, tiny and huge scales, rotations that have equal
// or negative components), "point" (all at one place) or "huge" (as far apart as numbers go, and the ends of all other
// ranges).
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
	case "edges":
		setEdges(s)
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
			s.LogitOpacities[i] = []float32{-ply.InfiniteLog, ply.InfiniteLog, 1000, -1000}[i%4]
			copy(s.Quats[4*i:],
				[][]float32{{1, 0, 0, 0}, {-1e20, 1e20, 0, 0}, {0, 0, -1e-30, 0}, {0.5, 0.5, -0.5, -0.5}}[i%4])
		}
		fill(s.SH, 3)
	}
	return s
}

// setEdges gives the first splats edge values, and all splats scales that SPZ can hold.
func setEdges(s *scene.Splats) {
	for i, edge := range []struct {
		quat         [4]float32
		scale, logit float32
	}{
		{[4]float32{1, 0, 0, 0}, -9.9, 40}, {[4]float32{0, -7, 0, 0}, 5.9, -40}, {[4]float32{-1, -1, -1, -1}, 0, 0},
		{[4]float32{1e-3, 1e-3, 0, -1e-3}, -1e-9, 30}, {[4]float32{0, 0, 0, 1e3}, -4, -30},
		{[4]float32{-0.7071068, 0.7071068, 0, 0}, -2, 5},
	} {
		if i < s.N {
			copy(s.Quats[4*i:], edge.quat[:])
			s.LogScales[3*i], s.LogitOpacities[i] = edge.scale, edge.logit
		}
	}
	for i := range s.LogScales {
		s.LogScales[i] = min(max(s.LogScales[i], -9.95), 5.9)
	}
}

// tolerance is how far values may be after a round trip; opacity is compared between 0 and 1, rotations up to their
// sign.
type tolerance struct {
	mean, quat, scale, opacity, dc, sh1, sh float64
	halfTurns                               bool // about its own axes do not count
}

// compareModels tells the first value that is further off than it may be, and gives the largest differences.
func compareModels(t *testing.T, got, want *scene.Splats, tol tolerance) (worst tolerance) {
	t.Helper()
	if got.N != want.N || got.Degree != want.Degree {
		t.Fatalf("%d splats of degree %d, want %d of %d", got.N, got.Degree, want.N, want.Degree)
	}
	near := func(what string, i int, a, b, tol float64, worst *float64) {
		t.Helper()
		d := math.Abs(a - b)
		*worst = max(*worst, d)
		if !(d <= tol) {
			t.Fatalf("%s %d: %v, want %v within %g", what, i, a, b, tol)
		}
	}
	for i := range want.Means {
		near("mean", i, float64(got.Means[i]), float64(want.Means[i]), tol.mean, &worst.mean)
		near("scale", i, float64(got.LogScales[i]), float64(want.LogScales[i]), tol.scale, &worst.scale)
	}
	for i := range want.N {
		near("opacity", i, sigmoid(got.LogitOpacities[i]), sigmoid(want.LogitOpacities[i]), tol.opacity, &worst.opacity)
		a, b := direction(got.Quats[4*i:4*i+4]), direction(want.Quats[4*i:4*i+4])
		dot := math.Abs(a[0]*b[0] + a[1]*b[1] + a[2]*b[2] + a[3]*b[3])
		if tol.halfTurns {
			dot = max(dot, math.Abs(a[1]*b[0]-a[0]*b[1]-a[3]*b[2]+a[2]*b[3]),
				math.Abs(a[2]*b[0]+a[3]*b[1]-a[0]*b[2]-a[1]*b[3]),
				math.Abs(a[3]*b[0]-a[2]*b[1]+a[1]*b[2]-a[0]*b[3]))
		}
		near("quat", i, math.Acos(min(dot, 1)), 0, tol.quat, &worst.quat)
	}
	for i := range want.SH {
		switch k := i / 3 % want.K(); {
		case k == 0:
			near("sh0", i, float64(got.SH[i]), float64(want.SH[i]), tol.dc, &worst.dc)
		case k < 4:
			near("sh1", i, float64(got.SH[i]), float64(want.SH[i]), tol.sh1, &worst.sh1)
		default:
			near("sh", i, float64(got.SH[i]), float64(want.SH[i]), tol.sh, &worst.sh)
		}
	}
	return worst
}

func direction(q []float32) (u [4]float64) {
	length := 0.0
	for _, x := range q {
		length += float64(x) * float64(x)
	}
	for i, x := range q {
		u[i] = float64(x) / math.Sqrt(length)
	}
	return u
}

// cut gives a model whose values are those that SPZ does not cut.
func cut(s *scene.Splats) *scene.Splats {
	for i := range s.SH {
		limit := float32(0.999)
		if i/3%s.K() == 0 {
			limit = 3.3333
		}
		s.SH[i] = min(max(s.SH[i], -limit), limit)
	}
	return s
}

// foreignSplats is a file among those of other programs, where a checkout has them.
func foreignSplats(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data/splats", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("no folder of splat files beside the repository")
	}
	return path
}

// writeTemp writes a model to a file of a folder of its own.
func writeTemp(t *testing.T, f *Format, name string, s *scene.Splats, meta ply.Meta, o WriteOptions) (path string,
	lost []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	lost = must.Get(f.Write(path, Memory(s, meta), o))(t)
	for _, text := range lost {
		if strings.HasSuffix(text, ".") {
			t.Errorf("%q ends with a full stop, as no other warning does", text)
		}
	}
	return path, lost
}

// written writes a model and reads it again.
func written(t *testing.T, f *Format, s *scene.Splats, meta ply.Meta, o WriteOptions) (got *scene.Splats, info Info,
	lost []string) {
	t.Helper()
	path, lost := writeTemp(t, f, "model"+f.Extensions[0], s, meta, o)
	got, info = readModel(t, f, path)
	return got, info, lost
}

// readModel reads a file, in order and out of it.
func readModel(t *testing.T, f *Format, path string) (*scene.Splats, Info) {
	t.Helper()
	source := must.Get(f.Open(path))(t)
	defer source.Close()
	s := must.Get(All(source))(t)
	info := source.Info()
	if info.N != s.N || info.Degree != s.Degree || info.Format != f.Name {
		t.Fatalf("%+v for %d splats of degree %d", info, s.N, s.Degree)
	}
	if g, ok := source.(Gatherer); ok {
		checkGather(t, g, s)
	}
	return s, info
}

// checkGather reads backwards by threes, of large models the beginning.
func checkGather(t *testing.T, g Gatherer, want *scene.Splats) {
	t.Helper()
	ids := []uint32{uint32(max(want.N-1, 0))}[:min(want.N, 1)]
	for i := min(want.N, 3000) - 1; i >= 0; i-- {
		ids = append(ids, min(uint32(i-i%3+2-i%3), uint32(want.N-1)))
	}
	got := scene.NewSplats(len(ids), want.Degree)
	must.Do(t, g.Gather(ids, got))
	expected := scene.NewSplats(len(ids), want.Degree)
	must.Do(t, Memory(want, ply.Meta{}).Gather(ids, expected))
	sameModel(t, got, expected)
	if err := g.Gather([]uint32{uint32(want.N)}, scene.NewSplats(1, want.Degree)); err == nil {
		t.Error("a splat behind the last is gathered")
	}
}

// sameModel wants equal bits, NaN included.
func sameModel(t *testing.T, got, want *scene.Splats) {
	t.Helper()
	alike(t, got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

// closeModel compares two readings of the same file: equal but for the last digits of logarithms and exponentials.
func closeModel(t *testing.T, got, want *scene.Splats) {
	t.Helper()
	alike(t, got, want, func(a, b float32) bool {
		return math.Abs(float64(a)-float64(b)) <= 1e-6*max(1, math.Abs(float64(b)))
	})
}

// alike compares all numbers of models.
func alike(t *testing.T, got, want *scene.Splats, same func(a, b float32) bool) {
	t.Helper()
	if got.N != want.N || got.Degree != want.Degree {
		t.Fatalf("%d splats of degree %d, want %d of %d", got.N, got.Degree, want.N, want.Degree)
	}
	for i := range want.N {
		wanted := want.Tensors()
		for k, a := range got.Tensors() {
			for j, x := range a.At(i) {
				if y := wanted[k].At(i)[j]; !same(x, y) {
					t.Fatalf("splat %d: number %d of %s is %v, want %v", i, j, a.Name, x, y)
				}
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

// quatError is the largest difference between two rotations at length 1, of which the second may be turned round.
func quatError(p, q []float32) float64 {
	a, b := direction(p), direction(q)
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
	must.Do(t, os.WriteFile(path, data, 0o600))
	allocated := filetest.Allocated()
	source, err := f.Open(path)
	if err == nil {
		source.Close()
		t.Fatalf("%s: accepted, %+v", what, source.Info())
	}
	var e *fault.Error
	if !errors.As(err, &e) || !errors.Is(err, fault.ErrData) || e.Path != path || e.Hint == "" {
		t.Errorf("%s: %v lacks kind, path or hint", what, err)
	}
	if n := allocated(); n > uint64(4*len(data)+1<<20) {
		t.Errorf("%s: %d bytes were allocated for a file of %d", what, n, len(data))
	}
}

// fuzzReader feeds a reader with anything: it may refuse, but not crash, and what it takes must fit the file and be
// read twice alike.
func fuzzReader(f *testing.F, format *Format) {
	path := filepath.Join(f.TempDir(), "model")
	f.Fuzz(func(t *testing.T, data []byte) {
		must.Do(t, os.WriteFile(path, data, 0o600))
		source, err := format.Open(path)
		if err != nil {
			if !errors.Is(err, fault.ErrData) {
				t.Fatalf("%v is not of kind fault.ErrData", err)
			}
			return
		}
		defer source.Close()
		if n := source.Info().N; n > len(data)/16 {
			t.Fatalf("%d splats in %d bytes", n, len(data))
		}
		s := must.Get(All(source))(t)
		checkGather(t, source.(Gatherer), s)
	})
}
