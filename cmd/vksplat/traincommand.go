package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/live"
	"vksplat/internal/run/merge"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/train"
	"vksplat/scene/load"
	"vksplat/scene/photo"
)

// decidedByPlan are the flags of train that partition has decided, beside those that say how the capture is read.
var decidedByPlan = []string{"test-every", "test-list"}

// trainPlan trains one block of a plan, or all of them and merges.
func trainPlan(console *cli.Console, o *train.Options, fs *pflag.FlagSet, dir string) error {
	plan, err := plans.Read(dir)
	if err != nil {
		return err
	}
	names := slices.Clone(decidedByPlan)
	for _, opt := range loadTable(&o.Load) {
		if opt.name != "strict" {
			names = append(names, opt.name)
		}
	}
	for _, name := range names {
		if fs.Changed(name) {
			return fault.Usagef("give it to vksplat partition, which decides it for all blocks",
				"flag --%s: %s is a plan", name, dir)
		}
	}
	if o.Eval && len(plan.HeldOut) == 0 {
		return fault.Usagef("make a plan with vksplat partition --eval, or leave --eval out",
			"flag --eval: the plan %s holds no photo out", dir)
	}
	if o.Config.RefineCameras {
		return fault.Usagef("refine those of the whole capture, and give OUT/sparse/0 of that run to vksplat partition "+
			"--cameras", "flag --refine-cameras: %s is a plan, and each block would move its photos independently", dir)
	}
	if o.Block == plans.NoBlock {
		return merge.TrainBlocks(console, o, plan)
	}
	if int(o.Block) >= len(plan.Blocks) {
		return fault.Usagef(fmt.Sprintf("give 0 to %d", len(plan.Blocks)-1),
			"flag --block: %s has %s, and none of number %d", dir, cli.Count(len(plan.Blocks), "block"), o.Block)
	}
	o.SetBlock(plan)
	o.Checkpoints.Off = o.DryRun && o.Checkpoints.Resume == "" // one that goes on compares the photos
	_, err = train.Do(console, o)
	return err
}

// passedOnFlags are the flags that were given, for the training of a block, or of what was inspected.
func passedOnFlags(fs *pflag.FlagSet) (flags []string) {
	fs.Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"block", "model-path", "resume", "export", "photos", "json", "quick", "picture"},
			f.Name) {
			flags = append(flags, "--"+f.Name+"="+f.Value.String())
		}
	})
	return flags
}

func trainCommand(console *cli.Console) *cobra.Command {
	o := trainingFor(console)
	cmd := &cobra.Command{
		Use:   "train SCENE -m OUT",
		Short: "Train a model from photographs",
		Long: "Train a model from the photos of SCENE: a folder that vksplat capture, COLMAP,\n" +
			"nerfstudio or another program made (docs/capture.md lists eleven), or photos or a video\n" +
			"whose cameras are not known yet. Ctrl-C saves and stops; vksplat resume continues.\n\n" +
			"The model is point_cloud/iteration_N/point_cloud.ply in OUT. With --eval, OUT also gets\n" +
			"the scores and pictures of the held-out photos. Ctrl-C finishes the step, saves and\n" +
			"measures; a second Ctrl-C, half a second later or more, aborts and saves nothing. SCENE\n" +
			"may also be a plan that vksplat partition wrote: its blocks are trained one after the\n" +
			"other and merged. For a video or a folder of photos, vksplat capture first makes a scene\n" +
			"in OUT/capture.",
		Example: "  vksplat train my_scene -m out --eval\n" +
			"  vksplat train my_scene -m out --time-limit 60s --export model.spz",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.PrintConfig && len(args) == 0 {
				return nil
			}
			return one("SCENE folder")(cmd, args)
		},
		ValidArgsFunction: oneFolder,
	}
	layout := helpLayout{trainFirst, presetHelp}
	return newCommand(console, cmd, trainTable(o), layout, func(fs *pflag.FlagSet, args []string) error {
		o.PassedOn = passedOnFlags(fs) // before --steps-scaler changes them
		if err := resolveSettings(o, fs); err != nil {
			return err
		}
		if o.PrintConfig {
			return printConfig(console, o, args)
		}
		if plans.IsPlan(args[0]) {
			return trainPlan(console, o, fs, args[0])
		}
		return trainScene(console, o, args[0])
	})
}

// printConfig prints the settings, with the numbers that follow the capture where one is named.
func printConfig(console *cli.Console, o *train.Options, args []string) error {
	said := ""
	if len(args) > 0 && !plans.IsPlan(args[0]) {
		var err error
		if said, err = o.Choose(args[0]); err != nil {
			return err
		}
	}
	printSettings(console, o, said)
	return nil
}

// trainScene trains a capture.
func trainScene(console *cli.Console, o *train.Options, scene string) error {
	if flag := o.OfPlan(); flag != "" {
		return fault.Usagef("make one with vksplat partition, and name its folder", "flag --%s: %s is not a plan", flag,
			scene)
	}
	if o.Out == "" && (!o.DryRun || o.Checkpoints.Resume != "") {
		if !output.IsFolder(scene) { // perhaps a plan, which needs none
			return fault.Usagef("check the spelling of "+scene,
				"no output folder: -m is required; and there is no folder %s", scene)
		}
		return fault.Usagef("name the folder to write, as in: vksplat train SCENE -m OUT",
			"no output folder: -m is required")
	}
	// programs that show progress themselves, as the farm, give scenes
	programs := o.Progress == meter.JSON || o.Progress == meter.None && child.Reports()
	if load.IsFootage(scene) && o.Out != "" && !programs {
		if o.DryRun {
			return fault.Usagef("make it first: vksplat capture "+photo.ShellWord(scene)+" -o SCENE",
				"plan %s: its cameras are not known yet, and finding them writes files", scene)
		}
		return trainFootage(console, o, scene)
	}
	o.Scene = scene
	o.Checkpoints.Off = o.DryRun && o.Checkpoints.Resume == "" // one that goes on compares the photos
	_, err := train.Do(console, o)
	return err
}

// trainFootage makes a scene of photos or a video in the folder of the run, or the part of it that is missing, and
// trains on it.
func trainFootage(console *cli.Console, o *train.Options, footage string) error {
	// sooner than after the search for cameras, which replaces those of an earlier run
	if err := cmp.Or(o.Check(), o.Protect()); err != nil {
		return err
	}
	if err := output.RefusePlace(o.Out, "model-path", append(output.RunMarks, captured.OwnFolder)...); err != nil {
		return err
	}
	c := capture.NewOptions()
	c.Inputs, c.Out, c.Trained = []string{footage}, filepath.Join(o.Out, captured.OwnFolder), true
	c.Again, c.Device, c.Progress = commandAgain(console.Args, nil), o.Device, o.Progress
	return watchedSearch(console, c, &o.Viewer, func(s *live.Search) error {
		if err := capture.Run(console, c); err != nil {
			return err
		}
		if s != nil {
			o.Observers = []func(*train.Options, *cli.Console) (train.Observer, error){s.Train}
		}
		o.Begun, o.Scene = time.Now(), c.Out // finding cameras takes what it takes
		_, err := train.Do(console, o)
		return err
	})
}
