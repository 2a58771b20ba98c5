package train

import (
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline"
)

// sight looks for a model that no photo sees, which learns nothing. If no photo has ever seen it, the run ends; if the
// model was lost later, it warns once.
type sight struct {
	o       *Options
	warn    func(text string)
	photos  int          // that are trained on
	from    int          // the step that the run began after
	unseen  int          // steps in a row in whose view no splat was visible
	lost    bool         // it has warned
	visited map[int]bool // views trained on while none of them has shown a splat; nil once one has
}

// step returns an error where the run has to end.
func (s *sight) step(p *pipeline.Progress) error {
	if p.Visible > 0 {
		s.unseen, s.visited = 0, nil
		return nil
	}
	s.unseen++
	// So many steps in a row contain a whole round of the photos, whichever step they begin with and whichever photos
	// cannot be decoded.
	round := s.unseen >= 2*s.photos
	if s.visited != nil {
		if s.visited[p.View] = true; round || len(s.visited) == s.photos {
			return &fault.Error{Op: "train", Path: s.o.Scene, Hint: s.causes(),
				Err: fmt.Errorf("no splat is visible in any of the %s trained on: nothing can be learnt",
					cli.Count(s.photos, "photo"))}
		}
	}
	if !s.lost && (round || p.Step == s.o.Config.Iterations && s.unseen == p.Step-s.from) {
		s.lost = true
		s.warn(fmt.Sprintf("no splat is visible in any photo, for %s now: nothing is learnt; %s",
			cli.Count(s.unseen, "step"), s.causes()))
	}
	return nil
}

func (s *sight) causes() string {
	return fmt.Sprintf("check %s (it is %g, the median camera distance 1), %s, and with vksplat inspect whether poses "+
		"and points match", fault.Setting("near"), s.o.Config.Near, fault.Setting("init"))
}
