package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/scene"
	"vksplat/scene/safetensors"
	"vksplat/shaders/layout"
)

// testTeam opens n devices: the same one n times, each with memory and queues of its own.
func testTeam(t testing.TB, n int) (list []*Device) {
	t.Helper()
	for range n {
		list = append(list, testDevice(t))
	}
	return list
}

// teamTrainer makes a trainer of a scene on several devices.
func teamTrainer(t testing.TB, devices []*Device, views []TrainView, init *scene.Splats, scale float64,
	cfg recipe.Config) *Trainer {
	t.Helper()
	return teamTrainerWith(t, devices, views, init, scale, cfg, TrainerOptions{})
}

// teamTrainerWith is teamTrainer with options.
func teamTrainerWith(t testing.TB, devices []*Device, views []TrainView, init *scene.Splats, scale float64,
	cfg recipe.Config, o TrainerOptions) *Trainer {
	t.Helper()
	cams, photos := splitViews(views)
	o.Others, o.Depths = devices[1:], depthsOf(cams)
	tr := must.Get(NewTrainer(devices[0], cams, photos, init, scale, cfg, o))(t)
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	_, _, _, _, run := checkpointScene(t)
	tr.SetRun(run)
	return tr
}

// splatsAfter trains to the end and returns the model.
func splatsAfter(t testing.TB, tr *Trainer, step int) *scene.Splats {
	t.Helper()
	must.Do(t, tr.RunTo(context.Background(), step, nil))
	s := must.Get(tr.Splats())(t)
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	return s
}

// firstMoments reads the first moments of a model of one step, [splat][row], from a checkpoint: they are the gradient
// times 1 - beta1.
func firstMoments(t testing.TB, tr *Trainer) map[string][]float32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "moments")
	saved(t, tr, path)
	file := must.Get(safetensors.Open(path))(t)
	defer file.Close()
	list := map[string][]float32{}
	for _, x := range file.Tensors {
		if !strings.HasPrefix(x.Name, "adam_m_") {
			continue
		}
		n := must.Get(x.Bytes())(t)
		numbers := make([]float32, n/4)
		must.Do(t, binary.Read(file.Reader(x.Name), binary.LittleEndian, numbers))
		list[x.Name] = numbers
	}
	return list
}

// TestTeamGradient compares the gradient of a batch of views, one on each of several devices, with the mean of the
// gradients that one device has of them.
func TestTeamGradient(t *testing.T) {
	devices := testTeam(t, 4)
	for n := 2; n <= 4; n++ {
		for _, absgrad := range []bool{false, true} {
			if absgrad == (n == 3) || filetest.Long() {
				t.Run(fmt.Sprintf("%d devices, absgrad %v", n, absgrad),
					func(t *testing.T) { testTeamGradient(t, devices[:n], absgrad, false) })
			}
		}
	}
	t.Run("3 devices, depths", func(t *testing.T) { testTeamGradient(t, devices[:3], false, true) })
}

func testTeamGradient(t *testing.T, devices []*Device, absgrad, depths bool) {
	n := len(devices)
	views, init, scale, cfg := promiseScene(t)
	views = views[:8]
	untie(t, init, views)
	cfg.Iterations, cfg.AbsGrad, cfg.Carve, cfg.DepthLambda = 1, absgrad, 0, 5
	var o TrainerOptions
	if depths {
		o.Known = knownDepths(views, 1)
	}
	team := teamTrainerWith(t, devices, views, init, scale, cfg, o)
	batch := make([]int, n)
	for w, m := range team.shards.list {
		batch[w] = m.photos.order.at(0)
	}
	splatsAfter(t, team, 1)
	got := firstMoments(t, team)
	want := map[string][]float64{}
	for _, view := range batch {
		one := teamTrainerWith(t, devices[:1], views, init, scale, cfg, o)
		fixViews(&one.shards.first.photos.order, view)
		splatsAfter(t, one, 1)
		for name, list := range firstMoments(t, one) {
			if want[name] == nil {
				want[name] = make([]float64, len(list))
			}
			for i, x := range list {
				want[name][i] += float64(x) / (1 - layout.AdamBeta1) / float64(n)
			}
		}
	}
	if len(want) == 0 {
		t.Fatal("no moments")
	}
	for name, list := range want {
		width := len(list) / init.N
		most, off := 0.0, 0.0
		for i, x := range list {
			// Device d has splats d, d + n, ..., one device after the other in the file.
			splat, at := i/width, 0
			for d := range splat % n {
				at += (init.N - d + n - 1) / n
			}
			at += splat / n
			y := float64(got[name][at*width+i%width]) / min(float64(n)*(1-layout.AdamBeta1), 1)
			most, off = max(most, math.Abs(x)), max(off, math.Abs(x-y))
		}
		t.Logf("%s: largest %.3g, off by %.3g", name, most, off)
		if !(off <= 1e-5*most) || most == 0 && name != "adam_m_shN" {
			t.Errorf("%s: off by %g of %g", name, off, most)
		}
	}
}

