package train

import (
	"fmt"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
)

// need is what a flag has no effect without.
type need struct {
	flag    string // its name
	without string
	met     bool
}

// warnIdle warns of flags of the command line that change nothing. Keys of a configuration file are not looked at:
// --print-config writes all of them.
func (r *Run) warnIdle() {
	if r.Given == nil {
		return
	}
	var warned []string
	for _, n := range r.needs(r.Capture) {
		if !n.met && r.Given(n.flag) && !slices.Contains(warned, n.flag) {
			warned = append(warned, n.flag)
			r.warnLater(cli.NoEffect(n.flag, n.without))
		}
	}
}

// warnSchedule warns of a schedule that leaves something out.
func (r *Run) warnSchedule() {
	if !r.limitChooses() { // else the steps are those that fit
		r.warnSmall()
	}
	r.warnStill()
	r.warnUnlearnt()
	r.warnBeyond("eval-at", r.EvalAt)
	r.warnBeyond("save-at", r.Checkpoints.SaveAt)
}

// warnSmall warns of a run that ends before photos are trained at their own size.
func (r *Run) warnSmall() {
	c := &r.Config
	if full := int64(c.NumDownscales) * int64(c.ResolutionSchedule); full > 0 && full >= int64(c.Iterations) {
		r.warnLater(fmt.Sprintf("training ends before it comes to photos of full size: step %d of %d "+
			"(lower %s, it is %d, or %s)", full+1, c.Iterations, fault.Setting("resolution-schedule"),
			c.ResolutionSchedule, fault.Setting("num-downscales")))
	}
}

// warnStill warns of a run whose refinement ends before it begins. Without any it is meant: refine-stop is 0.
func (r *Run) warnStill() {
	c := &r.Config
	if c.RefineEvery <= 0 || c.RefineStop <= 0 {
		return
	}
	if first := (c.RefineStart/c.RefineEvery + 1) * c.RefineEvery; first >= c.RefineStop {
		r.warnLater(fmt.Sprintf("the model is never refined: no multiple of %s (%d) is above %s (%d) and below %s (%d)",
			fault.Setting("refine-every"), c.RefineEvery, fault.Setting("refine-start"), c.RefineStart,
			fault.Setting("refine-stop"), c.RefineStop))
	}
}

// warnUnlearnt warns of a run that ends before it begins to learn the colours of photos.
func (r *Run) warnUnlearnt() {
	c := &r.Config
	if (c.Exposure || c.WhiteBalance || c.Vignetting) && c.AppearanceStart >= c.Iterations {
		r.warnLater(fmt.Sprintf("neither exposure, white balance nor vignetting is learnt: training ends with step %d "+
			"(lower %s, it is %d)", c.Iterations, fault.Setting("appearance-start"), c.AppearanceStart))
	}
}

// warnBeyond warns of steps to do something at that never come.
func (r *Run) warnBeyond(flag string, at cli.Steps) {
	if i := slices.IndexFunc(at, func(s int) bool { return s > r.Config.Iterations }); i >= 0 {
		r.warnLater(fmt.Sprintf("%s %d and what follows is beyond the last step, %d: it is left out",
			fault.Setting(flag), at[i], r.Config.Iterations))
	}
}

// apart refuses to write among the files of the capture.
func (r *Run) apart() error {
	if r.Out == "" {
		return nil
	}
	return captured.RefuseInside(r.Out, "model-path", r.Capture)
}
