package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// hungry changes a configuration so that every splat grows at every chance.
func hungry(cfg *recipe.Config) {
	cfg.Iterations, cfg.RefineStart, cfg.RefineStop, cfg.RefineEvery, cfg.ResetEvery = 20, 1, 19, 4, 0
	cfg.GrowGrad2D, cfg.PruneOpacity = 1e-9, 0
}

// budgetDevice opens the test device with a budget of bytes.
func budgetDevice(t *testing.T, bytes int64) *Device {
	t.Helper()
	d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: strconv.FormatInt(bytes, 10)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkDevice(t, d)
		closeDevice(t, d)
	})
	return d
}

// TestTightBudgets trains in random small budgets: either it is refused before it starts, or it grows to the ceiling
// that was planned and stays in the budget. The bytes are those of any budget with that ceiling.
func TestTightBudgets(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	hungry(&cfg)
	cams, photos := splitViews(views)
	n, trained, full := 6, 0, 0
	if x, err := strconv.Atoi(os.Getenv("VKSPLAT_BUDGETS")); err == nil {
		n = x
	}
	most := 40 << 20
	if !filetest.Long() {
		most = 16 << 20 // its splats fill no larger one
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		budget := int64(5<<20 + r.IntN(most-5<<20))
		o := TrainerOptions{PhotoBytes: []int64{0, -1, 40000}[r.IntN(3)]}
		cfg.MaxSplats = []int{0, 0, 6000, 50000}[r.IntN(4)]
		name := fmt.Sprintf("%d bytes, %d splats asked, %d bytes of photos", budget, cfg.MaxSplats, o.PhotoBytes)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			d := budgetDevice(t, budget)
			tr, err := NewTrainer(d, cams, photos, init, scale, cfg, o)
			if errors.Is(err, ErrTooSmall) && fault.Hint(err) != "" {
				t.Logf("%s: %v", name, err)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer tr.Close()
			got := endHash(t, tr)
			plan := tr.shards.first.plan
			t.Logf("%s: %d splats of %d, %d bands, peak %d", name, tr.report.progress.Splats, plan.Ceiling,
				tr.shards.first.e.setup.bands,
				tr.MemoryStats().PeakDeviceBytes)
			if tr.pressure.limited > 0 || tr.MemoryStats().CeilingHits > 0 &&
				tr.report.progress.Splats != plan.Ceiling {
				t.Errorf("%s: %d splats, %d were planned", name, tr.report.progress.Splats, plan.Ceiling)
			}
			if tr.MemoryStats().CeilingHits > 0 {
				full++
			}
			if peak := tr.MemoryStats().PeakDeviceBytes; peak > budget {
				t.Errorf("%s: %d bytes at the peak", name, peak)
			}
			if c := cams[0].Rescaled(cams[0].Width*2, cams[0].Height*2); i%2 == 0 {
				if p, err := tr.RenderInto(nil, c); err != nil || len(p) != 3*c.Width*c.Height {
					t.Errorf("%s: a larger picture: %v", name, err)
				}
			}
			if trained++; trained == 2 {
				o.Ceiling = plan.Ceiling
				large := must.Get(NewTrainer(testDevice(t), cams, photos, init, scale, cfg, o))(t)
				defer large.Close()
				if want := endHash(t, large); got != want {
					t.Errorf("%s: %s, with all memory %s", name, got, want)
				}
			}
		})
	}
	if trained == 0 || full == 0 {
		t.Errorf("%d trained, %d to their ceiling: the test proves too little", trained, full)
	}
}

// TestDriverOutOfMemory trains on a device that turns out to have less than its budget.
func TestDriverOutOfMemory(t *testing.T) {
	views, init, scale, cfg := wholeScene(t)
	hungry(&cfg)
	cfg.MaxSplats = 40000
	cams, photos := splitViews(views)
	d := ownDevice(t)
	pressed, warned := -1, ""
	o := TrainerOptions{OnPressure: func(step int) { pressed = step }, Warn: func(text string) { warned += text }}
	tr := must.Get(NewTrainer(d, cams, photos, init, scale, cfg, o))(t)
	defer tr.Close()
	heap := d.dev.Stats().Allocated + 12<<20
	d.dev.LimitHeap(heap)
	endHash(t, tr)
	t.Logf("%d splats of %d, not reproducible from step %d, pressure at step %d: %s", tr.report.progress.Splats,
		tr.shards.first.plan.Ceiling, tr.pressure.limited, pressed, warned)
	if pressed < 0 || warned == "" || tr.pressure.limited <= pressed {
		t.Error("the shortage was not noticed")
	}
	if tr.report.progress.Splats >= tr.shards.first.plan.Ceiling || tr.report.progress.Splats <= init.N ||
		d.dev.Stats().PeakAllocated > heap {
		t.Errorf("%d splats from %d in %d bytes", tr.report.progress.Splats, init.N, d.dev.Stats().PeakAllocated)
	}
	if tr.Step() != cfg.Iterations {
		t.Errorf("stopped after step %d", tr.Step())
	}
}

