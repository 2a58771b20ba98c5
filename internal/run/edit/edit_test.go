package edit

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
)

// cloud has splats in [-1, 1], of which the first are on the walls of a box of half the size.
func cloud(n int) *scene.Splats {
	r := rand.New(rand.NewPCG(1, 2))
	s := scene.NewSplats(n, 1)
	for i := range s.Means {
		s.Means[i] = 2*r.Float32() - 1
	}
	for i := range n {
		s.Quats[4*i], s.LogitOpacities[i] = 1, 2
		if i < 20 {
			s.Means[3*i+i%3] = 0.5
		}
	}
	for i := range s.SH {
		s.SH[i] = r.Float32() - 0.5
	}
	return s
}

func inside(box [6]float64) Operation { return Operation{Crop: &Crop{Box: box, Keep: Inside}} }

// do carries out an operation that must remove something.
func do(t *testing.T, s *State, op Operation) []uint32 {
	t.Helper()
	gone := must.Get(s.Do(op))(t)
	return gone
}

// TestCrop leaves what convert's crop leaves, and the other side what it drops.
func TestCrop(t *testing.T) {
	c := cloud(3000)
	box := [6]float64{-0.5, -0.25, -1, 0.5, 0.5, 0.5}
	selected, dropped, err := splatfile.Select(splatfile.Memory(c, ply.Meta{}), splatfile.Selection{Box: &box})
	if err != nil {
		t.Fatal(err)
	}
	s := New(c.Means)
	gone := do(t, s, inside(box))
	if s.Kept() != selected.Info().N || len(gone) != dropped.Outside || !slices.IsSorted(gone) {
		t.Errorf("%d kept and %d gone, convert keeps %d", s.Kept(), len(gone), selected.Info().N)
	}
	other := New(c.Means)
	rest := do(t, other, Operation{Crop: &Crop{Box: box, Keep: Outside}})
	if len(rest) != s.Kept() || other.Kept() != len(gone) {
		t.Errorf("the other side removes %d and keeps %d", len(rest), other.Kept())
	}
	if _, err := s.Do(Operation{Crop: &Crop{Box: box, Keep: Outside}}); !errors.Is(err, ErrAll) {
		t.Errorf("both sides: %v", err)
	}
	if _, err := s.Do(inside(box)); !errors.Is(err, ErrNothing) || s.Kept() != selected.Info().N {
		t.Errorf("the same box again: %v", err)
	}
}

// TestCropTurned turns a box by a quarter about its middle: what was wide in x is wide in z.
func TestCropTurned(t *testing.T) {
	c := cloud(3000)
	long, deep := [6]float64{-0.7, -1, -0.1, 0.9, 1, 0.3}, [6]float64{-0.1, -1, -0.7, 0.3, 1, 0.9}
	s, want := New(c.Means), New(c.Means)
	got := do(t, s, Operation{Crop: &Crop{Box: long, Turn: 90, Keep: Inside}})
	if !slices.Equal(got, do(t, want, inside(deep))) {
		t.Errorf("%d are gone, %d with the box that is so anyway", len(got), want.N()-want.Kept())
	}
	// By 30 degrees the corners of a square stand out.
	square := &Crop{Box: [6]float64{-0.5, -1, -0.5, 0.5, 1, 0.5}, Turn: 30, Keep: Inside}
	cut := newCut(square, splatfile.Unmoved())
	sin, cos := math.Sincos(30 * math.Pi / 180)
	for _, corner := range [][2]float64{{0.49, 0.49}, {-0.49, 0.49}, {0.49, -0.49}} {
		x, z := cos*corner[0]+sin*corner[1], cos*corner[1]-sin*corner[0]
		if cut.removes([]float32{float32(x), 0, float32(z)}) {
			t.Errorf("the corner at %g, %g is outside", x, z)
		}
		if !cut.removes([]float32{float32(1.05 * x), 0, float32(1.05 * z)}) {
			t.Errorf("what is beyond %g, %g is inside", x, z)
		}
	}
}

