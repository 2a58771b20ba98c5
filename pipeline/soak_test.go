package pipeline

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"vksplat/internal/filetest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
	"vksplat/scene/load"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/synth"
)

// soakPlan is the size of an endurance run, in steps. Everything that a long run does again and again is done several
// times in each.
type soakPlan struct {
	steps      int
	sample     int // between looks at what the process holds
	checkpoint int
	eval       int // renders and measures the held-out photo
	resume     int // closes everything but the device and goes on with the checkpoint
}

// soakSeries are the numbers that must not rise, each with the growth over the last four fifths of the run that is
// taken for noise.
var soakSeries = []struct {
	name  string
	unit  string
	bound float64
}{
	// what malloc and the Go heap take and do not give back; 100,000 steps that lose 64 bytes each exceed it
	{"resident memory", "bytes", 4 << 20},
	{"file handles", "", 0.5},
	{"goroutines", "", 0.5},
	{"live Go heap", "bytes", 512 << 10},
	{"device memory", "bytes", 0.5},
	{"device memory in use", "bytes", 0.5},
	{"device buffers", "", 0.5},
}

// soakSample is one look; values are in the order of soakSeries.
type soakSample struct {
	step   int
	values []float64
}

// soak is an endurance run under way.
type soak struct {
	t       *testing.T
	plan    soakPlan
	d       *Device
	train   []scene.Camera
	test    []scene.Camera
	init    *scene.Splats
	scale   float64
	cfg     recipe.Config
	dir     string
	samples []soakSample

	cache   *photos.Cache
	trainer *Trainer
	evicted int    // photos given up for others
	refined int    // samples that saw another number of splats, or of wishes for more
	grown   [2]int // both numbers at the last sample
}

// soakVariable is set in the process that TestSoak starts.
const soakVariable = "VKSPLAT_SOAK"

// TestSoak trains for long in small memory with all that a run does beside: refinement, photos that are evicted,
// checkpoints, evaluation, an end and a resumption. Nothing that the process holds may grow with the steps.
func TestSoak(t *testing.T) {
	if os.Getenv(soakVariable) == "" { // in a process of its own: what other tests left in memory moves as it likes
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoak$", "-test.v", "-test.timeout=0")
		cmd.Env = append(os.Environ(), soakVariable+"=1")
		said, err := cmd.CombinedOutput()
		t.Logf("%s", said)
		if err != nil {
			t.Error(err)
		}
		return
	}
	plan := soakPlan{steps: 1500, sample: 50, checkpoint: 200, eval: 300, resume: 500}
	if filetest.Long() {
		plan = soakPlan{steps: 100_000, sample: 250, checkpoint: 2500, eval: 3000, resume: 10_000}
	}
	t.Setenv("VKSPLAT_VALIDATE", "") // the validation layer's memory is none of this program's
	t.Setenv("LP_NUM_THREADS", "0")  // software Vulkan: threads only wait for each other when there is so little to do
	s := newSoak(t, plan)
	start := time.Now()
	for s.trainer == nil || s.trainer.Step() < plan.steps {
		s.open()
		s.leg()
		s.close()
	}
	t.Logf("%d steps in %v; %d photos were evicted, %d of %d samples saw a refinement, %d splats", plan.steps,
		time.Since(start).Round(time.Second), s.evicted, s.refined, len(s.samples), s.trainer.NSplats())
	if s.evicted < plan.steps/10 || s.refined < len(s.samples)/4 {
		t.Error("the test proves too little")
	}
	s.judge()
}

// newSoak makes the capture and opens the device.
func newSoak(t *testing.T, plan soakPlan) *soak {
	s := &soak{t: t, plan: plan, d: testDevice(t), dir: t.TempDir(), cfg: recipe.Default()}
	dir := filepath.Join(s.dir, "capture")
	s.must(synth.Write(dir, synth.Options{Images: 8, Width: 24, Height: 16, Points: 100}))
	c, err := load.Capture(dir, scene.LoadOptions{})
	s.must(err)
	c.Normalise()
	s.scale = c.SceneScale
	train, test := c.Split(8)
	for _, i := range train {
		s.train = append(s.train, c.Cameras[i])
	}
	for _, i := range test {
		s.test = append(s.test, c.Cameras[i])
	}
	s.cfg.Iterations, s.cfg.MaxSplats, s.cfg.SHDegree = plan.steps, 400, 1
	s.cfg.RefineStart, s.cfg.RefineStop, s.cfg.RefineEvery, s.cfg.ResetEvery = 100, plan.steps, 100, 1000
	// Opacities are pulled down, so that splats go all the time and others come.
	s.cfg.OpacityReg, s.cfg.PruneOpacity, s.cfg.ResetOpacity, s.cfg.GrowGrad2D = 0.01, 0.05, 0.2, 1e-4
	s.cfg.Exposure, s.cfg.AppearanceStart, s.cfg.Robust = true, 20, true
	s.init, err = initial.Splats(context.Background(), c,
		initial.Options{Opacity: s.cfg.InitOpacity, Scale: s.cfg.InitScale, Seed: s.cfg.Seed})
	s.must(err)
	return s
}

func (s *soak) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// checkpointPath is where the only checkpoint is.
func (s *soak) checkpointPath() string { return filepath.Join(s.dir, "checkpoint") }

