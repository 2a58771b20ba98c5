package main

import (
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/initial"
)

// need is what flags have no effect without.
type need struct {
	flags   string // names with spaces between them
	without string
	met     bool
}

// needs lists the flags whose effect depends on other settings, or on what the capture holds.
func (o *trainOptions) needs(c *scene.Capture) []need {
	mcmc := o.config.Strategy == pipeline.StrategyMCMC
	cube := c.Synthetic && o.init.Kind == initial.InitAuto && len(c.Points) == 0
	masked := slices.ContainsFunc(c.Cameras, func(cam scene.Camera) bool { return cam.Mask != "" })
	return []need{
		{"test-every", "--eval", o.eval},
		{"model", "a capture of COLMAP", c.Format == scene.FormatColmap},
		{"invert-masks", "masks, and none is found", masked},
		{"undo-applied-transform", "an applied_transform in transforms.json", c.Applied != nil},
		{"sh-degree-interval lr-shn", "--sh-degree above 0", o.config.SHDegree > 0},
		{"resolution-schedule", "--num-downscales above 0", o.config.NumDownscales > 0},
		{"splats-factor", "--splats 0", o.config.Splats == 0},
		{"init-points", "--init random", o.init.Kind == initial.InitRandom || cube},
		{"refine-start refine-stop absgrad grow-grad2d grow-scale grow-factor prune-opacity prune-scale revised-opacity reset-every reset-opacity", "--refine-every above 0", o.config.RefineEvery > 0},
		{"grow-grad2d grow-scale prune-scale revised-opacity", "--strategy default", !mcmc},
		{"grow-factor noise-lr", "--strategy mcmc", mcmc},
		{"reset-opacity", "--reset-every above 0", o.config.ResetEvery > 0},
		{"exposure-reg lr-exposure lr-exposure-final", "--exposure", o.config.Exposure},
		{"image-cache-size", "--image-cache", o.imageCache != ""},
	}
}

// warnIdle warns of flags of the command line that change nothing. Keys of a configuration file are not looked at: --print-config writes all of them.
func (r *trainRun) warnIdle() {
	if r.given == nil {
		return
	}
	var warned []string
	for _, n := range r.needs(r.capture) {
		for _, flag := range strings.Fields(n.flags) {
			if !n.met && r.given(flag) && !slices.Contains(warned, flag) {
				warned = append(warned, flag)
				r.warnLater(cli.NoEffect(flag, n.without))
			}
		}
	}
}

// warnSmall warns of a run that ends before photos are trained at their own size.
func (r *trainRun) warnSmall() {
	c := &r.config
	if full := int64(c.NumDownscales) * int64(c.ResolutionSchedule); full > 0 && full >= int64(c.Iterations) {
		r.warnLater(fmt.Sprintf("training ends before it comes to photos of full size: step %d of %d (lower --resolution-schedule, it is %d, or --num-downscales)",
			full+1, c.Iterations, c.ResolutionSchedule))
	}
}

// warnBeyond warns of steps to do something at that never come.
func (r *trainRun) warnBeyond(flag string, at cli.Steps) {
	if i := slices.IndexFunc(at, func(s int) bool { return s > r.config.Iterations }); i >= 0 {
		r.warnLater(fmt.Sprintf("--%s %d and what follows is beyond the last step, %d: it is left out", flag, at[i], r.config.Iterations))
	}
}

// apart refuses to write among the files of the capture.
func (r *trainRun) apart() error {
	if r.out == "" {
		return nil
	}
	return captured.RefuseInside(r.out, "--model-path", r.capture)
}
