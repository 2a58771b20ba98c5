package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene/results"
)

// suiteOptions is everything that suite is asked for.
type suiteOptions struct {
	file   string
	dryRun bool
	device pipeline.DeviceOptions

	deviceFlags []string // of train, that were given
	training    suiteTraining
}

func suiteCommand(a *cli.Console) *cobra.Command {
	o := &suiteOptions{training: settingsForSuite()}
	cmd := &cobra.Command{
		Use:   "suite FILE.toml",
		Short: "Train and measure many captures, and make the table",
		Long: "Train every capture of FILE.toml by every recipe with every seed, measure the models,\n" +
			"and write the tables of a paper: quality, seconds, memory, number of splats. Each run\n" +
			"is a process of its own. Runs that are done are kept; the same command goes on with\n" +
			"one that was stopped or killed. A run that fails is told of, and the others go on.\n" +
			"suite.md and suite.json are written anew after each run.\n\n" +
			"Presets name the captures of benchmarks whose data you have: " + strings.Join(suitePresetNames(), ",\n") + ".\n" +
			"docs/eval.md shows such files.",
		Example: "  vksplat suite mipnerf360.toml --dry-run\n  vksplat suite mipnerf360.toml",
		Args:    one("FILE.toml"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	table := []optionGroup{{options: append([]option{truth(&o.dryRun, "dry-run", "print the command of every run, and stop")}, deviceOptions(&o.device)...)}}
	fs := cmd.Flags()
	register(fs, table)
	offerValues(a, cmd, table)
	cmd.RunE = runs(a, func(args []string) error {
		o.file = args[0]
		for _, opt := range deviceOptions(&o.device) {
			if fs.Changed(opt.name) {
				o.deviceFlags = append(o.deviceFlags, "--"+opt.name+"="+opt.value.String())
			}
		}
		return runSuite(a, o)
	})
	return cmd
}

// runSuite does all runs of a file.
func runSuite(a *cli.Console, o *suiteOptions) (err error) {
	plan, err := readSuite(o.file, o.training)
	if err != nil {
		return err
	}
	runs, err := plan.runs(o)
	if err != nil {
		return err
	}
	if o.dryRun {
		for _, r := range runs {
			a.Printf("vksplat %s\n", strings.Join(cli.QuotedAll(r.train()), " "))
		}
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	release, err := output.Claim(plan.out, true)
	if err != nil {
		return err
	}
	defer release()
	if err := plan.survey(runs); err != nil {
		return err
	}
	endList, err := plan.list(runs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endList()) }()
	a.OnAbort = cli.Both(release, plan.killChild)
	ctx, stop := a.Stoppable(cli.Always("stopping this run once it has saved"))
	defer stop()
	failed := 0
	for i, r := range runs {
		if err := doSuiteRun(a, ctx, program, fmt.Sprintf("[%d/%d] ", i+1, len(runs)), r); err != nil {
			if ctx.Err() != nil {
				err = &fault.HintedError{Err: fmt.Errorf("%w in run %d of %d", fault.ErrInterrupted, i+1, len(runs)), Hint: "go on with the same command"}
				return errors.Join(err, plan.writeTables(runs))
			}
			failed++
			r.failure = err.Error()
			a.Warn(r.name() + ": " + r.failure)
		}
		if err := plan.writeTables(runs); err != nil {
			return err
		}
	}
	a.Printf("\n%s\ntables: %s and %s\n", plan.tables(runs), filepath.Join(plan.out, suiteMarkdown), filepath.Join(plan.out, suiteJSON))
	if failed > 0 {
		return &fault.HintedError{Err: fmt.Errorf("%d of %d runs failed", failed, len(runs)), Hint: "the warnings above say why; put that right, and the same command does what is left"}
	}
	return nil
}

// suiteRun is one training of a suite, with what came of it.
type suiteRun struct {
	plan     *suitePlan
	capture  string
	recipe   string
	seed     uint64
	scene    string
	out      string
	settings []string // flags of train that make the model what it is
	device   []string // flags that train and eval share
	needs    string   // folder of reduced photos that there must be, "" for none

	record  suiteRecord
	stats   *output.Stats // nil until the run is done
	scores  []results.Score
	drawn   *results.Drawn // what decides them beside the model's file
	failure string         // why it is not done
}

// train is the run's command line.
func (r *suiteRun) train() []string {
	return append([]string{"train", r.scene, "-m", r.out}, r.settings...)
}

// name is what messages call the run.
func (r *suiteRun) name() string { return runName(r.capture, r.recipe, r.seed) }

func runName(capture, recipe string, seed uint64) string {
	return fmt.Sprintf("%s, %s, seed %d", capture, recipe, seed)
}

// runFolder is where a run's output goes.
func (p *suitePlan) runFolder(capture, recipe string, seed uint64) string {
	return filepath.Join(p.out, capture, recipe, "seed_"+strconv.FormatUint(seed, 10))
}

// runs lists the runs in order. All command lines are understood by then.
func (p *suitePlan) runs(o *suiteOptions) (list []*suiteRun, _ error) {
	for _, c := range p.captures {
		for _, recipe := range p.recipes {
			merged := map[string]string{}
			for _, s := range []map[string]string{p.settings, c.settings, p.sources[p.source], recipe.settings} {
				maps.Copy(merged, s)
			}
			for _, seed := range p.seeds {
				r := &suiteRun{plan: p, capture: c.name, recipe: recipe.name, seed: seed, scene: c.path, device: o.deviceFlags,
					out: p.runFolder(c.name, recipe.name, seed)}
				if err := r.command(merged); err != nil {
					return nil, err
				}
				if n := merged["downscale"]; p.source == sourceReleased && n != "" && n != "1" && n != "auto" {
					r.needs = filepath.Join(c.path, "images_"+n)
				}
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// command makes the flags of train of settings, and checks them as train does.
func (r *suiteRun) command(merged map[string]string) (err error) {
	r.settings, err = r.plan.training.flags([]string{"--eval", "--seed=" + strconv.FormatUint(r.seed, 10)}, merged)
	if err != nil {
		return r.plan.wrong(remedy.Of(err), "%s: %w", r.name(), err)
	}
	return nil
}

// doSuiteRun does a run, or takes in what it made before.
func doSuiteRun(a *cli.Console, ctx context.Context, program, prefix string, r *suiteRun) error {
	if r.missesModel() {
		a.Warn(r.name() + ": its model is gone from " + r.out + ": training it again")
		r.record.Trained, r.record.Protocol = false, ""
	}
	if r.done() {
		if err := r.read(); err != nil {
			return err
		}
		a.Printf("%s%s: done before, %s\n", prefix, r.name(), r.summary())
		return nil
	}
	if r.record.Attempts > 0 {
		prefix += "going on with "
	}
	a.Printf("%s%s: its output is in %s\n", prefix, r.name(), r.logFile())
	if err := r.do(ctx, program); err != nil {
		return err
	}
	a.Printf("%s%s: %s\n", strings.Repeat(" ", len(prefix)), r.name(), r.summary())
	return nil
}