// TestNothingLeftToGive trains where the device has so little that nothing more can be given up: training ends with an
// error, and does not try for ever.
func TestNothingLeftToGive(t *testing.T) {
	views, init, scale, cfg := wholeScene(t)
	cfg.Strategy, cfg.Splats, cfg.MaxSplats = recipe.StrategyMCMC, 20000, 20000
	if cfg.GrowFactor, cfg.Iterations = 1.15, 18; filetest.Long() {
		cfg.GrowFactor, cfg.Iterations = 1.05, 46
	}
	cfg.RefineStart, cfg.RefineEvery, cfg.RefineStop = 1, 1, cfg.Iterations
	cams, photos := splitViews(views)
	for _, room := range []int64{2 << 20, 4 << 20, 7 << 20, 9 << 20} {
		d := ownDevice(t)
		ctx, stop := context.WithCancel(t.Context())
		pressed := 0
		tr, err := NewTrainer(d, cams, photos, init, scale, cfg, TrainerOptions{OnPressure: func(int) {
			if pressed++; pressed > 20 {
				stop()
			}
		}, Warn: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		d.dev.LimitHeap(d.dev.Stats().Allocated + room)
		err = tr.RunTo(ctx, cfg.Iterations, nil)
		t.Logf("%d MiB more: pressed %d times, %d splats after step %d: %v", room>>20, pressed, tr.NSplats(),
			tr.Step(), err)
		if pressed > 20 || err != nil && !errors.Is(err, ErrTooSmall) {
			t.Errorf("%d MiB more: pressed %d times: %v", room>>20, pressed, err)
		}
		stop()
		_ = tr.Close()
	}
}

// decodeEach decodes the views of a file each for itself.
func decodeEach(decode func(c scene.Camera) (scene.Image, error)) func(cams []scene.Camera) ([]scene.Image, []error) {
	return func(cams []scene.Camera) (images []scene.Image, errs []error) {
		for _, c := range cams {
			m, err := decode(c)
			images, errs = append(images, m), append(errs, err)
		}
		return images, errs
	}
}

// TestPhotoCaches trains through caches of any size on both sides, and with photos that cannot be decoded: the bytes
// depend on the latter alone.
func TestPhotoCaches(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.RefineEvery = 14, 0
	cams, images := splitViews(views)
	if len(cams) < 5 {
		t.Fatalf("%d views are too few", len(cams))
	}
	d := testDevice(t)
	size := photos.Bytes(&cams[0])
	bad := cams[philox.ViewOrder(cfg.Seed, 0, len(cams))[3]].Name
	run := func(onHost, onDevice int, broken string, o TrainerOptions) (string, int, error) {
		decode := func(c scene.Camera) (scene.Image, error) {
			if c.Name == broken {
				return scene.Image{}, fmt.Errorf("no pixels: %w", fault.ErrData)
			}
			i, err := strconv.Atoi(c.Name)
			return images[i], err
		}
		cache := must.Get(photos.NewCache(photos.Options{Cameras: cams, Decode: decodeEach(decode),
			DecodeBytes: func(scene.Camera) int64 { return 1 },
			Bytes:       int64(onHost) * size, FlightBytes: 2, SpillDir: filepath.Join(t.TempDir(), "cache")}))(t)
		defer cache.Close()
		o.PhotoBytes = int64(onDevice)*size - 1
		tr := must.Get(NewTrainer(d, cams, cache, init, scale, cfg, o))(t)
		defer tr.Close()
		if err := tr.Run(context.Background(), nil); err != nil {
			return "", 0, err
		}
		s := must.Get(tr.Splats())(t)
		return modelHash(s), tr.shards.first.photos.order.nBad, nil
	}
	n := len(cams)
	for _, broken := range []string{"", bad} {
		want := ""
		for _, c := range [][2]int{{n, n + 1}, {2, 0}, {2, 3}, {1, n + 1}} {
			warnings := 0
			got, nBad, err := run(c[0], c[1], broken, TrainerOptions{Warn: func(string) { warnings++ }})
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = got
			}
			if got != want || (nBad > 0) != (broken != "") || warnings != nBad {
				t.Errorf("photos for %v on host and device, %q broken: %s, want %s; %d without pixels, %d warnings", c,
					broken, got, want, nBad, warnings)
			}
		}
	}
	if _, _, err := run(n, n, bad, TrainerOptions{Strict: true}); err == nil {
		t.Error("strict training continues without a photo")
	}
}

// TestNoRoomForPairs grows where no pair fits, in whatever number of bands: that is a want of memory, for which others
// give theirs.
func TestNoRoomForPairs(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	tr := must.Get(trainOn(testDevice(t), views, init, scale, cfg))(t)
	defer tr.Close()
	tr.shards.first.e.memory.isectMost = 2 * layout.MostBucket
	if err := tr.shards.first.e.memory.growIsects(layout.MostBucket+44, 75); err != nil ||
		tr.shards.first.e.setup.bands != 1 ||
		tr.shards.first.e.setup.isectCapacity < layout.MostBucket+44 {
		t.Errorf("in %d bands of %d pairs, where one has room: %v", tr.shards.first.e.setup.bands,
			tr.shards.first.e.setup.isectCapacity, err)
	}
	tr.shards.first.e.memory.isectMost = 1
	if err := tr.shards.first.e.memory.growIsects(100_000, 0); !errors.Is(err, ErrTooSmall) {
		t.Errorf("in %d bands of %d pairs: %v", tr.shards.first.e.setup.bands, tr.shards.first.e.setup.isectCapacity,
			err)
	}
}

// TestPaceInTightMemory cuts views into more bands when their pairs have taken all memory: fewer of them at once, or no
// more bands, and no end of the run.
func TestPaceInTightMemory(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.RefineEvery, cfg.Iterations = 0, 6
	cams, photos := splitViews(views)
	d := budgetDevice(t, 24<<20)
	want := ""
	for _, room := range []string{"ample", "tight", "none"} {
		tr := must.Get(NewTrainer(d, cams, photos, init, scale, cfg, TrainerOptions{PhotoBytes: -1}))(t)
		must.Do(t, tr.RunTo(context.Background(), 3, nil))
		before := tr.shards.first.e.setup.isectCapacity
		if room == "tight" {
			e := tr.shards.first.e
			must.Do(t, e.memory.growIsects(uint32(e.memory.isectLimit(e.setup.bands)), 0))
			before = tr.shards.first.e.setup.isectCapacity
		}
		if room == "none" {
			tr.shards.first.e.memory.isectMost = minIsects - 1
		}
		tr.shards.first.pace.moreBands = true
		if err := tr.queue.changePace(tr.shards.first); err != nil {
			t.Fatalf("%s: %v", room, err)
		}
		bands, fewer := 2, room == "tight"
		if room == "none" {
			bands = 1
		}
		if tr.shards.first.e.setup.bands != bands || (tr.shards.first.e.setup.isectCapacity < before) != fewer ||
			tr.shards.first.pace.undivided != (bands == 1) {
			t.Errorf("%s: %d bands of %d pairs, %d before; undivided: %v", room, tr.shards.first.e.setup.bands,
				tr.shards.first.e.setup.isectCapacity,
				before, tr.shards.first.pace.undivided)
		}
		hash := endHash(t, tr)
		if want == "" {
			want = hash
		}
		if hash != want {
			t.Errorf("%s: other bytes", room)
		}
		must.Do(t, tr.Close())
	}
}

// TestFailedStartsFreeAll starts training with arguments that fail late, when there are buffers already: the device is
// as it was.
func TestFailedStartsFreeAll(t *testing.T) {
	views, init, scale, base := promiseScene(t)
	cams, photos := splitViews(views)
	d := ownDevice(t)
	before := d.dev.Stats()
	for name, change := range map[string]func(*recipe.Config){
		"more splats than the ceiling": func(c *recipe.Config) { c.MaxSplats = init.N / 2 },
		"with colour maps":             func(c *recipe.Config) { c.MaxSplats, c.Exposure = init.N/2, true },
	} {
		cfg := base
		change(&cfg)
		if _, err := NewTrainer(d, cams, photos, init, scale, cfg,
			TrainerOptions{Ceiling: init.N / 2}); !errors.Is(err, ErrTooMany) {
			t.Errorf("%s: got %v", name, err)
		}
		if now := d.dev.Stats(); now.InUse != before.InUse || now.Buffers != before.Buffers {
			t.Errorf("%s: %d bytes in %d buffers are left", name, now.InUse-before.InUse, now.Buffers-before.Buffers)
		}
	}
	// Where the driver has no more, at any time of the start.
	cfg := base
	for _, budget := range []int64{1 << 16, 3 << 20, 5 << 20, 7 << 20} {
		d.dev.SetBudget(budget)
		plan := start{first: init.N, splats: init.N,
			fill: func(t *Trainer) error { return t.shards.first.e.setup.model.upload(init) }}
		s := must.Get(trainingSetup(d.dev, oneDevice, cams, photos, &cfg, &TrainerOptions{}))(t)
		e := newEngine(s)
		m := &shard{e: e, plan: &Plan{Device: DevicePlan{PhotoFits: len(cams)}, Ceiling: init.N}, maxSplats: init.N,
			splats: init.N}
		run := &training{cfg: cfg, sceneScale: scale, cams: cams, carves: s.has(recipe.Carve)}
		tr := assemble(run, &shards{first: m, list: []*shard{m}}, TrainerOptions{}, plan)
		if err := plan.begin(tr, photos); !IsShortage(err) {
			t.Errorf("in %d bytes: got %v", budget, err)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if now := d.dev.Stats(); now.InUse != before.InUse || now.Buffers != before.Buffers {
			t.Errorf("in %d bytes: %d bytes in %d buffers are left", budget, now.InUse-before.InUse,
				now.Buffers-before.Buffers)
		}
	}
}