// TestTeamSameBytes trains on several devices in every way that must not matter.
func TestTeamSameBytes(t *testing.T) {
	mcmc := func(c *recipe.Config) { c.Strategy, c.MaxSplats = recipe.StrategyMCMC, 3300/thinning() }
	// Each way that must not matter with one of the settings: a run on several devices takes as many times as long
	// here.
	devices := testTeam(t, 4)
	for _, c := range []struct {
		name   string
		n      int
		change func(*recipe.Config)
		way    func(r teamRun, t *testing.T)
		long   bool     // of those that take minutes elsewhere
		depths bool     // are compared
		of     trainSet // nil: promiseScene
	}{
		{name: "default on 2", n: 2, change: func(*recipe.Config) {}, way: teamRun.smallPackets, long: true},
		{name: "in a hurry on 2", n: 2, change: func(c *recipe.Config) { c.GrowGrad2D /= 8 }, way: teamRun.roomOnOne,
			of: wholeScene}, // few splats fill no chunk
		{name: "absgrad on 4", n: 4, change: func(c *recipe.Config) { c.AbsGrad = true },
			way: teamRun.inPieces, long: true},
		{name: "mcmc on 3", n: 3, change: func(c *recipe.Config) { mcmc(c); c.MaxSplats = 3300 }, way: teamRun.inPieces,
			of: wholeScene}, // few splats fill no piece
		{name: "mixed on 2", n: 2, change: func(c *recipe.Config) { c.Precision = recipe.PrecisionMixed },
			way: teamRun.inBands},
		{name: "absgrad on 2", n: 2, change: func(c *recipe.Config) { c.AbsGrad = true }, way: teamRun.smallPackets},
		{name: "depths on 2", n: 2, change: func(*recipe.Config) {}, way: teamRun.inBands, depths: true},
		{name: "depths on 3", n: 3, change: mcmc, way: teamRun.inPieces, depths: true, long: true},
		{name: "levels on 3", n: 3, change: func(c *recipe.Config) { c.NumDownscales, c.ResolutionSchedule = 2, 7 },
			way: teamRun.inBands},
	} {
		if !c.long || filetest.Long() {
			t.Run(c.name, func(t *testing.T) { testTeamSameBytes(t, devices[:c.n], c.of, c.change, c.way, c.depths) })
		}
	}
}

// teamRun trains with some settings on devices.
type teamRun struct {
	devices []*Device
	of      trainSet
	cfg     recipe.Config
	known   KnownDepths
	normals KnownNormals
	want    string // hash of the model
}

func testTeamSameBytes(t *testing.T, devices []*Device, of trainSet, change func(*recipe.Config),
	way func(r teamRun, t *testing.T), depths bool) {
	if of == nil {
		of = promiseScene
	}
	views, init, _, cfg := of(t)
	shortened(&cfg)
	change(&cfg)
	r := teamRun{devices: devices, of: of, cfg: cfg}
	if depths {
		r.known, r.normals = knownDepths(views, 2), knownNormals(views, 3)
	}
	want, first := r.train(t, nil)
	t.Logf("%s, %d splats from %d, shares %v", want, first.NSplats(), init.N, first.shards.sizes())
	if first.NSplats() == init.N {
		t.Error("no splat was added or removed: the test proves too little")
	}
	r.want = want
	way(r, t)
}

// train returns the hash of the model, and its trainer, that alter may change before it begins.
func (r teamRun) train(t *testing.T, alter func(tr *Trainer)) (string, *Trainer) {
	views, init, scale, _ := r.of(t)
	tr := teamTrainerWith(t, r.devices, views, init, scale, r.cfg,
		TrainerOptions{Known: r.known, Normals: r.normals})
	if alter != nil {
		alter(tr)
	}
	return modelHash(splatsAfter(t, tr, r.cfg.Iterations)), tr
}

func (r teamRun) again(t *testing.T) {
	if got, _ := r.train(t, nil); got != r.want {
		t.Errorf("again: %s, want %s", got, r.want)
	}
}

