package pipeline

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/filetest"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// knownDepths makes up depths for one pixel in three of every nth view, and for none of the others.
func knownDepths(views []TrainView, nth int) KnownDepths {
	r := rand.New(rand.NewPCG(8, 9))
	known := make(KnownDepths, len(views))
	for i := 0; i < len(views); i += nth {
		c := &views[i].Camera
		for p := range c.Width * c.Height {
			if r.IntN(3) == 0 {
				known[i] = append(known[i], scene.KnownDepth{X: uint16(p % c.Width), Y: uint16(p / c.Width),
					Depth: float32(3 + 2*r.Float64())})
			}
		}
	}
	return known
}

// knownNormals makes up normals for five places in six of every nth view, in cells of two pixels.
func knownNormals(views []TrainView, nth int) KnownNormals {
	r := rand.New(rand.NewPCG(8, 10))
	known := make(KnownNormals, len(views))
	for i := 0; i < len(views); i += nth {
		c := &views[i].Camera
		known[i] = scene.NewNormalMap(c.Width, c.Height, 1)
		for k := range known[i].Cells {
			if r.IntN(6) > 0 {
				known[i].Cells[k] = scene.PackNormal(geom.Vec{0.2 * r.NormFloat64(), 0.2 * r.NormFloat64(), -1}.Unit())
			}
		}
	}
	return known
}

// TestDepthSameBytes compares depths and normals in every way that must not matter.
func TestDepthSameBytes(t *testing.T) {
	d := testDevice(t)
	views, _, _, _ := promiseScene(t)
	levels := func(c *recipe.Config) {
		c.Precision, c.AbsGrad, c.NumDownscales, c.ResolutionSchedule = recipe.PrecisionMixed, true, 2, 7
	}
	for _, c := range []struct {
		name   string
		usual  TrainerOptions
		change func(*recipe.Config)
		long   bool
	}{
		{"plain", TrainerOptions{Known: knownDepths(views, 2)}, func(*recipe.Config) {}, false},
		{"normals", TrainerOptions{Normals: knownNormals(views, 2)}, func(*recipe.Config) {}, false},
		{"both, mixed, absgrad, levels", TrainerOptions{Known: knownDepths(views, 2), Normals: knownNormals(views, 3)},
			levels, true},
	} {
		if c.long && !filetest.Long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			all := func(config *recipe.Config) {
				shortened(config)
				config.DepthLambda = 5
				c.change(config)
			}
			train := func(o TrainerOptions) string {
				t.Helper()
				hash, _ := trainHashWith(t, d, all, o)
				return hash
			}
			usual, more := c.usual, larger
			more.Known, more.Normals = usual.Known, usual.Normals
			want := train(usual)
			if train(TrainerOptions{}) == want {
				t.Error("the model is that of a run without depths")
			}
			same := func(name string, o TrainerOptions) {
				t.Helper()
				if got := train(o); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if filetest.Long() {
				same("again", usual)
			}
			inBands(t, 2)
			same("larger buffers and two bands", more)
			inBands(t, 99)
			t.Setenv("VKSPLAT_SERIAL", "1")
			same("serial, a band for each row of tiles", usual)
			t.Setenv("VKSPLAT_SERIAL", "")
			t.Setenv("VKSPLAT_LANES", "gpu")
			inBands(t, 1)
			want = train(usual)
			inBands(t, 3)
			same("as on GPUs, larger buffers and three bands", more)
		})
	}
}

