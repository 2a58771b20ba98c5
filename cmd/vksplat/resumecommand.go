package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/train"
)

// resumeFirst are the flags that resume --help shows.
var resumeFirst = []string{"capture", "iterations", "accept-changes", "export", "viewer", "device", "max-vram",
	"max-ram", "dry-run"}

// resumeCommand is train with --resume, without the words that the run's own record has.
func resumeCommand(console *cli.Console) *cobra.Command {
	o, scene := trainingFor(console), ""
	o.Again = func(changes ...train.Change) string {
		return commandAgain(console.Args, slices.DeleteFunc(changes, func(c train.Change) bool {
			return c.Setting == "resume" // which the command does by itself
		}))
	}
	cmd := &cobra.Command{
		Use:   "resume OUT",
		Short: "Continue a training that was stopped, or train on",
		Long: "Continue the training in OUT with its own settings, from its newest checkpoint. The model\n" +
			"has the bytes of a run that was never stopped.\n\n" +
			"OUT is the folder of a run, or a plan that vksplat partition wrote. Photos, recipe, exports\n" +
			"and what else the run was begun with need not be given again; what belongs to the machine\n" +
			"(--device, --max-vram, --max-ram, --image-cache) or only shows the run (--viewer,\n" +
			"--preview) is. A run that was stopped before its first checkpoint begins once more. More\n" +
			"--iterations train a finished run on; other settings than the run's need --accept-changes.\n" +
			"vksplat train SCENE -m OUT --resume does the same for scripts, and starts from scratch if\n" +
			"OUT is empty.",
		Example: "  vksplat resume out\n" +
			"  vksplat resume out --iterations 30000\n" +
			"  vksplat resume out --capture /new/place/of/my_scene",
		Args: one("OUT folder"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	table := dropOptions(trainTable(o), "model-path", "block", "share-steps", "resume", "print-config")
	table[0].options = append([]option{text(&scene, "capture",
		"read the photos from `SCENE` (default: where they were)").flagOnly().isFolder()}, table[0].options...)
	find(table, "iterations").help = "train to step `N` (default: the run's last)"
	find(table, "accept-changes").help = "accept changed settings or photos, and continue with the new ones"
	fs := cmd.Flags()
	addFlags(console, cmd, table, helpLayout{first: resumeFirst})
	o.Given = fs.Changed
	cmd.RunE = runs(console, func(args []string) error {
		o.PassedOn = passedOnFlags(fs)
		if err := resolveSettings(o, fs.Changed); err != nil {
			return err
		}
		return goOn(console, o, fs, args[0], scene)
	})
	return cmd
}

// goOn continues the run, or the blocks of the plan, in out.
func goOn(console *cli.Console, o *train.Options, fs *pflag.FlagSet, out, scene string) error {
	if plans.IsPlan(out) {
		if scene != "" {
			return fault.Usagef("make the plan anew with vksplat partition", "flag --capture: %s is a plan, which says "+
				"where its photos are", out)
		}
		o.Checkpoints.Resume = train.ResumeAuto
		return trainPlan(console, o, fs, out)
	}
	if err := o.GoOn(out, scene); err != nil {
		return err
	}
	o.Checkpoints.Off = o.DryRun
	_, err := train.Do(console, o, nil)
	return err
}
