package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"vksplat/farm/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/pipeline"
)

// noBlock as blockFlag means all blocks.
const noBlock blockFlag = -1

// blockFlag is the number of a block, or noBlock.
type blockFlag int

func (f *blockFlag) Type() string { return "K" }

func (f *blockFlag) String() string {
	if *f == noBlock {
		return ""
	}
	return strconv.Itoa(int(*f))
}

// Set parses a number from 0 up.
func (f *blockFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fault.Usagef("blocks count from 0", "%q is no number of a block", s)
	}
	*f = blockFlag(n)
	return nil
}

// decidedByPlan are the flags of train that partition has decided, beside those that say how the capture is read.
var decidedByPlan = []string{"test-every", "test-list"}

// trainPlan trains one block of a plan, or all of them and merges.
func trainPlan(a *cli.Console, o *trainOptions, fs *pflag.FlagSet, dir string) error {
	plan, err := plans.Read(dir)
	if err != nil {
		return err
	}
	names := slices.Clone(decidedByPlan)
	for _, opt := range loadTable(&o.load) {
		if opt.name != "strict" {
			names = append(names, opt.name)
		}
	}
	for _, name := range names {
		if fs.Changed(name) {
			return fault.Usagef("give it to vksplat partition, which decides it for all blocks", "flag --%s: %s is a plan", name, dir)
		}
	}
	if o.eval && len(plan.HeldOut) == 0 {
		return fault.Usagef("make a plan with vksplat partition --eval, or leave --eval out", "flag --eval: the plan %s holds no photo out", dir)
	}
	if o.block == noBlock {
		return trainBlocks(a, o, plan)
	}
	if int(o.block) >= len(plan.Blocks) {
		return fault.Usagef(fmt.Sprintf("give 0 to %d", len(plan.Blocks)-1), "flag --block: %s has %s, and none of number %d", dir, cli.Count(len(plan.Blocks), "block"), o.block)
	}
	if err := o.checkpoints.check(); err != nil {
		return err
	}
	o.takeBlock(plan)
	_, err = runTrain(a, o, nil)
	return err
}

// ofPlan is the flag that wants a plan, "" without one.
func (o *trainOptions) ofPlan() string {
	switch {
	case o.block != noBlock:
		return "--block"
	case o.shareSteps:
		return "--share-steps"
	}
	return ""
}

// configOf is the configuration of a block's training.
func (o *trainOptions) configOf(plan *plans.Plan, k int) pipeline.Config {
	if !o.shareSteps {
		return o.config
	}
	return o.config.ForShare(plan.Share(k))
}

// takeBlock makes the options those of a block of the plan.
func (o *trainOptions) takeBlock(plan *plans.Plan) {
	o.divided, o.scene = plan, plan.Capture.Scene
	plan.Capture.Options(&o.load, func(string) bool { return false })
	o.config = o.configOf(plan, int(o.block))
	for _, g := range o.table() {
		for _, opt := range g.options {
			if opt.steps != nil && o.shareSteps {
				opt.steps.Scale(plan.Share(int(o.block)))
			}
		}
	}
	if o.out == "" {
		o.out = plan.BlockFolder(int(o.block))
	}
	if at := plan.Origin; o.origin == "auto" { // the same for all blocks
		o.origin = captured.OriginFlag(fmt.Sprintf("%g,%g,%g", at[0], at[1], at[2]))
	}
	o.checkpoints.off = o.dryRun
}

