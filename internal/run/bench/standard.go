package bench

import (
	"context"
	"errors"
	"io"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
)

// Step is the time of a step of a made-up model.
type Step struct {
	Name string // splats and pixels
	MS   float64
}

// standard are the models whose steps reports of devices time: one that software Vulkan manages, and for GPUs one as
// large as trained scenes.
var standard = []madeUp{quickSuite[1], quickSuite[3]}

// reportRound keeps doctor --report below a minute on software Vulkan.
const reportRound = 2 * time.Second

// StandardSteps times steps of the standard models on o.Device, as bench does in one round, and writes the passes to w.
// A model that does not fit the device is left out.
func StandardSteps(ctx context.Context, o *Options, w io.Writer) (steps []Step, err error) {
	b := &bencher{console: cli.New(nil, w, io.Discard), o: o, events: io.Discard, file: &benchFile{},
		round: reportRound}
	if err := b.openDevice(); err != nil {
		return nil, err
	}
	for _, m := range standard {
		if m.splats > cpuSplats && b.file.Device.Type == cpuType {
			continue
		}
		err := b.madeUp(ctx, m)
		if errors.Is(err, pipeline.ErrTooSmall) || errors.Is(err, pipeline.ErrLittleRAM) ||
			errors.Is(err, pipeline.ErrOutOfMemory) {
			continue
		}
		if err != nil {
			return steps, remedy.Memory(err)
		}
		last := b.file.Scenes[len(b.file.Scenes)-1]
		steps = append(steps, Step{last.Name, last.WallMS.Median})
	}
	return steps, nil
}
