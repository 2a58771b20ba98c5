package splatfile

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// TestMove compares a moved model with what moving means: centres, covariances and the colour seen along a direction
// that moved with it.
func TestMove(t *testing.T) {
	s := must.Get(ParseTransform("scale 2.5 rotate 20,-40,70 translate 1,-2,3"))(t)
	for degree := range scene.MaxSHDegree + 1 {
		want := model(50, degree)
		got := must.Get(All(Move(Memory(want, ply.Meta{}), s, "")))(t)
		r := rand.New(rand.NewPCG(3, 4))
		for i := range want.N {
			x := vector(want.Means[3*i:])
			moved := turned(s.R, x)
			for k := range 3 {
				if y := s.Scale*moved[k] + s.T[k]; math.Abs(y-float64(got.Means[3*i+k])) > 1e-5 {
					t.Fatalf("splat %d: centre %v, want %v", i, got.Means[3*i:3*i+3], y)
				}
				if grown := float64(got.LogScales[3*i+k] - want.LogScales[3*i+k]); math.Abs(grown-math.Log(s.Scale)) >
					1e-6 {
					t.Fatalf("splat %d: log scale grew by %g", i, grown)
				}
			}
			a, b := rotationOf(quat(got, i)), product(s.R, rotationOf(quat(want, i)))
			for k := range a {
				if math.Abs(a[k]-b[k]) > 1e-6 {
					t.Fatalf("splat %d: rotation %v, want %v", i, a, b)
				}
			}
			d := unitVector(r)
			c1, c2 := colour(want, i, d), colour(got, i, turned(s.R, d))
			for c := range 3 {
				if math.Abs(c1[c]-c2[c]) > 1e-5 {
					t.Fatalf("degree %d, splat %d: colour %v, want %v", degree, i, c2, c1)
				}
			}
		}
	}
}

func vector(x []float32) [3]float64 { return [3]float64{float64(x[0]), float64(x[1]), float64(x[2])} }

func quat(s *scene.Splats, i int) (q [4]float64) {
	for k := range q {
		q[k] = float64(s.Quats[4*i+k])
	}
	return q
}

func turned(r [9]float64, x [3]float64) (y [3]float64) {
	for k := range 3 {
		y[k] = r[3*k]*x[0] + r[3*k+1]*x[1] + r[3*k+2]*x[2]
	}
	return y
}

// product multiplies two rotations.
func product(a, b [9]float64) [9]float64 {
	return Similarity{Scale: 1, R: a}.After(Similarity{Scale: 1, R: b}).R
}