// trainBlocks trains what is left of the blocks one after the other, each in a process of its own, and merges them.
func trainBlocks(a *cli.Console, o *trainOptions, plan *plans.Plan) error {
	switch {
	case o.out != "":
		return fault.Usagef("leave it out: blocks go to "+plan.BlockFolder(0)+" and so on; or train one with --block", "flag --model-path: %s is a plan of several blocks", plan.Dir)
	case o.checkpoints.resume != "" && o.checkpoints.resume != resumeAuto:
		return fault.Usagef("leave it out: blocks that were begun are gone on with; or train one with --block", "flag --resume: %s is a plan of several blocks", plan.Dir)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	children := a
	if o.progress == meter.JSON || o.planJSON { // which is alone on standard output
		a = a.ToStderr()
	}
	if !o.dryRun {
		release, err := output.Claim(plan.Dir, true)
		if err != nil {
			return err
		}
		defer release()
		own := output.ReadWritten(filepath.Join(plan.Dir, plans.MergedFolder))
		if err := convert.RefuseExports(own, o.exports, "flag --export: ", true, o.checkpoints.overwrite); err != nil {
			return err
		}
	}
	ctx, stop := a.Interruptible(cli.Always("stopping this block once it has saved"))
	defer stop()
	flags := o.passedOn
	anew, again := o.checkpoints.overwrite && o.checkpoints.resume == "", "go on with the same command"
	if anew {
		again += " without --overwrite"
	} else if !o.dryRun {
		flags = append(flags, "--resume")
	}
	for k := range plan.Blocks {
		name := fmt.Sprintf("[%d/%d] block %d: ", k+1, len(plan.Blocks), k)
		config := o.configOf(plan, k)
		if st := trainedBlock(plan, k); st != nil && st.Step >= config.Iterations && !anew && !o.dryRun {
			if err := o.asTrained(k, st, config); err != nil && !o.checkpoints.accept {
				return err
			}
			a.Printf("%sdone before, %s\n", name, statsSummary(st))
			continue
		}
		a.Printf("%s%s, %s, %s\n", name, cli.Count(len(plan.Blocks[k].Cameras), "camera"), cli.Count(plan.Blocks[k].Points, "point"), cli.Count(config.Iterations, "step"))
		if err := runHere(children, ctx, program, append([]string{"train", plan.Dir, "--block=" + strconv.Itoa(k)}, flags...)); err != nil {
			if ctx.Err() != nil {
				return &fault.HintedError{Err: fmt.Errorf("%w in block %d of %d", fault.ErrInterrupted, k, len(plan.Blocks)), Hint: again}
			}
			return &fault.HintedError{Err: fmt.Errorf("train block %d of %s: %w", k, plan.Dir, err), Hint: "what went wrong is said above; put it right, and the same command goes on there"}
		}
	}
	if o.dryRun {
		return nil
	}
	return runMerge(a, ctx, &mergeOptions{plan: plan.Dir, exports: o.exports, check: true, device: o.device, claimed: true, overwrite: o.checkpoints.overwrite, resumes: true})
}

// asTrained refuses to join a block, which is done, with others that are trained otherwise. What a run chooses by its photos does not count.
func (o *trainOptions) asTrained(k int, st *output.Stats, config pipeline.Config) error {
	chosen := []string{"iterations"}
	if o.splatsFactor > 0 {
		chosen = append(chosen, "splats")
	}
	if !o.backgroundGiven {
		chosen = append(chosen, "background")
	}
	changes := slices.DeleteFunc(st.Config.Changes(config), func(c pipeline.Change) bool { return slices.Contains(chosen, c.Key) })
	if len(changes) == 0 {
		return nil
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return fault.Usagef("give the flags that the blocks were begun with, --overwrite to train all of them anew, or --accept-changes to take it as it is", "block %d was trained otherwise: %s", k, strings.Join(words, "; "))
}

// passedOnFlags are the flags that were given, for the training of a block.
func passedOnFlags(fs *pflag.FlagSet) (flags []string) {
	fs.Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"block", "model-path", "resume", "export"}, f.Name) {
			flags = append(flags, "--"+f.Name+"="+f.Value.String())
		}
	})
	return flags
}

// childError is a process of this program that failed and said why.
type childError struct{ code int }

func (e *childError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.code) }

// runHere runs this program with arguments, see child.Run. It prints where this process does.
func runHere(a *cli.Console, ctx context.Context, program string, args []string) error {
	var running atomic.Pointer[os.Process] // which ends with this process
	err := child.Run(ctx, program, args, child.Options{Stdout: outside(a.Stdout), Stderr: outside(a.Stderr), Running: &running})
	var ended *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return &childError{ended.ExitCode()}
	}
	return err
}

// outside is the file behind what is printed to, so that a terminal stays one for a child, or else the writer itself.
func outside(w io.Writer) io.Writer {
	if f, isFile := cli.FileOf(w); isFile {
		return f
	}
	return w
}

// trainedBlock returns what the last complete training of a block says, nil where there is none or its model is not there.
func trainedBlock(p *plans.Plan, k int) *output.Stats {
	data, err := os.ReadFile(filepath.Join(p.BlockFolder(k), output.StatsFile))
	st := &output.Stats{}
	if err != nil || json.Unmarshal(data, st) != nil || st.Interrupted || !output.IsFile(p.BlockModel(k, st.Step)) {
		return nil
	}
	return st
}

// statsSummary says what came of a training in a few words.
func statsSummary(s *output.Stats) string {
	words := []string{cli.Count(s.Step, "step"), cli.Count(s.Splats, "splat")}
	if s.Scores != nil {
		words = append(words, fmt.Sprintf("PSNR %.2f dB", s.PSNR))
	}
	return strings.Join(words, ", ")
}

// sourceFlags are those of train that read the capture so.
func sourceFlags(rec *captured.Source) []string {
	var load captured.Options
	plain := newTrainOptions().load
	rec.Options(&load, func(string) bool { return false })
	defaults := map[string]string{}
	for _, opt := range loadTable(&plain) {
		defaults[opt.name] = opt.value.String()
	}
	var list []string
	for _, opt := range loadTable(&load) {
		if text := opt.value.String(); text != defaults[opt.name] {
			list = append(list, "--"+opt.name+"="+text)
		}
	}
	return list
}