// TestUndo takes everything back and carries it out again; something new forgets what was taken back.
func TestUndo(t *testing.T) {
	s := New(cloud(3000).Means)
	var kept []int
	ops := []Operation{inside([6]float64{-0.9, -0.9, -0.9, 0.9, 0.9, 0.9}), {Remove: []uint32{10, 5, 700, 300}},
		{Up: &[3]float64{0, 0, 1}}, inside([6]float64{-0.5, -0.8, -0.9, 0.9, 0.9, 0.9}), {Remove: []uint32{0, 800}}}
	for _, op := range ops {
		kept = append(kept, s.Kept())
		do(t, s, op)
	}
	last, end := s.Removed(), s.Kept()
	for i := range ops {
		back, ok := s.Undo()
		if want := kept[len(ops)-1-i]; !ok || s.Kept() != want || s.N()-s.Removed().Count() != want {
			t.Errorf("undo %d: %d back, %d kept, want %d", i, len(back), s.Kept(), want)
		}
	}
	if _, ok := s.Undo(); ok || s.Up() != nil || s.Kept() != s.N() {
		t.Error("one more is undone")
	}
	for range ops {
		s.Redo()
	}
	if _, ok := s.Redo(); ok || s.Kept() != end || !slices.Equal(s.Removed(), last) || *s.Up() != [3]float64{0, 0, 1} {
		t.Errorf("redone: %d kept, want %d", s.Kept(), end)
	}
	s.Undo()
	s.Undo()
	do(t, s, Operation{Remove: []uint32{2999, 1}})
	if done, undone := s.Steps(); done != 4 || undone != 0 {
		t.Errorf("%d operations, %d undone", done, undone)
	}
}

// TestUp has the box stand in the turned frame: with z up, the lower half is where y is above 0.
func TestUp(t *testing.T) {
	c := cloud(2000)
	s := New(c.Means)
	do(t, s, Operation{Up: &[3]float64{0, 0, 2}})
	do(t, s, inside([6]float64{-9, 0, -9, 9, 9, 9}))
	for i := range s.N() {
		if z := c.Means[3*i+2]; s.Gone(i) != (z > 0) {
			t.Fatalf("splat %d at z %g: gone is %v", i, z, s.Gone(i))
		}
	}
	if _, err := s.Do(Operation{Up: &[3]float64{0, 0, 2}}); !errors.Is(err, ErrSameUp) {
		t.Errorf("up as it is: %v", err)
	}
	if box, ok := s.Bounds(0, func(int) bool { return true }); !ok || box[1] < 0 || box[4] > 1.001 {
		t.Errorf("bounds %v", box)
	}
}

// TestRefused has operations that make no sense be errors that change nothing.
func TestRefused(t *testing.T) {
	s := New(cloud(100).Means)
	nan, inf := math.NaN(), math.Inf(1)
	for i, op := range []Operation{{}, {Crop: &Crop{Keep: Inside}, Up: &[3]float64{0, 1, 0}},
		inside([6]float64{0, 0, 0, 1, 1, -1}), inside([6]float64{nan, 0, 0, 1, 1, 1}),
		inside([6]float64{0, 0, 0, inf, 1, 1}),
		inside([6]float64{0, 0, 0, 1e300, 1, 1}), {Crop: &Crop{Box: [6]float64{0, 0, 0, 1, 1, 1}}},
		{Crop: &Crop{Box: [6]float64{0, 0, 0, 1, 1, 1}, Turn: nan, Keep: Inside}},
		{Up: &[3]float64{}}, {Up: &[3]float64{nan, 0, 1}}, {Up: &[3]float64{inf, 0, 1}}, {Up: &[3]float64{1e-20, 0, 0}},
		{Remove: []uint32{1}}, {Remove: []uint32{99, 2}}, {Remove: []uint32{5, 0}}, {Remove: []uint32{5, 2, 6, 1}},
		{Remove: []uint32{math.MaxUint32, math.MaxUint32}}, {Remove: []uint32{0, 100}}} {
		if _, err := s.Do(op); err == nil {
			t.Errorf("operation %d is carried out", i)
		}
	}
	if done, _ := s.Steps(); done != 0 || s.Kept() != 100 {
		t.Errorf("%d operations, %d splats", done, s.Kept())
	}
}