// TestDepthResume goes on from a checkpoint in the middle.
func TestDepthResume(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.DepthLambda, cfg.Carve = 20, 5, 0
	o := TrainerOptions{Known: knownDepths(views, 2), Normals: knownNormals(views, 3)}
	tr := teamTrainerWith(t, []*Device{d}, views, init, scale, cfg, o)
	_, _, _, _, run := checkpointScene(t)
	tr.SetRun(run)
	tr.advanceTo(t, 9)
	file := filepath.Join(t.TempDir(), "middle")
	saved(t, tr, file)
	want := modelHash(splatsAfter(t, tr, cfg.Iterations))
	c := must.Get(checkpoint.Open(file))(t)
	defer c.Close()
	cams, photos := splitViews(views)
	o.Depths = depthsOf(cams)
	again := must.Get(NewTrainerFrom(d, cams, photos, c, cfg, o))(t)
	defer again.Close()
	if got := modelHash(splatsAfter(t, again, cfg.Iterations)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestDepthPlan plans as much memory for the table as it takes.
func TestDepthPlan(t *testing.T) {
	d := testDevice(t)
	views, _, _, cfg := promiseScene(t)
	cams, _ := splitViews(views)
	cfg.NumDownscales = 1
	for _, o := range []TrainerOptions{{Known: knownDepths(views, 2)}, {Normals: knownNormals(views, 2)},
		{Known: knownDepths(views, 3), Normals: knownNormals(views, 2)}} {
		planned := planDepths(d.dev, cams, &cfg, &o).words.Size()
		taken := 4 * int64(len(depthWords(t, partsOf(cams, o.Known, o.Normals, depthLevels(&cfg)), depthStaging)))
		if taken != planned {
			t.Errorf("depths %v, normals %v: %d bytes planned, %d taken", o.Known.used(), o.Normals.used(), planned,
				taken)
		}
	}
}

// TestDepthPlanBytes plans a table of many cells without a copy of them.
func TestDepthPlanBytes(t *testing.T) {
	d := testDevice(t)
	const views, side = 64, 128
	cams, normals := make([]scene.Camera, views), make(KnownNormals, views)
	for i := range cams {
		cams[i], normals[i] = scene.Camera{Width: side, Height: side}, scene.NewNormalMap(side, side, 0)
	}
	cfg, o := recipe.Default(), TrainerOptions{Normals: normals}
	allocated := filetest.Allocated()
	table := planDepths(d.dev, cams, &cfg, &o).words.Size()
	if n := int64(allocated()); table < 4*views*side*side || n > table/16 {
		t.Errorf("%d bytes are allocated to plan a table of %d", n, table)
	}
}

// depthWords makes a table that is uploaded in stretches of most words, if no part has more.
func depthWords(t *testing.T, p *depthParts, most int) []uint32 {
	t.Helper()
	words, room := make([]uint32, p.words()), make([]uint32, p.staged(most))
	must.Do(t, p.each(room, func(at, n int) error {
		copy(words[at:at+n], room)
		return nil
	}))
	return words
}

// TestDepthTable reads a table back as depth_loss and normal_loss do.
func TestDepthTable(t *testing.T) {
	cams := []scene.Camera{{Width: 40, Height: 20}, {Width: 40, Height: 20}, {Width: 17, Height: 33}}
	known := KnownDepths{
		{{X: 0, Y: 0, Depth: 4}, {X: 39, Y: 19, Depth: 0.5}, {X: 1, Y: 1, Depth: 2}, {X: 20, Y: 3, Depth: 8},
			{X: 20, Y: 3, Depth: 4}, {X: 5, Y: 5, Depth: -1}, {X: 6, Y: 5, Depth: float32(math.Inf(1))}},
		nil,
		{{X: 16, Y: 32, Depth: 3}},
	}
	const levels, heads = 2, 3
	normals := KnownNormals{{}, {Shift: 4, Columns: 3, Cells: []uint32{5, 0, 6, 7, 8, 9}}, {}}
	parts := partsOf(cams, known, normals, levels)
	words := depthWords(t, parts, depthStaging)
	if small := depthWords(t, parts, 1); parts.staged(1) >= len(words)/2 || !slices.Equal(small, words) {
		t.Errorf("%d words at a time: %v, want %v", parts.staged(1), small, words)
	}
	for view, want := range normals {
		at := words[view*heads+levels]
		if n := len(want.Cells); n == 0 && at != 0 ||
			n > 0 && !slices.Equal(words[at:][:2+n], append([]uint32{4, 3}, want.Cells...)) {
			t.Errorf("view %d: its normals are at %d of %v", view, at, words)
		}
	}
	read := func(view, level int) map[[2]int]float64 {
		g, found := levelGrid(&cams[view], level), map[[2]int]float64{}
		at := words[view*heads+level]
		if at == 0 {
			return found
		}
		part := words[at:]
		for tile := range g.columns * g.rows {
			for k := part[1+tile]; k < part[2+tile]; k++ {
				w := part[g.head()+int(k)]
				place := int(w % layout.TilePixels)
				x, y := tile%g.columns*layout.TileSize+place%layout.TileSize,
					tile/g.columns*layout.TileSize+place/layout.TileSize
				found[[2]int{x, y}] = float64(math.Float32frombits(w >> 8 << 7))
			}
		}
		if len(found) != int(part[0]) {
			t.Errorf("view %d, level %d: %d pixels, the table says %d", view, level, len(found), part[0])
		}
		return found
	}
	for _, c := range []struct {
		view, level int
		want        map[[2]int]float64
	}{
		{0, 0, map[[2]int]float64{{0, 0}: 0.25, {39, 19}: 2, {1, 1}: 0.5, {20, 3}: 0.1875}},
		{0, 1, map[[2]int]float64{{0, 0}: 0.375, {19, 9}: 2, {10, 1}: 0.1875}},
		{1, 0, map[[2]int]float64{}}, {1, 1, map[[2]int]float64{}},
		{2, 0, map[[2]int]float64{{16, 32}: 1.0 / 3}}, {2, 1, map[[2]int]float64{}}, // beyond the smaller picture
	} {
		got := read(c.view, c.level)
		if len(got) != len(c.want) {
			t.Errorf("view %d, level %d: %v, want %v", c.view, c.level, got, c.want)
		}
		for at, x := range c.want {
			if !(math.Abs(got[at]/x-1) < 1e-5) {
				t.Errorf("view %d, level %d, pixel %v: %g, want %g", c.view, c.level, at, got[at], x)
			}
		}
	}
}
