package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// Options is everything that suite is asked for.
type Options struct {
	File   string
	DryRun bool
	Device pipeline.DeviceOptions

	DeviceFlags []string // of train, that were given
	Training    Training
}

func Run(console *cli.Console, o *Options) (err error) {
	plan, err := Read(o.File, o.Training)
	if err != nil {
		return err
	}
	runs, err := plan.Runs(o)
	if err != nil {
		return err
	}
	if o.DryRun {
		for _, r := range runs {
			console.Printf("vksplat %s\n", strings.Join(cli.QuotedAll(r.Train()), " "))
		}
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	release, err := output.Claim(plan.Out, true)
	if err != nil {
		return err
	}
	defer release()
	if err := plan.survey(runs); err != nil {
		return err
	}
	endList, err := plan.list()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endList()) }()
	console.OnAbort = release
	ctx, stop := console.Stoppable(cli.Always("stopping this run once it has saved"))
	defer stop()
	failed := 0
	for i, r := range runs {
		if err := doSuiteRun(console, ctx, program, fmt.Sprintf("[%d/%d] ", i+1, len(runs)), r); err != nil {
			if ctx.Err() != nil {
				err = fault.WithHint(fmt.Errorf("%w in run %d of %d", fault.ErrInterrupted, i+1, len(runs)),
					"continue with the same command")
				return errors.Join(err, plan.writeTables(runs))
			}
			failed++
			r.Error = err.Error()
			console.Warn(r.name() + ": " + r.Error)
		}
		if err := plan.writeTables(runs); err != nil {
			return err
		}
	}
	console.Printf("\n%s\ntables: %s and %s\n", plan.tables(runs), filepath.Join(plan.Out, suiteMarkdown),
		filepath.Join(plan.Out, suiteJSON))
	if failed > 0 {
		return fault.WithHint(fmt.Errorf("%d of %d runs failed", failed, len(runs)),
			"see the warnings above; fix them, then run the same command again to do the rest")
	}
	return nil
}

// suiteRun is one training of a suite, with what came of it.
type suiteRun struct {
	suiteLine
	plan     *Plan
	scene    string
	settings []string // flags of train that make the model what it is
	device   []string // flags that train and eval share
	testList string   // file of held-out photos, "" without one
	listHash string   // SHA-256 of that
	needs    string   // folder of reduced photos that there must be, "" for none

	record suiteRecord
}

// Train is the run's command line.
func (r *suiteRun) Train() []string {
	return append([]string{"train", r.scene, "-m", r.Out}, r.settings...)
}

// runFolder is where a run's output goes.
func (p *Plan) runFolder(capture, recipe string, seed int64) string {
	return filepath.Join(p.Out, capture, recipe, "seed_"+strconv.FormatInt(seed, 10))
}

// Runs lists the runs in order. All command lines are understood by then.
func (p *Plan) Runs(o *Options) (list []*suiteRun, _ error) {
	for _, c := range p.Captures {
		for _, recipe := range p.recipes {
			merged := map[string]string{}
			for _, s := range []map[string]string{p.settings, c.settings, p.sources[p.Source], recipe.settings} {
				maps.Copy(merged, s)
			}
			for _, seed := range p.Seeds {
				r := &suiteRun{plan: p, scene: c.path, device: o.DeviceFlags,
					suiteLine: suiteLine{Capture: c.name, Recipe: recipe.name, Seeds: []int64{seed}, Of: 1,
						Out: p.runFolder(c.name, recipe.name, seed), Numbers: numbers{}}}
				if r.testList = merged["test-list"]; r.testList != "" {
					delete(merged, "test-every") // of a preset: the list decides alone
				}
				var err error
				fixed := []string{cli.Switch("eval"), cli.Flag("seed", strconv.FormatInt(seed, 10))}
				if r.settings, err = p.training.Flags(fixed, merged); err != nil {
					return nil, p.wrong(fault.Hint(err), "%s: %w", r.name(), err)
				}
				if n := merged["downscale"]; p.Source == sourceReleased && n != "" && n != "1" && n != "auto" {
					r.needs = filepath.Join(c.path, "images_"+n)
				}
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// doSuiteRun does a run, or takes in what it made before.
func doSuiteRun(console *cli.Console, ctx context.Context, program, prefix string, r *suiteRun) error {
	if r.record.Trained && len(output.FormerModels(r.Out)) == 0 {
		console.Warn(r.name() + ": its model is gone from " + r.Out + ": training it again")
		r.record.Trained, r.record.Protocol = false, ""
	}
	if r.done() {
		if err := r.read(); err != nil {
			return err
		}
		console.Printf("%s%s: done before, %s\n", prefix, r.name(), r.summary())
		return nil
	}
	if r.record.Attempts > 0 {
		prefix += "resuming "
	}
	console.Printf("%s%s: its output is in %s\n", prefix, r.name(), r.logFile())
	if err := r.do(ctx, program); err != nil {
		return err
	}
	console.Printf("%s%s: %s\n", strings.Repeat(" ", len(prefix)), r.name(), r.summary())
	return nil
}