// TestReplay carries a document out on the same file and leaves what the state leaves; other models are refused.
func TestReplay(t *testing.T) {
	c := cloud(20_000)
	s := New(c.Means)
	for _, op := range []Operation{inside([6]float64{-0.9, -0.9, -0.9, 0.9, 0.9, 0.9}),
		{Remove: []uint32{3, 5, 17_000, 300}}, {Up: &[3]float64{0.1, -0.2, 0.9}},
		{Crop: &Crop{Box: [6]float64{-0.1, -0.2, -0.3, 0.5, 0.6, 0.7}, Turn: 25, Keep: Outside}}} {
		do(t, s, op)
	}
	path := t.TempDir() + "/a" + FileSuffix
	must.Do(t, s.Document().Write(path))
	d := must.Get(Read(path))(t)
	r := must.Get(d.Replay(splatfile.Memory(c, ply.Meta{})))(t)
	if !slices.Equal(r.Removed, s.Removed()) || *r.Up != *s.Up() || r.Upright() != s.Upright() {
		t.Errorf("replayed: %d gone, want %d", r.Removed.Count(), s.N()-s.Kept())
	}
	again := New(c.Means)
	if err := again.Resume(d); err != nil || !slices.Equal(again.Removed(), s.Removed()) {
		t.Errorf("gone on with: %v, %d kept", err, again.Kept())
	}
	other := cloud(20_000)
	other.Means[5]++
	for _, m := range []*scene.Splats{other, cloud(19_999)} {
		_, err := d.Replay(splatfile.Memory(m, ply.Meta{}))
		if !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("another model: %v", err)
		}
		if err := New(m.Means).Resume(d); !errors.Is(err, fault.ErrData) {
			t.Errorf("another model, gone on with: %v", err)
		}
	}
}