func unitVector(r *rand.Rand) [3]float64 {
	x := [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	length := math.Sqrt(x[0]*x[0] + x[1]*x[1] + x[2]*x[2])
	return [3]float64{x[0] / length, x[1] / length, x[2] / length}
}

// colour evaluates the spherical harmonics of splat i.
func colour(s *scene.Splats, i int, d [3]float64) (c [3]float64) {
	basis := harmonics(d)
	for k := range s.K() {
		for ch := range c {
			c[ch] += basis[k] * float64(s.SH[3*(s.K()*i+k)+ch])
		}
	}
	return c
}

// TestFlipTurns compares Flip, which changes signs, with the half turns that it stands for.
func TestFlipTurns(t *testing.T) {
	for _, c := range []struct {
		text string
		sign [3]float32
	}{{"rotate 180,0,0", [3]float32{1, -1, -1}}, {"rotate 0,180,0", [3]float32{-1, 1, -1}},
		{"rotate 0,0,180", [3]float32{-1, -1, 1}}} {
		s := must.Get(ParseTransform(c.text))(t)
		flipped := model(20, 3)
		flip(flipped, c.sign[0], c.sign[1], c.sign[2])
		got := must.Get(All(Move(Memory(model(20, 3), ply.Meta{}), s, "")))(t)
		if d := apart(got.Means, flipped.Means); d > 1e-6 {
			t.Errorf("%s: means differ by %g", c.text, d)
		}
		if d := apart(got.SH, flipped.SH); d > 1e-6 {
			t.Errorf("%s: SH differ by %g", c.text, d)
		}
		for i := range got.N {
			a, b := rotationOf(quat(got, i)), rotationOf(quat(flipped, i))
			for j := range 3 { // axes up to their sign: the flip's axes are those of the same ellipsoid
				dot := a[j]*b[j] + a[3+j]*b[3+j] + a[6+j]*b[6+j]
				if math.Abs(math.Abs(dot)-1) > 1e-5 {
					t.Fatalf("%s: splat %d: axes %v and %v", c.text, i, a, b)
				}
			}
		}
	}
}

func TestParseTransform(t *testing.T) {
	for text, want := range map[string][3]float64{ // where 1, 2, 3 goes
		"scale 2":                             {2, 4, 6},
		"translate 1,0,-1":                    {2, 2, 2},
		"rotate 90,0,0":                       {1, -3, 2},
		"rotate 0,0,90 translate 1,1,1":       {-1, 2, 4},
		"translate 1,1,1 rotate 0,0,90":       {-3, 2, 4},
		"rotate 90,90,0":                      {2, -3, -1},
		"0 -2 0 1  2 0 0 0  0 0 2 0":          {-3, 2, 6},
		"1,0,0,5, 0,1,0,5, 0,0,1,5, 0,0,0,1":  {6, 7, 8},
		"1;0;0;5; 0;1;0;5; 0;0;1;5; 0;0;0;1;": {6, 7, 8},
	} {
		s, err := ParseTransform(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		y := turned(s.R, [3]float64{1, 2, 3})
		for k := range y {
			if math.Abs(s.Scale*y[k]+s.T[k]-want[k]) > 1e-9 {
				t.Errorf("%s: %v, want %v", text, y, want)
				break
			}
		}
	}
	for _, text := range []string{"", "scale", "scale 0", "scale -1", "scale 1,2,3", "turn 1,2,3", "rotate 1,2",
		"rotate a,b,c", "translate 1e300,0,0", "scale 1e10 scale 1e10", "scale 1e-9 scale 1e-9", "NaN", "1 2 3",
		"1 0 0 0 0 1 0 0 0 0 2 0", "1 1 0 0 0 1 0 0 0 0 1 0", "-1 0 0 0 0 1 0 0 0 0 1 0",
		"1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 1", "0 0 0 0 0 0 0 0 0 0 0 0"} {
		if _, err := ParseTransform(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	for _, text := range []string{"turn 1,2,3", "turn", "move 1"} { // no word of it is the rows of a matrix
		if _, err := ParseTransform(text); err == nil || !strings.Contains(err.Error(), "is not one of scale") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUpright(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		up := unitVector(r)
		switch i {
		case 0:
			up = [3]float64{0, 3, 0}
		case 1:
			up = [3]float64{0, -1, 0}
		case 2:
			up = [3]float64{1e-9, 1, 0}
		}
		s := must.Get(Upright(up))(t)
		y, length := turned(s.R, up), math.Sqrt(up[0]*up[0]+up[1]*up[1]+up[2]*up[2])
		if math.Abs(y[0]) > 1e-8*length || math.Abs(y[1]+length) > 1e-8*length || math.Abs(y[2]) > 1e-8*length {
			t.Errorf("%v goes to %v", up, y)
		}
	}
	if _, err := Upright([3]float64{}); err == nil {
		t.Error("no direction was taken")
	}
}

// TestSelect drops splats by every reason and wants exactly the others, in their order.
func TestSelect(t *testing.T) {
	s := model(2*PieceSplats, 1)
	for i := range s.N {
		s.Means[3*i], s.Means[3*i+1], s.Means[3*i+2] = float32(i%10), 0, 0
		s.LogitOpacities[i] = 0
	}
	s.Quats[0], s.Quats[1], s.Quats[2], s.Quats[3] = 0, 0, 0, 0
	s.SH[12*20+5] = float32(math.NaN())
	s.LogitOpacities[31] = -9
	got, dropped, err := Select(Memory(s, ply.Meta{Step: 5}),
		Selection{Box: &[6]float64{0, -1, -1, 5, 1, 1}, Sphere: &[4]float64{5, 0, 0, 4.5}, MinOpacity: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	for i := range s.N {
		if x := i % 10; i != 0 && i != 20 && i != 31 && x >= 1 && x <= 5 {
			want = append(want, float32(x))
		}
	}
	all := must.Get(All(got))(t)
	var xs []float32
	for i := range all.N {
		xs = append(xs, all.Means[3*i])
	}
	if !slices.Equal(xs, want) || got.Info().N != len(want) || got.Info().Meta.Step != 5 {
		t.Errorf("%d splats, want %d", all.N, len(want))
	}
	if want := (Dropped{Broken: 2, Outside: s.N - len(want) - 3, Faint: 1}); dropped != want {
		t.Errorf("%+v, want %+v", dropped, want)
	}
	m := Memory(model(10, 0), ply.Meta{})
	if same, _, err := Select(m, Selection{}); err != nil || same != Source(m) {
		t.Errorf("nothing to drop: %v, %v", same, err)
	}
}

// TestMaxSplats wants exactly so many, of the greatest importance, ties by their order, flat splats not despised.
func TestMaxSplats(t *testing.T) {
	s := model(1000, 0)
	for i := range s.N {
		for k := range 3 {
			s.LogScales[3*i+k] = -5
		}
		s.LogitOpacities[i] = 0
	}
	copy(s.LogScales[3*7:], []float32{-2, -2, -30}) // a wall: no volume
	s.LogitOpacities[8] = 9
	for _, n := range []int{1, 2, 500, 999} {
		got, dropped, err := Select(Memory(s, ply.Meta{}), Selection{MaxSplats: n})
		if err != nil || got.Info().N != n || dropped.Surplus != s.N-n {
			t.Fatalf("%d of %d: %+v, %v", got.Info().N, n, dropped, err)
		}
		all := must.Get(All(got))(t)
		if !slices.Contains(all.LogScales, -30) {
			t.Errorf("%d: the wall is gone", n)
		}
	}
	// All alike in one place: the first ones.
	for i := range s.Means {
		s.Means[i] = 1
	}
	copy(s.LogScales, slices.Repeat([]float32{-5}, len(s.LogScales)))
	copy(s.LogitOpacities, make([]float32, s.N))
	for i := range s.N {
		s.SH[3*i] = float32(i)
	}
	got, _, err := Select(Memory(s, ply.Meta{}), Selection{MaxSplats: 3})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := All(got); err != nil ||
		!slices.Equal([]float32{all.SH[0], all.SH[3], all.SH[6]}, []float32{0, 1, 2}) {
		t.Errorf("%v, %v", all, err)
	}
}

// TestOutliers puts a lone small splat and a lone large one far from a cloud: the small one goes.
func TestOutliers(t *testing.T) {
	s := model(3000, 0)
	copy(s.Means[3*11:], []float32{60, 0, 0})
	copy(s.Means[3*12:], []float32{0, 60, 0})
	copy(s.LogScales[3*12:], []float32{4, 4, 1})
	got, dropped, err := Select(Memory(s, ply.Meta{}), Selection{Outliers: 4})
	if err != nil {
		t.Fatal(err)
	}
	all := must.Get(All(got))(t)
	if !slices.Contains(all.LogScales, 4) || dropped.Outliers < 1 || dropped.Outliers > 30 {
		t.Errorf("%+v of %d", dropped, s.N)
	}
	for i := range all.N {
		if all.Means[3*i] == 60 {
			t.Error("the small one stays")
		}
	}
}

// TestMerge puts models of different degrees and origins together.
func TestMerge(t *testing.T) {
	a, b := model(30, 1), model(20, 3)
	m := must.Get(Merge([]Source{Memory(a, ply.Meta{Origin: &[3]float64{100, 0, 0}, Antialiased: true}),
		Memory(b, ply.Meta{})}))(t)
	all := must.Get(All(m))(t)
	if all.N != 50 || all.Degree != 3 || !m.Info().Meta.Antialiased {
		t.Fatalf("%+v", m.Info())
	}
	if d := float64(all.Means[90] - b.Means[0]); math.Abs(d+100) > 1e-4 || all.Means[0] != a.Means[0] {
		t.Errorf("the second model was moved by %g", d)
	}
	if !slices.Equal(all.SH[:12], a.SH[:12]) ||
		slices.ContainsFunc(all.SH[12:48], func(x float32) bool { return x != 0 }) ||
		!slices.Equal(all.SH[48*30:], b.SH) {
		t.Error("SH coefficients are not those of the parts")
	}
	if low := WithDegree(m, 0); low.Info().Degree != 0 {
		t.Error("degree stays")
	} else if s, err := All(low); err != nil || s.SH[0] != a.SH[0] || len(s.SH) != 150 {
		t.Errorf("%v", err)
	}
	many := &counted{N: maxSplats}
	if _, err := Merge([]Source{many, many}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

// counted is a model that says it has N splats.
type counted struct{ N int }

func (c *counted) Info() Info                           { return Info{N: c.N} }
func (c *counted) Close() error                         { return nil }
func (c *counted) Read(func(*scene.Splats) error) error { return errors.New("not read") }
