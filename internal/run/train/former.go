package train

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline/checkpoint"
)

// after is the step of an earlier run in OUT that this one goes on with; -1: it does not.
func (s *saver) after() int {
	if s.ownPast() {
		return s.from.Header.Step
	}
	return -1
}

// ownPast reports whether the run goes on with a checkpoint of its own folder.
func (s *saver) ownPast() bool { return s.from != nil && output.InFolder(s.from.Path(), s.dir) }

// protect refuses to lose what an earlier run left.
func (s *saver) protect(list []output.CheckpointFile) error {
	if s.o.Overwrite || s.o.Demo {
		return nil
	}
	for i, f := range slices.Backward(list) {
		h, err := headerOf(f.Path)
		if err != nil {
			return fault.Usagef("move it away, replace it with "+fault.Setting("overwrite")+
				", or choose another folder", "%s is no whole checkpoint of this program", f.Path)
		}
		if i == len(list)-1 && h.Step < h.Config.Iterations {
			return s.r.stoppedBefore(h)
		}
	}
	hint := "choose another folder, or replace it with " + fault.Setting("overwrite")
	if len(list) > 0 {
		hint = "choose another folder, replace it with " + fault.Setting("overwrite") + ", or train on with " +
			s.r.Resumed(s.r.Options) + " and more " + fault.Setting("iterations")
	}
	return output.RefuseFormer(s.r.Out, len(list), hint)
}

// headerOf reads the header of a checkpoint.
func headerOf(path string) (*checkpoint.Header, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	return &c.Header, c.Close()
}

// stoppedBefore is the error of a folder whose newest checkpoint is that of a run that stopped before its last step.
func (o *Options) stoppedBefore(h *checkpoint.Header) error {
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
		return o.stoppedBefore(h)
	}
	return nil
}

// dropDemoPicture removes the picture of a demo that was resumed: it shows the model before that.
func (s *saver) dropDemoPicture() {
	path := filepath.Join(s.r.Out, output.DemoPicture)
	if s.ownPast() && s.r.Trainer.Step() > s.from.Header.Step && s.own.Owns(path) {
		_ = os.Remove(path) // a leftover does no harm
	}
}

// startOver notes, with the first step or write of a run, what it was begun with, and drops the lines of metrics.jsonl
// that are not its past.
func (s *saver) startOver() {
	if !s.noted {
		s.noted = true
		if err := s.rememberBegun(); err != nil {
			s.r.Console.Warn(fmt.Sprintf("resuming before the first checkpoint will need the same command line: %v",
				err))
		}
	}
	if s.r.rec != nil {
		s.r.rec.startOver()
	}
}