// open makes a trainer from nothing or from the checkpoint. Photos are decoded again and again in one leg and come from
// the disk cache in the next.
func (s *soak) open() {
	size := photos.Bytes(&s.train[0])
	o := photos.Options{Cameras: s.train, Bytes: 3 * size, FlightBytes: 2 * photo.DecodeBytes(s.train[0]), Workers: 2}
	if len(s.samples)/(s.plan.resume/s.plan.sample)%2 == 1 {
		o.SpillDir = filepath.Join(s.dir, "photos")
	}
	var err error
	s.cache, err = photos.NewCache(o)
	s.must(err)
	options := TrainerOptions{PhotoBytes: 2 * size, Pictures: s.test}
	if s.trainer == nil {
		s.trainer, err = NewTrainer(s.d, s.train, s.cache, s.init, s.scale, s.cfg, options)
	} else {
		var c *checkpoint.File
		c, err = checkpoint.Open(s.checkpointPath())
		s.must(err)
		s.must(c.Verify())
		s.trainer, err = NewTrainerFrom(s.d, s.train, s.cache, c, s.cfg, options)
		s.must(c.Close())
	}
	s.must(err)
	s.trainer.SetRun(RunRecord{Version: "test", Frame: checkpoint.FrameRecord{Scale: 1, SceneScale: s.scale}})
}

// leg trains to the next resumption or to the end.
func (s *soak) leg() {
	tr := s.trainer
	for first := true; first || tr.Step()%s.plan.resume != 0 && tr.Step() < s.plan.steps; first = false {
		s.must(tr.RunTo(context.Background(), tr.Step()+s.plan.sample, nil))
		if tr.Step()%s.plan.checkpoint == 0 {
			_, err := tr.SaveCheckpoint(s.checkpointPath(), true)
			s.must(err)
		}
		if tr.Step()%s.plan.eval == 0 {
			s.evaluate()
		}
		s.sample()
	}
	if tr.pressure.limited > 0 || len(tr.Deviations()) > 0 {
		s.t.Errorf("step %d: memory ran short: %v", tr.Step(), tr.Deviations())
	}
}

// evaluate measures the held-out photos.
func (s *soak) evaluate() {
	for _, c := range s.test {
		shot, err := photo.Decode(c)
		s.must(err)
		picture, err := s.trainer.RenderInto(nil, c)
		s.must(err)
		_, _, err = metric.Compare(shot, picture, metric.PaddingValid, nil)
		s.must(err)
	}
}

// close ends the leg: nothing of it may stay on the device.
func (s *soak) close() {
	tr := s.trainer
	if tr.Step()%s.plan.checkpoint != 0 {
		_, err := tr.SaveCheckpoint(s.checkpointPath(), false)
		s.must(err)
	}
	s.must(tr.Close())
	s.evicted += s.cache.Stats().Evicted
	s.must(s.cache.Close())
	if use := s.d.dev.Stats(); use.InUse != 0 || use.Buffers != 0 {
		s.t.Fatalf("step %d: a closed trainer leaves %d buffers of %d bytes", tr.Step(), use.Buffers, use.InUse)
	}
}

// sample looks at what the process holds, between two steps.
func (s *soak) sample() {
	s.trainer.saver.writer.Finish()
	if now := [2]int{s.trainer.NSplats(), s.trainer.MemoryStats().CeilingHits}; now != s.grown {
		s.refined, s.grown = s.refined+1, now
	}
	// or the live heap would be that of the last collection, which may have come in the middle of a checkpoint
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	use := s.d.dev.Stats()
	s.samples = append(s.samples, soakSample{s.trainer.Step(), []float64{
		float64(residentBytes()), openFiles(s.t), float64(runtime.NumGoroutine()), float64(live[0].Value.Uint64()),
		float64(use.Allocated + use.HostAllocated), float64(use.InUse), float64(use.Buffers),
	}})
}

// judge wants no slope in any series. The first fifth is warming up.
func (s *soak) judge() {
	list := s.samples[len(s.samples)/5:]
	span := float64(list[len(list)-1].step - list[0].step)
	for k, series := range soakSeries {
		var x, y []float64
		for _, sample := range list {
			x, y = append(x, float64(sample.step)), append(y, sample.values[k])
		}
		growth := slope(x, y) * span
		s.t.Logf("%s: %.0f to %.0f %s, growth over %.0f steps %.1f, %.1f allowed", series.name, slices.Min(y),
			slices.Max(y), series.unit, span, growth, series.bound)
		if math.IsNaN(growth) || growth > series.bound {
			s.t.Errorf("%s: grows by %.1f %s over %.0f steps, %.1f are allowed", series.name, growth, series.unit, span,
				series.bound)
		}
	}
}

// slope is the estimator of Theil (1950) and Sen (1968): the median of the slopes between all pairs of points, which
// single peaks do not move.
func slope(x, y []float64) float64 {
	var all []float64
	for i := range x {
		for j := range i {
			if x[i] != x[j] {
				all = append(all, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// TestSlope finds a small leak under noise and peaks, and none where there is none.
func TestSlope(t *testing.T) {
	var x, flat, rising []float64
	for i := range 200 {
		noise := float64(i * 7919 % 101)
		if i%10 == 3 {
			noise += 10_000
		}
		x, flat, rising = append(x, float64(i)), append(flat, noise), append(rising, noise+3*float64(i))
	}
	if got := slope(x, flat); math.Abs(got) > 0.1 {
		t.Errorf("slope %g of noise", got)
	}
	if got := slope(x, rising); math.Abs(got-3) > 0.1 {
		t.Errorf("slope %g, want 3", got)
	}
	if got := slope([]float64{1, 1}, []float64{0, 1}); !math.IsNaN(got) {
		t.Errorf("slope %g of one place", got)
	}
}

// openFiles returns the number of the process' file handles; 0 where there is no /proc.
func openFiles(t *testing.T) float64 {
	list, err := os.ReadDir("/proc/self/fd")
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return float64(len(list))
}
