package train

import (
	"fmt"

	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline/checkpoint"
)

// leftovers returns what of an earlier run is not this one's past and must not be mixed with it, but for checkpoints:
// files, and after them their folders. Viewers take the model of the highest step for the newest.
func (s *saver) leftovers() []string {
	return output.RunLeftovers(s.r.Out, s.after())
}

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
	whole := 0
	for _, f := range slices.Backward(list) {
		c, err := checkpoint.Open(f.Path)
		if err != nil {
			return fault.Usagef("move it away, replace it with "+fault.Setting("overwrite")+
				", or choose another folder", "%s is no whole checkpoint of this program", f.Path)
		}
		h := c.Header
		if err := c.Close(); err != nil {
			return err
		}
		if whole++; whole == 1 && h.Step < h.Config.Iterations {
			return fault.Usagef("continue with: "+s.r.Resumed(s.r.Options)+", start over with "+
				fault.Setting("overwrite")+", or choose another folder",
				"%s holds a run that stopped after step %d of %d", s.r.Out, h.Step, h.Config.Iterations)
		}
	}
	hint := "choose another folder, or replace it with " + fault.Setting("overwrite")
	if whole > 0 {
		hint = "choose another folder, replace it with " + fault.Setting("overwrite") + ", or train on with " +
			s.r.Resumed(s.r.Options) + " and more " + fault.Setting("iterations")
	}
	return output.RefuseFormer(s.r.Out, whole, hint)
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
