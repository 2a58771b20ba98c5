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

// ofTheCall are flags of resume that a run's record says nothing of. The defaults of the others are the run's.
var ofTheCall = []string{"capture", "time-limit", "config", "device", "devices", "max-vram", "max-ram", "image-cache",
	"image-cache-size", "photo-ram", "photo-vram", "progress", "viewer", "host", "tls-cert", "tls-key", "preview",
	"preview-every"}

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
		Short: "Continue a stopped training, or train further",
		Long: "Continue the training in OUT with its own settings, from its newest checkpoint. The model is\n" +
			"byte for byte that of a run that was never stopped.\n\n" +
			"Photos, recipe, exports and the other flags of the run need not be given again, except those\n" +
			"of the machine (--device, --max-vram, --max-ram, --image-cache) and of display (--viewer,\n" +
			"--preview). A run that stopped before its first checkpoint starts from scratch. More\n" +
			"--iterations train a finished run further; changing other settings requires\n" +
			"--accept-changes. vksplat train SCENE -m OUT --resume does the same for scripts, and starts\n" +
			"from scratch if OUT is empty.",
		Example: "  vksplat resume out\n" +
			"  vksplat resume out --iterations 30000\n" +
			"  vksplat resume out --capture /new/place/of/my_scene",
		Args:              one("OUT folder"),
		ValidArgsFunction: oneFolder,
	}
	table := dropOptions(trainTable(o), "model-path", "block", "share-steps", "resume", "print-config")
	table[0].options = append([]option{text(&scene, "capture",
		"read the photos from `SCENE` (default: where they were)").flagOnly().isFolder()}, table[0].options...)
	for _, g := range table {
		for i := range g.options {
			if opt := &g.options[i]; opt.kind != kindBool && !slices.Contains(ofTheCall, opt.name) {
				opt.help = atEnd.ReplaceAllString(opt.help, "") + " (default: the run's)"
			}
		}
	}
	find(table, "iterations").help = "train to step `N` (default: the run's last)"
	find(table, "dry-run").help = "print the plan (steps left, memory) and stop"
	find(table, "accept-changes").help = "accept changed settings or photos, and continue with the new ones"
	layout := helpLayout{first: resumeFirst}
	return newCommand(console, cmd, table, layout, func(flags *pflag.FlagSet, args []string) error {
		if err := resolveSettings(o, flags); err != nil {
			return err
		}
		out := args[0]
		if plans.IsPlan(out) { // which does not say how blocks are trained that were not begun
			return fault.Usagef("run the command that trains it again, with its flags: it continues where it stopped",
				"%s is a plan of blocks, not a run", out)
		}
		if err := o.GoOn(out, scene); err != nil {
			return err
		}
		_, err := train.Do(console, o)
		return err
	})
}
