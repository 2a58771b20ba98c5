package splatfile

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"vksplat/scene"
)

// binaryMadeModel is a model of n splats whose first ones hold edge values: opacities 0 and 1, tiny and huge scales, rotations that are not normalised, have
// equal or negative components.
func binaryMadeModel(n, degree int) *scene.Splats {
	r := rand.New(rand.NewPCG(uint64(n), uint64(degree)))
	s := scene.NewSplats(n, degree)
	fill := func(values []float32, size float64) {
		for i := range values {
			values[i] = float32(size * r.NormFloat64())
		}
	}
	fill(s.Means, 5)
	fill(s.Quats, 1)
	fill(s.LogScales, 1)
	fill(s.LogitOpacities, 3)
	fill(s.SH, 0.3)
	edges := []struct {
		quat         [4]float32
		scale, logit float32
	}{
		{[4]float32{1, 0, 0, 0}, -9.9, 40}, {[4]float32{0, -7, 0, 0}, 5.9, -40}, {[4]float32{-1, -1, -1, -1}, 0, 0},
		{[4]float32{1e-3, 1e-3, 0, -1e-3}, -1e-9, 30}, {[4]float32{0, 0, 0, 1e3}, -4, -30}, {[4]float32{-0.7071068, 0.7071068, 0, 0}, -2, 5},
	}
	for i := range min(n, len(edges)) {
		copy(s.Quats[4*i:], edges[i].quat[:])
		s.LogScales[3*i], s.LogitOpacities[i] = edges[i].scale, edges[i].logit
	}
	for i := range s.LogScales {
		s.LogScales[i] = min(max(s.LogScales[i], -9.95), 5.9)
	}
	return s
}

// tolerance is how far values may be after a round trip; opacity is compared between 0 and 1, rotations up to their sign.
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
		near("opacity", i, sigmoid(float64(got.LogitOpacities[i])), sigmoid(float64(want.LogitOpacities[i])), tol.opacity, &worst.opacity)
		a, b := direction(got.Quats[4*i:4*i+4]), direction(want.Quats[4*i:4*i+4])
		dot := math.Abs(a[0]*b[0] + a[1]*b[1] + a[2]*b[2] + a[3]*b[3])
		if tol.halfTurns {
			dot = max(dot, math.Abs(a[1]*b[0]-a[0]*b[1]-a[3]*b[2]+a[2]*b[3]), math.Abs(a[2]*b[0]+a[3]*b[1]-a[0]*b[2]-a[1]*b[3]),
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

func mustRead(t *testing.T, open func(string) (Source, error), path string) (*scene.Splats, Info) {
	t.Helper()
	model, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := All(model)
	if err != nil {
		t.Fatal(err)
	}
	if g, ok := model.(Gatherer); ok && s.N > 0 {
		binaryCheckGather(t, g, s)
	}
	if err := model.Close(); err != nil {
		t.Error(err)
	}
	return s, model.Info()
}

// binaryCheckGather compares splats read one by one with those read in order.
func binaryCheckGather(t *testing.T, g Gatherer, s *scene.Splats) {
	t.Helper()
	ids := []uint32{uint32(s.N - 1), 0, uint32(s.N / 2)}
	into, want := scene.NewSplats(len(ids), s.Degree), scene.NewSplats(len(ids), s.Degree)
	if err := g.Gather(ids, into); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		copySplats(want, i, s, int(id), 1)
	}
	compareModels(t, into, want, tolerance{quat: 1e-7})
	if err := g.Gather([]uint32{uint32(s.N)}, into.Slice(0, 1)); err == nil {
		t.Error("a splat behind the last one was read")
	}
}
