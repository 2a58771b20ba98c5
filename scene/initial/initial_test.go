package initial

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// cloud returns n points in clusters of different density.
func cloud(n int) []scene.Point {
	points := make([]scene.Point, n)
	for i := range points {
		w := philox.Block([4]uint32{uint32(i), 1, 2, 3}, [2]uint32{4, 5})
		spread := math.Pow(10, -float64(i%4))
		for k := range 3 {
			points[i].Pos[k] = float64(i%5) + spread*philox.Uniform(w[k])
			points[i].Color[k] = uint8(w[3] >> (8 * k))
		}
	}
	return points
}

func bruteSpacing(points []scene.Point, i int) float64 {
	var d []float64
	for j, q := range points {
		if j != i {
			d = append(d, geom.Length(geom.Sub(q.Pos, points[i].Pos)))
		}
	}
	slices.Sort(d)
	return max((d[0]+d[1]+d[2])/3, minSpacing)
}

func TestSpacingAgainstBruteForce(t *testing.T) {
	line, lattice := make([]scene.Point, 500), make([]scene.Point, 0, 512)
	for i := range line {
		line[i].Pos[1] = float64(i * i % 501)
	}
	for i := range 512 {
		lattice = append(lattice, scene.Point{Pos: [3]float64{float64(i & 7), float64(i >> 3 & 7), float64(i >> 6)}})
	}
	copies := append(cloud(100), cloud(100)...)
	for name, points := range map[string][]scene.Point{"cloud": cloud(1500), "four": cloud(4), "nine": cloud(9),
		"line": line, "lattice": lattice,
		"copies": copies, "one place": make([]scene.Point, 300)} {
		tree, got := newPointTree(context.Background(), points), make([]float64, len(points))
		for at, i := range tree.index {
			got[i] = tree.spacing(at)
		}
		for i := range points {
			if want := bruteSpacing(points, i); math.Abs(got[i]-want) > 1e-12*(1+want) {
				t.Fatalf("%s: point %d has %v, want %v", name, i, got[i], want)
			}
		}
	}
}

// TestNearest compares with all distances. Points stand at most in one place twice.
func TestNearest(t *testing.T) {
	points := cloud(2000)
	means := make([]float32, 0, 3*len(points))
	for _, p := range points {
		means = append(means, float32(p.Pos[0]), float32(p.Pos[1]), float32(p.Pos[2]))
	}
	distance := func(i, j int) (d2 float64) {
		for k := range 3 {
			d := float64(means[3*i+k]) - float64(means[3*j+k])
			d2 += d * d
		}
		return d2
	}
	const k = 6
	got := Nearest(means, k)
	for i := range points {
		var all []float64
		for j := range points {
			if j != i {
				all = append(all, distance(i, j))
			}
		}
		slices.Sort(all)
		for n, j := range got[k*i : k*(i+1)] {
			if int(j) == i || distance(i, int(j)) != all[n] {
				t.Fatalf("neighbour %d of point %d is %d at %g, want one at %g", n, i, j, distance(i, int(j)), all[n])
			}
		}
	}
	if few := Nearest(means[:6], 3); !slices.Equal(few, []int32{1, -1, -1, 0, -1, -1}) {
		t.Errorf("of two points: %v", few)
	}
}

func TestInitialise(t *testing.T) {
	points := cloud(1000)
	s := Initialise(t.Context(), points, 42, 3, 0.1, 1)
	if s.N != 1000 || s.Degree != 3 {
		t.Fatalf("%d splats of degree %d", s.N, s.Degree)
	}
	must.Do(t, s.Validate())
	for i, p := range points {
		want := math.Log(bruteSpacing(points, i))
		for c := range 3 {
			if s.Means[3*i+c] != float32(p.Pos[c]) ||
				math.Abs(float64(s.LogScales[3*i+c])-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("splat %d: mean %v, log scale %v, want %v", i, s.Means[3*i+c], s.LogScales[3*i+c], want)
			}
			if level := 255 * (0.5 + 0.28209479177387814*float64(s.SH[48*i+c])); math.Abs(level-float64(p.Color[c])) >
				1e-4 {
				t.Fatalf("splat %d: colour %v, want %v", i, level, p.Color[c])
			}
		}
		for _, v := range s.SH[48*i+3 : 48*(i+1)] {
			if v != 0 {
				t.Fatalf("splat %d: higher coefficient %v", i, v)
			}
		}
		if opacity := 1 / (1 + math.Exp(-float64(s.LogitOpacities[i]))); math.Abs(opacity-0.1) > 1e-7 {
			t.Fatalf("splat %d: opacity %v", i, opacity)
		}
	}
}

// Uniform rotations: unit length, mean 0 and mean square 1/4 of each component.
func TestRandomQuats(t *testing.T) {
	const n = 20000
	var sum, squares [4]float64
	for i := range n {
		q := randomQuat(uint32(i), philox.Key(7))
		var norm float64
		for k, v := range q {
			sum[k] += float64(v) / n
			squares[k] += float64(v) * float64(v) / n
			norm += float64(v) * float64(v)
		}
		if math.Abs(norm-1) > 1e-6 {
			t.Fatalf("quaternion %d has squared length %v", i, norm)
		}
	}
	for k := range 4 {
		if math.Abs(sum[k]) > 0.015 || math.Abs(squares[k]-0.25) > 0.008 {
			t.Errorf("component %d: mean %v, mean square %v", k, sum[k], squares[k])
		}
	}
	if randomQuat(1, philox.Key(7)) == randomQuat(1, philox.Key(8)) ||
		randomQuat(1, philox.Key(7)) == randomQuat(1, philox.Key(7+1<<32)) {
		t.Error("the seed does not matter")
	}
}

func TestInitialiseFewPoints(t *testing.T) {
	at := func(x float64) scene.Point { return scene.Point{Pos: [3]float64{x, 0, 0}} }
	for _, c := range []struct {
		points []scene.Point
		want   float64 // scale of the first splat
	}{
		{nil, 0},
		{[]scene.Point{at(3)}, loneSpacing},
		{[]scene.Point{at(3), at(5)}, 2},
		{[]scene.Point{at(3), at(5), at(7)}, 3},
		{[]scene.Point{at(3), at(3)}, minSpacing},
		{[]scene.Point{at(math.NaN()), at(1), at(math.Inf(1)), at(2), at(1e300)}, 1},
	} {
		s := Initialise(t.Context(), c.points, 1, 0, 0.1, 1)
		must.Do(t, s.Validate())
		if s.N > 0 && math.Abs(math.Exp(float64(s.LogScales[0]))-c.want) > 1e-6*c.want {
			t.Errorf("%v: scale %v, want %v", c.points, math.Exp(float64(s.LogScales[0])), c.want)
		}
	}
	if s := Initialise(t.Context(), cloud(5), 1, 9, 0.1, 1); s.Degree != scene.MaxSHDegree {
		t.Errorf("degree %d", s.Degree)
	}
}

func TestInitialiseDoesNotDependOnCores(t *testing.T) {
	points := cloud(30000)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := Initialise(t.Context(), points, 5, 1, 0.1, 1)
	runtime.GOMAXPROCS(2)
	two := Initialise(t.Context(), points, 5, 1, 0.1, 1)
	for i, t1 := range one.Tensors() {
		if !slices.Equal(t1.Data, two.Tensors()[i].Data) {
			t.Errorf("%s differ", t1.Name)
		}
	}
}

func BenchmarkInitialise1M(b *testing.B) {
	points := cloud(1 << 20)
	for b.Loop() {
		Initialise(b.Context(), points, 1, 3, 0.1, 1)
	}
}
