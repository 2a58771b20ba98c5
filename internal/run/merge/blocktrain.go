package merge

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/itself"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/train"
)

// TrainBlocks trains what is left of the blocks one after the other, each in a process of its own, and merges them.
func TrainBlocks(console *cli.Console, o *train.Options, plan *plans.Plan) error {
	if err := o.OfOneBlock(plan); err != nil {
		return err
	}
	children := console
	if o.Progress == meter.JSON || o.PlanJSON { // which is alone on standard output
		console = console.ToStderr()
	}
	if !o.DryRun {
		release, err := output.Claim(plan.Dir, true)
		if err != nil {
			return err
		}
		defer release()
		own := output.ReadWritten(filepath.Join(plan.Dir, plans.MergedFolder))
		if err := convert.RefuseExports(own, o.Exports, "export", true, o.Checkpoints.Overwrite); err != nil {
			return err
		}
	}
	ctx, stop := console.Interruptible(cli.Always("stopping this block once it has saved"))
	defer stop()
	flags := o.PassedOn
	anew, again := o.Checkpoints.Overwrite && o.Checkpoints.Resume == "", "continue with the same command"
	if anew {
		again += " without " + fault.Setting("overwrite")
	} else if !o.DryRun {
		flags = append(flags, cli.Switch("resume"))
	}
	for k := range plan.Blocks {
		name := fmt.Sprintf("[%d/%d] block %d: ", k+1, len(plan.Blocks), k)
		config := o.ConfigOf(plan, k)
		if st := trainedBlock(plan, k); st != nil && isDone(o, st, config.Iterations) && !anew && !o.DryRun {
			if err := o.AsTrained(k, st, config); err != nil && !o.Checkpoints.Accept {
				return err
			}
			console.Printf("%sdone before, %s\n", name, statsSummary(st))
			continue
		}
		console.Printf("%s%s\n", name, blockSummary(o, plan, k, config.Iterations))
		if err := itself.Run(children, ctx,
			append([]string{"train", plan.Dir, cli.Flag("block", strconv.Itoa(k))}, flags...)); err != nil {
			if ctx.Err() != nil {
				return fault.WithHint(fmt.Errorf("%w in block %d of %d", fault.ErrInterrupted, k, len(plan.Blocks)),
					again)
			}
			return fault.WithHint(fmt.Errorf("train block %d of %s: %w", k, plan.Dir, err),
				"fix the error above, then run the same command again to continue")
		}
	}
	if o.DryRun {
		return nil
	}
	return Run(console, ctx, &Options{Plan: plan.Dir, Exports: o.Exports, Check: true, Device: o.Device, claimed: true,
		Overwrite: o.Checkpoints.Overwrite, resumes: true})
}

// trainedBlock returns what the last complete training of a block says, nil where there is none or its model is not
// there.
func trainedBlock(p *plans.Plan, k int) *output.Stats {
	st := output.ReadStats(p.BlockFolder(k))
	if st == nil || st.Interrupted || !output.IsFile(p.BlockModel(k, st.Step)) {
		return nil
	}
	return st
}

// isDone reports whether a block has all of its steps: those asked for, or those that it chose by its photos.
func isDone(o *train.Options, st *output.Stats, steps int) bool {
	if o.IterationsFactor > 0 { // a run that is resumed keeps its number
		steps = st.Config.Iterations
	}
	return st.Step >= steps
}

// blockSummary says what a block is trained on and, unless its photos decide it, in how many steps.
func blockSummary(o *train.Options, p *plans.Plan, k, steps int) string {
	text := cli.Count(len(p.Blocks[k].Cameras), "camera") + ", " + cli.Count(p.Blocks[k].Points, "point")
	if o.IterationsFactor == 0 {
		text += ", " + cli.Count(steps, "step")
	}
	return text
}

// statsSummary says what came of a training in a few words.
func statsSummary(s *output.Stats) string {
	words := []string{cli.Count(s.Step, "step"), cli.Count(s.Splats, "splat")}
	if s.Scores != nil {
		words = append(words, fmt.Sprintf("PSNR %.2f dB", s.PSNR))
	}
	return strings.Join(words, ", ")
}
