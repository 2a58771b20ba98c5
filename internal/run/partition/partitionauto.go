package partition

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/models"
	"vksplat/internal/run/plans"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/blocks"
)

// The number of blocks by default.
const (
	// mostPhotos of a block: with 30,000 steps, each is trained on thirty times.
	mostPhotos = 1000
	// planFactor stands for the splats that a block wants, over the root of (pixels of its photos times points).
	planFactor = 0.6
)

// divideCapture cuts the ground into the blocks that are asked for, or finds out how many are needed.
func divideCapture(console *cli.Console, o *Options, c *scene.Capture, p *plans.Plan, train []int) ([]blocks.Block,
	*blocks.Sight, error) {
	up, err := o.upward()
	if err != nil {
		return nil, nil, err
	}
	sight, err := blocks.NewSight(c, train, up)
	if err != nil {
		return nil, nil, err
	}
	p.Ground, p.Columns, p.Rows = sight.Ground, o.Shape.Columns, o.Shape.rows
	if p.Columns == 0 {
		list, err := divideAuto(console, o, c, p, sight, len(train))
		return list, sight, err
	}
	list, err := sight.Divide(p.Columns, p.Rows, o.Overlap)
	if err != nil {
		err = plans.DivideError(c, "ask for fewer blocks", "%w", err)
	}
	return list, sight, err
}

// divideAuto takes the least number of blocks of which each fits the device, and has no more photos than are trained on
// often enough.
func divideAuto(console *cli.Console, o *Options, c *scene.Capture, p *plans.Plan, sight *blocks.Sight,
	photos int) (_ []blocks.Block, err error) {
	if err := models.LimitHeap(console, o.Device); err != nil {
		return nil, err
	}
	device, err := pipeline.OpenDevice(o.Device)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
	for n, tried := (photos+mostPhotos-1)/mostPhotos, 0; n <= blocks.MostBlocks; n++ {
		p.Columns, p.Rows = sight.Shape(n)
		if p.Columns*p.Rows == tried {
			continue
		}
		tried = p.Columns * p.Rows
		list, err := sight.Divide(p.Columns, p.Rows, o.Overlap)
		if err != nil {
			return nil, plans.DivideError(c,
				"raise "+fault.Setting("max-vram")+", use smaller photos with "+fault.Setting("downscale")+
					", or say how many blocks: "+fault.Setting("blocks")+" AxB",
				"no number of blocks fits the device: %w", err)
		}
		worst, err := fitting(device, c, list)
		if err != nil {
			return nil, err
		}
		if worst == "" {
			return list, nil
		}
		if tried == 1 {
			console.Note("the whole capture does not fit at once: " + worst)
		}
	}
	return nil, plans.DivideError(c, "say how many blocks: "+fault.Setting("blocks")+" AxB",
		"more than %d blocks would be needed", blocks.MostBlocks)
}

// fitting says why a block is too large, "" if none is.
func fitting(device *pipeline.Device, c *scene.Capture, list []blocks.Block) (why string, err error) {
	for k := range list {
		b := &list[k]
		var cams []scene.Camera
		b.Cameras.Range(func(i uint32) {
			if !c.IsHeldOut(int(i)) {
				cams = append(cams, c.Cameras[i])
			}
		})
		if len(cams) > mostPhotos {
			return fmt.Sprintf("%s: each of more than %d in a block would be trained on too seldom", cli.Count(len(cams), "photo"),
				mostPhotos), nil
		}
		if len(cams) == 0 {
			continue // describe refuses it
		}
		config := recipe.Default()
		config.Splats = recipe.SplatsFor(cams, b.Points.Count(), planFactor)
		_, err := device.Plan(cams, min(b.Points.Count(), config.Splats), config, pipeline.TrainerOptions{})
		if errors.Is(err, pipeline.ErrTooSmall) || errors.Is(err, pipeline.ErrTooMany) {
			return err.Error(), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}
