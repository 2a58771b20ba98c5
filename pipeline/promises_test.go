package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref/goldentest"
	"vksplat/scene"
	"vksplat/vk"
)

// goldenOnce keeps the golden vectors, which take longer to read than some runs take. Nothing of them is changed.
var goldenOnce = sync.OnceValues(func() (*goldentest.Golden, error) {
	return goldentest.LoadGolden("testdata/golden")
})

// promiseScene is a small training set that refines, resets and fails for want of room within a hundred steps: views of
// the golden training run. It has one of thinning() splats of wholeScene.
func promiseScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	t.Helper()
	views, init, scale, cfg := wholeScene(t)
	var some []int
	for i := 0; i < init.N; i += thinning() {
		some = append(some, i)
	}
	return views, init.Take(some), scale, cfg
}

// thinning is 1 in the long form. In the short form it is more: a step's time grows with the number of splats, and the
// golden runs have all. Numbers of splats that belong to the scene are divided by it.
func thinning() int {
	if filetest.Long() {
		return 1
	}
	return 4
}

// wholeScene is promiseScene with all splats, for what depends on how many there are.
func wholeScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	t.Helper()
	g := must.Get(goldenOnce())(t)
	c := g.Trains[0]
	views := make([]TrainView, len(c.Views))
	for i, v := range c.Views {
		img := scene.Image{Width: c.Width, Height: c.Height}
		for p := range c.Width * c.Height {
			img.Pix = append(img.Pix, c.Images[i][3*p], c.Images[i][3*p+1], c.Images[i][3*p+2], 255)
		}
		views[i] = TrainView{Camera: cameraOf(v), Image: img}
		views[i].Camera.Name = strconv.Itoa(i)
	}
	cfg := recipe.Default()
	cfg.Iterations, cfg.SHInterval = 60, 20
	cfg.RefineStart, cfg.RefineStop, cfg.RefineEvery, cfg.ResetEvery = 5, 50, 10, 25
	return views, splatsOf(c.Init), c.SceneScale, cfg
}

// shortened makes a run of two refinements and a reset, with steps after each. In the short form they are close
// together.
func shortened(c *recipe.Config) {
	if c.Iterations = 28; !filetest.Long() {
		c.Iterations, c.RefineEvery, c.ResetEvery = 15, 6, 10
	}
}