// FuzzDocument: whatever a file holds, it is carried out or refused.
func FuzzDocument(f *testing.F) {
	c := cloud(50)
	s := New(c.Means)
	good := s.Document()
	hash := good.Positions
	for _, text := range []string{`{"crop":{"box":[0,0,0,1,1,1],"keep":"inside"}}`, `{"remove":[0,4294967295]}`,
		`{"remove":[1,2,9,1]}`, `{"up":[0,0,1]}`, `{"up":[1e999,0,0]}`, `{}`, `null`, `{"crop":null,"up":null}`,
		`{"remove":[-1,5]}`, `{"crop":{"box":[1],"turn":1e300,"keep":"outside"}}`} {
		f.Add(`{"version":1,"splats":50,"positions":"` + hash + `","operations":[` + text + `]}`)
	}
	f.Add(`{"version":2,"operations":[]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parse([]byte(text))
		if err != nil {
			return
		}
		r, err := d.Replay(splatfile.Memory(c, ply.Meta{}))
		if err == nil && r.Removed.Count() > c.N {
			t.Errorf("%d of %d are gone", r.Removed.Count(), c.N)
		}
		_ = New(c.Means).Resume(d) // refused or not
	})
}

// seen is a camera in the middle of the frame that looks along z, and a wall of splats in front of another.
func seen() (c scene.Camera, s *scene.Splats) {
	c = scene.Camera{Width: 40, Height: 30, Fx: 20, Fy: 20, Cx: 20, Cy: 15, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}
	s = scene.NewSplats(2*30*40, 0)
	for i := range s.N {
		z := float32(2 + 2*(i/1200))
		x, y := float32(i%40)+0.5-20, float32(i%1200/40)+0.5-15
		copy(s.Means[3*i:], []float32{x / 20 * z, y / 20 * z, z})
	}
	return c, s
}

// wall is the surface that a camera sees at a distance.
func wall(c *scene.Camera, z float32) Surface {
	s := make(Surface, 3*c.Width*c.Height)
	for i := range c.Width * c.Height {
		s[3*i], s[3*i+1] = 0.8*z, 0.8
	}
	return s
}

// TestStrike takes what is painted of the wall in front, and through it if that is wanted.
func TestStrike(t *testing.T) {
	c, model := seen()
	s := New(model.Means)
	stroke := &Stroke{Path: [][2]float64{{0.25, 0.5}, {0.75, 0.5}}, Radius: 0.1}
	front := s.Strike(stroke, &c, model.Means, wall(&c, 2))
	both := s.Strike(stroke, &c, model.Means, nil)
	if len(front) < 100 || len(front) > 160 || len(both) != 2*len(front) || front[len(front)-1] >= 1200 {
		t.Errorf("%d in front, %d through", len(front), len(both))
	}
	for _, id := range front {
		x, y := float64(id%40)+0.5, float64(id%1200/40)+0.5
		if d := apart2([2]float64{10, 15}, [2]float64{30, 15}, x, y); d > 9 {
			t.Errorf("splat %d at %g, %g is %g px from the stroke", id, x, y, math.Sqrt(d))
		}
	}
	do(t, s, Operation{Remove: Runs(front)})
	if again := s.Strike(stroke, &c, model.Means, nil); len(again) != len(front) || again[0] < 1200 {
		t.Errorf("%d are left to strike", len(again))
	}
	bare := wall(&c, 2)
	clear(bare) // nothing hides what is behind
	if n := len(s.Strike(stroke, &c, model.Means, bare)); n != len(front) {
		t.Errorf("%d of what nothing hides", n)
	}
	dot := &Stroke{Path: [][2]float64{{0, 1}}, Radius: 0.05}
	if n := len(s.Strike(dot, &c, model.Means, nil)); n < 2 || n > 8 {
		t.Errorf("%d in the corner", n)
	}
	c.R[0], c.R[8] = -1, -1 // looks away
	if n := len(s.Strike(stroke, &c, model.Means, nil)); n != 0 {
		t.Errorf("%d behind the camera", n)
	}
}

// TestFloor finds up of a floor below a camera that looks down by 30 degrees and is turned.
func TestFloor(t *testing.T) {
	sin, cos := math.Sincos(30 * math.Pi / 180)
	for _, model := range []scene.CameraModel{scene.Pinhole, scene.Fisheye} {
		c := scene.Camera{Model: model, Width: 200, Height: 150, Fx: 120, Fy: 120, Cx: 100, Cy: 75,
			R: [9]float64{0, 0, -1, -sin, cos, 0, cos, sin, 0}} // world: y down; looks along x and down
		s := make(Surface, 3*c.Width*c.Height)
		for i := range c.Width * c.Height { // the floor is at y = 1
			u, v := (float64(i%c.Width)+0.5-c.Cx)/c.Fx, (float64(i/c.Width)+0.5-c.Cy)/c.Fy
			if r := math.Hypot(u, v); model == scene.Fisheye && r > 0 {
				v = v / r * math.Tan(r)
			}
			if down := v*cos + sin; down > 0.01 {
				s[3*i], s[3*i+1] = float32(0.5/down), 0.5
			}
		}
		up, ok := Floor([3][2]float64{{0.1, 0.9}, {0.9, 0.7}, {0.5, 0.5}}, &c, s)
		if !ok || math.Abs(up[0])+math.Abs(up[1]+1)+math.Abs(up[2]) > 1e-4 {
			t.Errorf("%v: up is %v, %v", model, up, ok)
		}
		if _, ok := Floor([3][2]float64{{0.1, 0.9}, {0.1, 0.9}, {0.5, 0.5}}, &c, s); ok {
			t.Error("two places are a floor")
		}
		if _, ok := Floor([3][2]float64{{0.1, 0.9}, {0.9, 0.9}, {0.5, 0}}, &c, s); ok {
			t.Error("the sky is a floor")
		}
	}
}

// TestRuns writes numbers as runs.
func TestRuns(t *testing.T) {
	if got := Runs([]uint32{0, 1, 2, 7, 9, 10}); !slices.Equal(got, []uint32{0, 3, 7, 1, 9, 2}) {
		t.Error(got)
	}
}

// TestReadHostile names what is no file of edits.
func TestReadHostile(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/nonexistent/file"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "read edits") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