// smallPackets begins with packets and views that have room for next to nothing.
func (r teamRun) smallPackets(t *testing.T) {
	got, tr := r.train(t, func(tr *Trainer) {
		must.Do(t, tr.shards.first.e.programs.team.Resize(1))
		for _, m := range tr.shards.list {
			m.e.setup.viewSplats = team.Unit
			must.Do(t, errors.Join(m.e.programs.free(), m.e.memory.buildToFit()))
		}
	})
	if records := tr.shards.first.e.programs.team.Records(); records <= team.Unit || got != r.want {
		t.Errorf("%s, want %s; packets have grown to %d records", got, r.want, records)
	}
}

// inPieces has packets go in as many pieces as there can be.
func (r teamRun) inPieces(t *testing.T) {
	got, tr := r.train(t, func(tr *Trainer) {
		tr.shards.first.e.programs.team.PieceRecords(100)
		err := tr.shards.first.e.programs.team.Resize(tr.shards.first.e.programs.team.Records())
		for _, m := range tr.shards.list {
			err = errors.Join(err, m.e.programs.free(), m.e.memory.buildToFit())
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if pieces := tr.shards.first.e.setup.links.Pieces; got != r.want || pieces != team.MostPieces &&
		tr.shards.first.e.programs.team.Imported() {
		t.Errorf("in %d pieces: %s, want %s", pieces, got, r.want)
	}
}

// roomOnOne gives the second device room for all splats at once: refinements that do not fit fail on the first alone,
// while the second goes on to the next step.
func (r teamRun) roomOnOne(t *testing.T) {
	before := 0
	got, tr := r.train(t, func(tr *Trainer) {
		before = tr.shards.first.e.setup.model.capacity()
		must.Do(t, tr.shards.list[1].reserve(4*before))
	})
	if after := tr.shards.first.e.setup.model.capacity(); got != r.want || after <= before {
		t.Errorf("%s, want %s; the first device's room was %d, is %d", got, r.want, before, after)
	}
}

func (r teamRun) inBands(t *testing.T) {
	inBands(t, 2)
	r.again(t)
}

// TestTeamResume saves a team's run at every unit around a refinement, and goes on with as many devices, with fewer and
// with more.
func TestTeamResume(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations = 24
	cams, photos := splitViews(views)
	devices := testTeam(t, 3)
	tr := teamTrainer(t, devices[:2], views, init, scale, cfg)
	dir := t.TempDir()
	for _, step := range []int{7, 11} {
		splatsAfter(t, tr, step)
		saved(t, tr, filepath.Join(dir, fmt.Sprint(step)))
	}
	want := modelHash(splatsAfter(t, tr, cfg.Iterations))
	end := saved(t, tr, filepath.Join(dir, "end"))
	resume := func(path string, n int) *Trainer {
		c := must.Get(checkpoint.Open(path))(t)
		defer c.Close()
		next := must.Get(NewTrainerFrom(devices[0], cams, photos, c, cfg,
			TrainerOptions{Others: devices[1:n], Depths: depthsOf(cams)}))(t)
		return next
	}
	for _, step := range []int{7, 11} {
		next := resume(filepath.Join(dir, fmt.Sprint(step)), 2)
		got := modelHash(splatsAfter(t, next, cfg.Iterations))
		late := saved(t, next, filepath.Join(dir, "late"))
		if got != want || !bytes.Equal(late, end) {
			t.Errorf("from step %d: %s, want %s; equal checkpoints: %v", step, got, want, bytes.Equal(late, end))
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []int{1, 3} {
		next := resume(filepath.Join(dir, "11"), n)
		at := next.NSplats()
		if s := splatsAfter(t, next, 12); s.N != at || len(next.Deviations()) != 1 {
			t.Errorf("on %d devices: %d splats of %d, deviations %v", n, s.N, at, next.Deviations())
		}
		splatsAfter(t, next, cfg.Iterations)
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTeamPicture compares pictures of a team with those that one device makes of the whole scene in its checkpoint.
func TestTeamPicture(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations = 24
	devices := testTeam(t, 4)
	for _, n := range []int{2, 4} {
		tr := teamTrainer(t, devices[:n], views, init, scale, cfg)
		splatsAfter(t, tr, cfg.Iterations)
		path := filepath.Join(t.TempDir(), "checkpoint")
		saved(t, tr, path)
		whole := resumed(t, devices[0], path, cfg)
		for _, v := range views[:3] {
			got := must.Get(tr.RenderInto(nil, v.Camera))(t)
			want := must.Get(whole.RenderInto(nil, v.Camera))(t)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%d devices, view %s: number %d is %g, of the whole scene %g", n, v.Camera.Name, i, got[i],
						want[i])
				}
			}
		}
		if err := whole.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTeamBreaks ends a team in the middle of a run, as a device that is lost does: nothing hangs.
func TestTeamBreaks(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	tr := teamTrainer(t, testTeam(t, 3), views, init, scale, cfg)
	gone := errors.New("a device is gone")
	err := tr.Run(context.Background(), func(p Progress) {
		if p.Step == 7 {
			_ = tr.shards.first.e.programs.team.Fail(gone)
		}
	})
	if !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	if _, err := tr.SaveCheckpoint(filepath.Join(t.TempDir(), "checkpoint"), false); !errors.Is(err, gone) {
		t.Errorf("a checkpoint of it: %v", err)
	}
}

// TestEvenOut looks at what moves between devices.
func TestEvenOut(t *testing.T) {
	for _, c := range []struct {
		shares []int
		want   string
	}{
		{[]int{100}, "[]"}, {[]int{0, 0}, "[]"}, {[]int{105, 95}, "[]"}, {[]int{110, 90}, "[]"},
		{[]int{111, 89}, "[{0 1 11}]"}, {[]int{0, 200}, "[{1 0 100}]"},
		{[]int{10, 0, 20}, "[{2 1 10}]"}, {[]int{7, 0, 0}, "[{0 1 2} {0 2 2}]"},
		{[]int{0, 9, 3, 0}, "[{1 0 3} {1 3 3}]"},
	} {
		if got := fmt.Sprint(evenOut(c.shares, slices.Repeat([]int{1000}, len(c.shares)))); got != c.want {
			t.Errorf("%v: %s, want %s", c.shares, got, c.want)
		}
	}
	if got := fmt.Sprint(evenSizes(1000, []int{100, 5000, 300}), evenSizes(10, []int{2, 3}),
		evenOut([]int{300, 100}, []int{5000, 100})); got != "[100 600 300] [2 3] []" {
		t.Errorf("with ceilings: %s", got)
	}
}

// TestTeamMoves moves splats between devices, over borders of chunks, and looks for each of them afterwards.
func TestTeamMoves(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	tr := teamTrainer(t, testTeam(t, 2), views, init, scale, cfg)
	before := splatsAfter(t, tr, 4)
	n := tr.shards.list[0].splats
	must.Do(t, move(tr.shards.first, tr.shards.list[1], n-10))
	after := must.Get(tr.Splats())(t)
	if got := tr.shards.sizes(); got[0] != 10 || got[1] != before.N-10 || after.N != before.N {
		t.Fatalf("shares %v of %d", got, before.N)
	}
	seen := map[[3]float32]bool{}
	for i := range after.N {
		seen[[3]float32(after.Means[3*i:3*i+3])] = true
	}
	for i := range before.N {
		if !seen[[3]float32(before.Means[3*i:3*i+3])] {
			t.Fatalf("splat %d is gone", i)
		}
	}
	splatsAfter(t, tr, cfg.Iterations)
	if got := tr.shards.sizes(); got[0] < 100 {
		t.Errorf("shares %v at the end: they were not made equal", got)
	}
}

// TestAlike looks for devices that can make a team with one of a machine.
func TestAlike(t *testing.T) {
	gpu := func(uuid, name, kind string) DeviceSummary {
		return DeviceSummary{UUID: uuid, Name: name, Type: kind, Driver: "driver 1", Usable: true}
	}
	old, weak := gpu("old", "H200", "discrete"), gpu("weak", "H200", "discrete")
	old.Driver, weak.Usable = "driver 0", false
	list := []DeviceSummary{gpu("a", "H200", "discrete"), gpu("b", "H200", "discrete"), gpu("b", "H200", "discrete"),
		gpu("c", "A100", "discrete"), gpu("i", "Iris", "integrated"),
		gpu("j", "Iris", "integrated"), gpu("k", "llvmpipe", "cpu"), gpu("l", "llvmpipe", "cpu"), old, weak}
	want := map[string]string{"a": "[b]", "b": "[a]", "c": "[]", "i": "[]", "k": "[]"}
	for _, d := range list {
		if w := want[d.UUID]; w != "" && fmt.Sprint(alike(list, d)) != w {
			t.Errorf("like %s: %v, want %s", d.UUID, alike(list, d), w)
		}
	}
}