// modelHash is a hash of every parameter.
func modelHash(s *scene.Splats) string {
	h := sha256.New()
	fmt.Fprintln(h, s.N, s.Degree)
	var b [4]byte
	for _, tensor := range [][]float32{s.Means, s.Quats, s.LogScales, s.LogitOpacities, s.SH} {
		for _, x := range tensor {
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
			h.Write(b[:])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// trainHash trains the promise scene and returns the model's hash and number of splats.
func trainHash(t testing.TB, d *Device, change func(*recipe.Config)) (string, int) {
	t.Helper()
	return trainHashWith(t, d, change, TrainerOptions{})
}

// trainHashWith is trainHash with options.
func trainHashWith(t testing.TB, d *Device, change func(*recipe.Config), o TrainerOptions) (string, int) {
	t.Helper()
	tr := begun(t, d, promiseScene, change, o)
	defer tr.Close()
	return endHash(t, tr), tr.report.progress.Splats
}

// plain is the hash of the promise scene trained as it is, which tests compare others with.
var plain struct {
	sync.Mutex
	hash string
}

// plainHash trains the promise scene as it is, once for all tests.
func plainHash(t testing.TB, d *Device) string {
	t.Helper()
	plain.Lock()
	defer plain.Unlock()
	if plain.hash == "" {
		plain.hash, _ = trainHash(t, d, nil)
	}
	return plain.hash
}

// TestSameBytes trains one scene in every way that must not matter.
func TestSameBytes(t *testing.T) {
	for _, precision := range precisions {
		t.Run(precision, func(t *testing.T) { testSameBytes(t, precision) })
	}
}

var precisions = []string{recipe.PrecisionFull, recipe.PrecisionMixed}

func testSameBytes(t *testing.T, precision string) {
	d := testDevice(t)
	train := func(d *Device, o TrainerOptions) (string, int) {
		t.Helper()
		return trainHashWith(t, d, func(c *recipe.Config) {
			if c.Precision = precision; !filetest.Long() {
				shortened(c)
			}
		}, o)
	}
	usual := TrainerOptions{}
	want, n := train(d, usual)
	_, init, _, _ := promiseScene(t)
	t.Logf("%s, %d splats from %d", want, n, init.N)
	if n == init.N {
		t.Error("no splat was added or removed: the test proves too little")
	}
	same := func(name string, d *Device, o TrainerOptions) {
		t.Helper()
		if got, _ := train(d, o); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if filetest.Long() { // what follows trains again, too
		same("again", d, usual)
	}
	t.Run("unseen splats", func(t *testing.T) {
		same("stepped with the others", d, TrainerOptions{hooks: testHooks{unseenTogether: true}})
	})
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		same("larger buffers and two bands", d, larger)
		inBands(t, 99)
		same("a band for each row of tiles", d, usual)
	})
	t.Run("serial", func(t *testing.T) {
		t.Setenv("VKSPLAT_SERIAL", "1")
		same("serial", d, usual)
	})
	t.Run("small chunks and bindings", func(t *testing.T) {
		smallChunks(t, 1<<20/thinning())
		small := testDevice(t)
		tr := begun(t, small, promiseScene, func(c *recipe.Config) { c.Precision = precision }, usual)
		inChunks(t, tr)
		tr.Close()
		same("small chunks and bindings", small, usual)
	})
	before := want
	t.Run("blending as on GPUs", func(t *testing.T) { // in another order of sums: see chooseRaster
		t.Setenv("VKSPLAT_LANES", "gpu")
		want, _ = train(d, usual)
		inBands(t, 2)
		same("larger buffers and two bands", d, larger)
		t.Setenv("VKSPLAT_SERIAL", "1")
		inBands(t, 99)
		same("serial, a band for each row of tiles", d, usual)
	})
	want = before
	t.Run("other sort and scan", func(t *testing.T) {
		other := otherSort(t, d)
		same("other sort and scan", other, usual)
		t.Setenv("VKSPLAT_SERIAL", "1")
		inBands(t, 99)
		same("other sort and scan, serial, a band for each row of tiles", other, usual)
	})
}

// otherSort makes engines sort and scan by kernels that look back where they would not, and the other way round. Where
// those cannot run it skips the test.
func otherSort(t *testing.T, d *Device) *Device {
	t.Helper()
	info := d.dev.Info()
	if info.ForwardProgress() {
		t.Setenv(lookbackVariable, "0")
		return d
	}
	if info.Type != vk.CPU {
		t.Skip("workgroups may not wait for each other here")
	}
	t.Setenv(lookbackVariable, "1")
	t.Setenv("LP_NUM_THREADS", "1") // see vk.DeviceInfo.ForwardProgress
	return testDevice(t)
}

// TestDifferentSeeds makes sure that the hash sees a difference.
func TestDifferentSeeds(t *testing.T) {
	d := testDevice(t)
	a, _ := trainHash(t, d, func(c *recipe.Config) { c.Iterations = 12 })
	b, _ := trainHash(t, d, func(c *recipe.Config) { c.Iterations = 12; c.Seed++ })
	if a == b {
		t.Error("two seeds give the same model")
	}
}

// TestTwoDevices trains two scenes at once on two devices of one process.
func TestTwoDevices(t *testing.T) {
	short := func(c *recipe.Config) { c.Iterations = 25 }
	other := func(c *recipe.Config) { c.Iterations = 25; c.Seed = 7 }
	devices := []*Device{testDevice(t), testDevice(t)}
	var want, got [2]string
	changes := []func(*recipe.Config){short, other}
	for i := range want {
		want[i], _ = trainHash(t, devices[i], changes[i])
	}
	var wg sync.WaitGroup
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			got[i], _ = trainHash(t, devices[i], changes[i])
		}()
	}
	wg.Wait()
	if got != want {
		t.Errorf("together %v, alone %v", got, want)
	}
}

