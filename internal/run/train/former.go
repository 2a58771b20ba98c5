package train

import (
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline/checkpoint"
)

// headerOf reads the header of a checkpoint.
func headerOf(path string) (*checkpoint.Header, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	return &c.Header, c.Close()
}

// stoppedBefore is the error of a folder whose newest checkpoint is that of a run that stopped before its last step.
func stoppedBefore(o *Options, h *checkpoint.Header) error {
	return fault.Usagef("continue with: "+o.Resumed(o)+", start over with "+fault.Setting("overwrite")+
		", or choose another folder", "%s holds a run that stopped after step %d of %d", o.Out, h.Step,
		h.Config.Iterations)
}

// RefuseStopped refuses to replace a run in OUT that stopped before its last step.
func (o *Options) RefuseStopped() error {
	list, err := output.ListCheckpoints(filepath.Join(o.Out, output.CheckpointFolder))
	if err != nil || o.Checkpoints.Overwrite {
		return err
	}
	for _, f := range slices.Backward(list) {
		h, err := headerOf(f.Path)
		if err != nil {
			continue // it is not whole: the one before it counts
		}
		if h.Step >= h.Config.Iterations {
			return nil
		}
		return stoppedBefore(o, h)
	}
	return nil
}
