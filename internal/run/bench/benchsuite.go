package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/run/models"
	"vksplat/pipeline"
	"vksplat/pipeline/photos"
	"vksplat/scene"
	"vksplat/scene/synth"
)

// The suites of made-up models.
const (
	SuiteQuick = "quick"
	suiteFull  = "full"
)

func SuiteNames() []string { return []string{SuiteQuick, suiteFull} }

// madeUp is a model of a suite.
type madeUp struct {
	splats        int
	width, height int
}

func (m madeUp) name() string { return fmt.Sprintf("%d splats, %dx%d", m.splats, m.width, m.height) }

// quickSuite goes from what software Vulkan manages to what trained scenes have.
var quickSuite = []madeUp{{5_000, 256, 144}, {30_000, 480, 270}, {200_000, 960, 540}, {1_000_000, 1920, 1080}}

// fullSuite has the number of splats at 1080p, and of pixels at half a million splats.
var fullSuite = append(quickSuite[:len(quickSuite):len(quickSuite)],
	madeUp{100_000, 1920, 1080}, madeUp{300_000, 1920, 1080}, madeUp{3_000_000, 1920, 1080},
	madeUp{10_000_000, 1920, 1080},
	madeUp{500_000, 667, 375}, madeUp{500_000, 943, 530}, madeUp{500_000, 1333, 750}, madeUp{500_000, 1886, 1060},
	madeUp{500_000, 2667, 1500}, madeUp{500_000, 3771, 2121})

const (
	madeUpViews  = 8
	madeUpShrink = 16              // factor by which photos are drawn smaller
	madeUpRound  = 4 * time.Second // a round has as many steps as fit, up to the usual number, twice
	// quick leaves out what has more on a CPU, where a step of the largest takes tens of seconds
	cpuSplats = 50_000
	suiteSeed = 1 // of cameras and splats
)

// suite measures the models of the suite. What does not fit the device's memory is left out.
func (b *bencher) suite(ctx context.Context) error {
	list := quickSuite
	if b.o.Suite == suiteFull {
		list = fullSuite
	}
	for _, m := range list {
		if b.o.Suite == SuiteQuick && m.splats > cpuSplats && b.file.Device.Type == cpuType {
			b.console.Note(fmt.Sprintf("%s: left out on a CPU, where it takes minutes (%s full measures it)", m.name(),
				fault.Setting("suite")))
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := b.madeUp(ctx, m)
		if errors.Is(err, pipeline.ErrTooSmall) || errors.Is(err, pipeline.ErrLittleRAM) ||
			errors.Is(err, pipeline.ErrOutOfMemory) {
			b.console.Warn(fmt.Sprintf("%s: left out: %v", m.name(), err))
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(b.file.Scenes) == 0 {
		return fault.WithHint(errors.New("no model of the suite fits in memory"),
			"raise "+fault.Setting("max-vram")+", or close other programs that use the device")
	}
	return nil
}

// cpuType is the type of devices that are CPUs (pipeline.DeviceSummary.Type).
const cpuType = "cpu"

// madeUp makes a model and measures it.
func (b *bencher) madeUp(ctx context.Context, m madeUp) (err error) {
	cfg := b.o.Config
	cfg.RefineEvery, cfg.Splats, cfg.MaxSplats, cfg.NumDownscales = 0, 0, m.splats, b.downscales()
	cfg.Iterations = max(cfg.Iterations, b.most()+benchProbe+1)
	synth, err := synth.New(synth.Options{Images: madeUpViews, Width: m.width, Height: m.height, Points: m.splats,
		Seed: suiteSeed})
	if err != nil {
		return err
	}
	capture := &scene.Capture{Cameras: synth.Cameras()}
	capture.Normalise()
	photos := make(photos.Images, madeUpViews)
	var drawing sync.WaitGroup
	for i := range photos {
		drawing.Go(func() { photos[i] = synth.Rough(i, madeUpShrink) })
	}
	splats := synth.Splats(cfg.SHDegree).FromCapture(capture.Frame, [3]float64{})
	drawing.Wait()
	device, err := pipeline.OpenDevice(b.o.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
	trainer, err := pipeline.NewTrainer(device, capture.Cameras, photos, splats, capture.SceneScale, cfg,
		pipeline.TrainerOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trainer.Close()) }()
	return b.measure(ctx, subject{name: m.name(), config: &cfg, cameras: capture.Cameras, trainer: trainer,
		limit: b.round})
}