// TestStepAllocations counts what a step allocates on the Go heap, and what training allocates on the device once it
// runs.
func TestStepAllocations(t *testing.T) {
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.RefineEvery = 1<<20, 0
	tr := must.Get(trainOn(testDevice(t), views, init, scale, cfg))(t)
	defer tr.Close()
	step := func() {
		must.Do(t, tr.queue.advance(context.Background()))
	}
	for range 8 {
		step()
	}
	before := tr.shards.first.e.setup.dev.Stats().AllocCalls
	// A whole epoch shuffles the views, which is the only allocation: one in len(views) steps.
	if n := testing.AllocsPerRun(2*len(views), step); n != 0 {
		t.Errorf("%g heap allocations a step", n)
	}
	if n := tr.shards.first.e.setup.dev.Stats().AllocCalls - before; n != 0 {
		t.Errorf("%d calls of vkAllocateMemory after warm-up", n)
	}
	must.Get(tr.queue.drain())(t)
}

// TestCeiling trains into the ceiling of splats, the asked one and that of a small memory, where isects and model
// compete.
func TestCeiling(t *testing.T) {
	ceiling := 4000 / thinning()
	at := func(c *recipe.Config) { c.MaxSplats = ceiling; c.Iterations = 30; c.Carve = 0 }
	d := testDevice(t)
	want, n := trainHash(t, d, at)
	if n != ceiling {
		t.Errorf("%d splats, the ceiling is %d", n, ceiling)
	}
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		if got, _ := trainHash(t, d, at); got != want {
			t.Error("bands change the bytes at the ceiling")
		}
	})
	smallChunks(t, 1<<20)
	mib := 7 // that the splats of the short form fill
	if filetest.Long() {
		mib = 14
	}
	small, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: fmt.Sprintf("%dMiB", mib)})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	views, init, scale, cfg := promiseScene(t)
	cfg.Carve = 0 // the last refinement removes some
	tr := must.Get(trainOn(small, views, init, scale, cfg))(t)
	defer tr.Close()
	must.Do(t, tr.Run(context.Background(), nil))
	t.Logf("%d splats of at most %d in %d MiB, %d bands, %d wishes refused", tr.report.progress.Splats,
		tr.shards.first.maxSplats, mib,
		tr.shards.first.e.setup.bands, tr.MemoryStats().CeilingHits)
	if tr.report.progress.Splats != tr.shards.first.maxSplats || tr.MemoryStats().CeilingHits == 0 {
		t.Errorf("%d splats, the ceiling is %d and was hit %d times", tr.report.progress.Splats,
			tr.shards.first.maxSplats,
			tr.MemoryStats().CeilingHits)
	}
	if got := tr.MemoryStats().PeakDeviceBytes; got > int64(mib)<<20 {
		t.Errorf("%d bytes of device memory at the peak, %d allowed", got, mib<<20)
	}
}

// TestInterrupt stops a run and goes on with it.
func TestInterrupt(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := promiseScene(t)
	want := plainHash(t, d)
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	ctx, cancel := context.WithCancel(context.Background())
	if err := tr.Run(ctx, func(p Progress) {
		if p.Step == 20 {
			cancel()
		}
	}); err != context.Canceled {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if tr.Step() < 20 || tr.Step() >= cfg.Iterations {
		t.Errorf("stopped after step %d", tr.Step())
	}
	if _, err := tr.RenderInto(nil, views[0].Camera); err != nil {
		t.Error(err)
	}
	must.Do(t, tr.Run(context.Background(), nil))
	s := must.Get(tr.Splats())(t)
	if got := modelHash(s); got != want {
		t.Errorf("with a pause %s, without %s", got, want)
	}
}
