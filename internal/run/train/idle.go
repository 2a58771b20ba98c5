package train

import (
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
)

// need is what flags have no effect without.
type need struct {
	flags   string // names with spaces between them
	without string
	met     bool
}

// warnIdle warns of flags of the command line that change nothing. Keys of a configuration file are not looked at: --print-config writes all of them.
func (r *Run) warnIdle() {
	if r.Given == nil {
		return
	}
	var warned []string
	for _, n := range r.needs(r.Capture) {
		for _, flag := range strings.Fields(n.flags) {
			if !n.met && r.Given(flag) && !slices.Contains(warned, flag) {
				warned = append(warned, flag)
				r.warnLater(cli.NoEffect(flag, n.without))
			}
		}
	}
}

// warnSmall warns of a run that ends before photos are trained at their own size.
func (r *Run) warnSmall() {
	c := &r.Config
	if full := int64(c.NumDownscales) * int64(c.ResolutionSchedule); full > 0 && full >= int64(c.Iterations) {
		r.warnLater(fmt.Sprintf("training ends before it comes to photos of full size: step %d of %d (lower --resolution-schedule, it is %d, or --num-downscales)",
			full+1, c.Iterations, c.ResolutionSchedule))
	}
}

// warnBeyond warns of steps to do something at that never come.
func (r *Run) warnBeyond(flag string, at cli.Steps) {
	if i := slices.IndexFunc(at, func(s int) bool { return s > r.Config.Iterations }); i >= 0 {
		r.warnLater(fmt.Sprintf("--%s %d and what follows is beyond the last step, %d: it is left out", flag, at[i], r.Config.Iterations))
	}
}

// apart refuses to write among the files of the capture.
func (r *Run) apart() error {
	if r.Out == "" {
		return nil
	}
	return captured.RefuseInside(r.Out, "--model-path", r.Capture)
}
