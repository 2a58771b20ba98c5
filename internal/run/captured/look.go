package captured

import (
	"cmp"
	"path/filepath"
	"slices"

	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/ply"
	"vksplat/scene/results"
)

// DrawnOf is of views of a capture, which is in the training frame.
func DrawnOf(config *pipeline.RenderConfig, c *scene.Capture, views []int) *results.Drawn {
	cams := Pick(c.Cameras, views)
	return &results.Drawn{Near: config.Near, NearUnits: config.Near / c.Frame.Scale, Background: config.Background,
		Antialiased: config.Antialiased, Masked: AnyMasked(cams), Photos: Resolution(cams)}
}

func AnyMasked(cams []scene.Camera) bool {
	return slices.ContainsFunc(cams, func(c scene.Camera) bool { return c.Mask != "" })
}

// Look is how a model was drawn while it was trained, of what pictures depend on and splats do not hold.
type Look struct {
	background [3]float32
	near       float64 // in the training frame; 0: not known
}

// LookOf finds it: the file says it itself, as checkpoints and the files do that train writes. Of another file
// the record of its run does or, where that is lost, the run's newest checkpoint. It is nil if unknown.
func LookOf(file string, meta *ply.Meta) (*Look, error) {
	if meta.Background != nil {
		return &Look{*meta.Background, cmp.Or(meta.Near, ply.DefaultNear)}, nil
	}
	out := output.FolderOf(file)
	if out == "" {
		return nil, nil
	}
	rec, err := ReadRecord(out)
	switch {
	case err != nil:
		return nil, err
	case rec != nil:
		return &Look{rec.Background, rec.Near}, nil
	}
	list, err := output.ListCheckpoints(filepath.Join(out, output.CheckpointFolder))
	for _, saved := range slices.Backward(list) {
		if look := lookOfCheckpoint(saved.Path); look != nil {
			return look, nil
		}
	}
	return nil, err
}

// TrainedFocal is scene.TrainedFocal of the cameras that a model has beside it; 0 without.
func TrainedFocal(model string) (float64, error) {
	file := FindCameras(model, CamerasBeside[:1], false)
	if file == "" {
		return 0, nil
	}
	cams, _, err := inria.ReadCameras(file) // none with an error
	return scene.TrainedFocal(cams), err
}

// lookOfCheckpoint is nil of what is no checkpoint that can be read, and of a damaged one.
func lookOfCheckpoint(file string) *Look {
	c, err := checkpoint.Open(file)
	if err != nil {
		return nil
	}
	defer c.Close() // only read
	if c.Verify() != nil {
		return nil
	}
	return &Look{c.Header.Config.Background, c.Header.Config.Near}
}

// Take makes the settings of drawing those of training, where no flag says otherwise. If they are unknown, models
// of synthetic captures are taken to have been trained on white, as train does it.
func (l *Look) Take(config *pipeline.RenderConfig, given func(flag string) bool, synthetic bool) {
	if l == nil {
		l = &Look{}
		if synthetic {
			l.background = [3]float32{1, 1, 1}
		}
	}
	Adopt(given, "background", &config.Background, l.background)
	Adopt(given, "near", &config.Near, cmp.Or(l.near, config.Near))
}
