package evaluate

import (
	"context"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene/results"
)

// One measures one model on a device that is open, and writes no scores.
func One(ctx context.Context, console *cli.Console, o *Options, device *pipeline.Device) (*results.Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(o.Models) != 1 {
		return nil, fmt.Errorf("measure a model: %d are named", len(o.Models))
	}
	job, err := ModelJob(console, *o, o.Models[0])
	if err != nil {
		return nil, err
	}
	if err := job.measure(ctx, device); err != nil {
		return nil, remedy.Memory(err)
	}
	return &job.Result, nil
}
